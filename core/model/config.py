"""Config: everything that defines a model. Equal configs are the same model, to the last bit."""

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from core.model.parts import MENUS
from core.model.parts.activation import count_inputs
from core.model.parts.norm import EPSILON
from core.model.parts.position import acts_in_attention, position
from core.settings.setting import ConfigError, Settings, setting

size_setting = partial(setting, group="Size")
part_setting = partial(setting, group="Components")
more_setting = partial(setting, group="More components")
attention_setting = partial(setting, group="Attention details", read_by=("attention",))


def allowed_heads(d_model: int) -> list[int]:
    """Return the numbers of heads that divide d_model, up to 64."""
    return [n for n in range(1, 65) if d_model % n == 0]


@dataclass(frozen=True)
class Config(Settings):
    """Settings of a transformer block and of the stack made from it. Frozen and hashable.

    Raises:
        ConfigError: A value that cannot be: names the field, and says what is allowed.
    """

    FIRST: ClassVar[tuple[str, ...]] = ("activation", "matched")  # d_ff follows them

    # The block as it was published: its size, its parts, its initial weights. The order of fields
    # is that of
    # panels and of stored runs.

    d_model: int = size_setting(
        64,
        "Width (d_model)",
        "Width of the residual stream: dimensions per token.",
        short="d_model",
        low=8,
        high=1600,  # GPT-2 XL
        step=8,
        top=256,
    )
    n_heads: int = size_setting(
        4,
        "Heads (n_heads)",
        "Number of attention heads, each of d_head dimensions (usually d_model / n_heads). Only"
        " divisors of d_model are offered.",
        short="heads",
        low=1,
        high=64,
        among=lambda config: [
            n for n in allowed_heads(config.d_model) if n <= max(32, config.n_heads)
        ],
        read_by=("attention",),
    )
    d_ff: int = size_setting(
        None,
        "FFN width (d_ff)",
        "Hidden units of the feed-forward network. Default 4 × d_model (8/3 × for parameter-matched"
        " GLU).",
        short="d_ff",
        kind=int,
        low=1,
        high=8192,
        step=8,
        follows=lambda config: (
            round(8 * config.d_model / (1 + count_inputs(config.part("activation"))))
            if config.matched
            else 4 * config.d_model
        ),
        read_by=("ffn",),
    )
    n_layers: int = size_setting(
        1,
        "Layers (n_layers)",
        "Number of stacked blocks.",
        short="layers",
        low=1,
        high=100,
        step=1,
        top=12,
    )
    seed: int = size_setting(
        0,
        "Random seed",
        "Seed for the initial weights. The same seed gives the same weights on every page and"
        " machine.",
        short="seed",
        low=0,
        high=2**31 - 1,
        step=1,
        top=99,
    )
    attention: bool = part_setting(
        True,
        "Attention",
        "Self-attention sub-layer (attention).",
        short="attention",
    )
    residual_attention: bool = part_setting(
        True,
        "Attention residual",
        "Residual connection around attention (residual_attention).",
        short="residual (attention)",
    )
    ffn: bool = part_setting(
        True,
        "Feed-forward",
        "Feed-forward sub-layer, applied to each token separately (ffn; also called MLP).",
        short="FFN",
    )
    residual_ffn: bool = part_setting(
        True,
        "Feed-forward residual",
        "Residual connection around the feed-forward network (residual_ffn).",
        short="residual (FFN)",
    )
    norm: str = part_setting(
        "LayerNorm",
        "Norm",
        "Rescales each token vector to a common scale.",
        short="norm",
        menu=MENUS["norm"],
        read_by=("norm",),
    )
    placement: str = part_setting(
        "pre",
        "Placement",
        "Where the norm sits in the block.",
        short="norm",
        menu=MENUS["placement"],
        read_by=("norm",),
    )
    activation: str = part_setting(
        "gelu",
        "Activation",
        "Nonlinearity of the feed-forward network.",
        short="activation",
        menu=MENUS["activation"],
        read_by=("ffn",),
    )
    position: str = part_setting(
        "none",
        "Positions",
        "Position encoding.",
        short="positions",
        menu=MENUS["position"],
        read_by=("attention",),
    )
    mask: str = part_setting(
        "none",
        "Mask",
        "Attention mask: the tokens that a token may attend to.",
        short="mask",
        menu=MENUS["mask"],
        read_by=("attention",),
    )
    d_head: int = more_setting(
        None,
        "Head width (d_head)",
        "Dimensions per head (d_head, also called d_k). Default d_model / n_heads.",
        short="d_head",
        kind=int,
        low=1,
        high=1600,
        step=1,
        stride=lambda config: 2 if config.rotates_all_dimensions else 1,
        top=128,
        # At least 1: heads that do not divide d_model are refused as such, and not for the width
        # that they would have.
        follows=lambda config: max(1, config.d_model // config.n_heads),
        read_by=("attention",),
    )
    scale: bool = more_setting(
        True,
        "Scale 1/√d_k",
        "Divide query·key by the square root of the head width before the softmax (scale).",
        short="scaling",
        read_by=("attention",),
    )
    bias: bool = more_setting(
        True,
        "Biases",
        "Learned biases in linear maps and LayerNorm (bias).",
        short="biases",
        read_by=("attention", "ffn", "norm"),
    )
    tied: bool = more_setting(
        False,
        "Tied embeddings",
        "Share one matrix between embedding and unembedding (Press and Wolf, 2017).",
        short="tied embeddings",
    )
    padding: int = more_setting(
        0,
        "Padding tokens",
        "Padding after the sentence, as in a batch of sequences of different lengths. Padding is"
        " masked.",
        short="padding tokens",
        low=0,
        high=16,
        step=1,
    )
    init: str = more_setting(
        "default",
        "Initial weights",
        "Distribution of the initial weights.",
        short="weights",
        menu=MENUS["init"],
    )
    dropout: float = more_setting(
        0.0,
        "Dropout",
        "Dropout rate. Applies only while “Apply dropout in this pass” is on.",
        short="dropout",
        low=0.0,
        high=0.9,
        step=0.05,
    )

    # Attention details.

    n_kv_heads: int = attention_setting(
        None,
        "Key-value heads (n_kv_heads)",
        "Number of key-value heads. With fewer of them than query heads, this is grouped-query"
        " attention (GQA; Ainslie et al., 2023). With one, it is multi-query attention (MQA;"
        " Shazeer, 2019). Both shrink the KV cache. Default: n_heads.",
        short="key-value heads",
        kind=int,
        low=1,
        high=64,
        follows=lambda config: config.n_heads,
        among=lambda config: [n for n in range(1, config.n_heads + 1) if config.n_heads % n == 0],
        acts=lambda config: config.n_heads > 1,
    )
    attention_bias: bool = attention_setting(
        None,
        "Biases in attention",
        "Biases in the query, key, value, gate and output projections (attention_bias). Default:"
        " same as Biases. Off in Llama; Qwen 2 has them only on queries, keys and values.",
        short="attention biases",
        kind=bool,
        follows=lambda config: config.bias,
    )
    qk_norm: bool = attention_setting(
        False,
        "QK-norm",
        "RMSNorm with learned gain on each head's queries and keys (qk_norm; after Henry et al.,"
        " 2020; in Qwen 3 and Gemma 3). Scores then do not grow with their size.",
        short="QK-norm",
    )
    qk_norm_joint: bool = attention_setting(
        False,
        "QK-norm over all heads",
        "QK-norm divides by the root mean square over all heads together, not each head's own; one"
        " gain per dimension of every head (qk_norm_joint; OLMo 2).",
        short="QK-norm over all heads",
        acts=lambda config: config.qk_norm and config.n_heads > 1,
    )
    softmax: str = attention_setting(
        "usual",
        "Softmax",
        "How attention scores become weights.",
        short="softmax",
        menu=MENUS["softmax"],
    )
    gate: bool = attention_setting(
        False,
        "Gated output",
        "Sigmoid gate on each head's output, computed from the query token (gate; Qiu et al.,"
        " 2025).",
        short="attention gate",
    )
    value_residual: bool = attention_setting(
        False,
        "Value residual",
        "Average the values with those of layer 1 (value_residual; Zhou et al., 2024).",
        short="value residual",
    )
    score_cap: float = attention_setting(
        0.0,
        "Soft-cap on scores",
        "Attention scores become cap · tanh(score / cap). 0 = off (score_cap; 50 in Gemma 2,"
        " section 2).",
        short="score cap",
        low=0.0,
        high=1000.0,
        step=1.0,
        top=50.0,
        offers=(2.0,),
    )
    window: int = attention_setting(
        0,
        "Sliding window",
        "Each token attends only to tokens fewer than this many positions away. 0 = no window "
        "(window; Beltagy et al., 2020; Mistral 7B).",
        short="window",
        low=0,
        high=1024,
        step=1,
        top=32,
        offers=(4,),
    )
    global_every: int = attention_setting(
        0,
        "Global attention every N layers",
        "Every Nth layer has no window. 0 = all layers have one (global_every; 2 in Gemma 2, 6 in"
        " Gemma 3). With shared weights, all layers count as layer 1.",
        short="global every",
        low=0,
        high=100,
        step=1,
        top=6,
        offers=(2,),
        acts=lambda config: config.window > 0,
    )
    global_first: bool = attention_setting(
        False,
        "First layer is global",
        "Layers 1, N + 1, 2N + 1, … have no window (global_first; GPT-Neo). Off: layers N, 2N, …"
        " With shared weights, all layers count as layer 1.",
        short="global first layer",
        acts=lambda config: config.window > 0 and config.global_every > 1,
    )
    rope_share: float = attention_setting(
        1.0,
        "Partial RoPE",
        "Fraction of each head's dimensions that RoPE rotates (rope_share; 0.25 in GPT-NeoX).",
        short="RoPE share",
        low=0.05,
        high=1.0,
        step=0.05,
        offers=(0.25,),
        acts=lambda config: MENUS["position"][config.position].turns,
    )
    rope_base: float = attention_setting(
        10000.0,
        "RoPE base",
        "The larger the base, the slower the rotation (rope_base; 500,000 in Llama 3, for long"
        " texts). In wide heads the slowest pair rotates about once in 2π × base tokens.",
        short="RoPE base",
        low=2.0,
        high=1e8,
        among=lambda config: sorted(
            {100.0, 1000.0, 10000.0, 100000.0, 500000.0, 1000000.0, config.rope_base}
        ),
        acts=lambda config: MENUS["position"][config.position].turns,
    )
    local_rope_base: float = attention_setting(
        0.0,
        "RoPE base in layers with a window",
        "RoPE base of layers with a window. 0 = same as RoPE base (local_rope_base; in Gemma 3"
        " 10,000 beside 1,000,000).",
        short="local RoPE base",
        low=0.0,
        high=1e8,
        among=lambda config: sorted({0.0, 100.0, 1000.0, 10000.0, config.local_rope_base}),
        acts=lambda config: MENUS["position"][config.position].turns and config.window > 0,
    )
    nope_every: int = attention_setting(
        0,
        "NoPE every N layers",
        "Every Nth layer has no position encoding. 0 = off (nope_every; 4 in SmolLM 3 and Llama 4)."
        " With shared weights, all layers count as layer 1.",
        short="NoPE every N layers",
        low=0,
        high=100,
        step=1,
        top=6,
        offers=(2,),
        acts=lambda config: acts_in_attention(MENUS["position"][config.position]),
    )

    # The block and the stack, as later papers changed them.

    parallel: bool = more_setting(
        False,
        "Parallel sub-layers",
        "Attention and feed-forward network read the same input and run in parallel (parallel;"
        " GPT-NeoX, section 2.1).",
        short="parallel sub-layers",
        acts=lambda config: config.attention and config.ffn,
        read_by=("norm",),
    )
    residual_scale: str = more_setting(
        "none",
        "Residual scaling",
        "Factor on each sub-layer's output before it is added to the residual stream.",
        short="residual scale",
        menu=MENUS["residual_scale"],
        read_by=("norm",),
    )
    skips: bool = more_setting(
        False,
        "U-Net skips",
        "Add the output of the first layer to the input of the last, the second to the"
        " second-to-last, and so on. Learned weights, initialised to 1 (skips; Bao et al., 2023).",
        short="skips",
        acts=lambda config: config.n_layers > 1,
    )
    shared: bool = more_setting(
        False,
        "Share weights across layers",
        "All layers use the same block (shared; Universal Transformer, Dehghani et al., 2019).",
        short="shared layers",
        acts=lambda config: config.n_layers > 1,
    )
    matched: bool = more_setting(
        False,
        "Match GLU parameters",
        "Gated activations have a third matrix. Two thirds of the width give the parameter count of"
        " an ungated one (matched; Shazeer, 2020, section 2). Applies while d_ff has its default.",
        short="matched width",
        acts=lambda config: count_inputs(MENUS["activation"][config.activation]) > 1,
    )
    ffn_dropout: bool = more_setting(
        False,
        "Dropout on hidden units",
        "Dropout also after the FFN's activation, as in PyTorch's TransformerEncoderLayer"
        " (ffn_dropout).",
        short="dropout on hidden units",
        acts=lambda config: config.ffn and config.dropout > 0,
        read_by=("ffn",),
    )
    norm_eps: float = more_setting(
        EPSILON,
        "Norm epsilon",
        "Added to the variance or mean square inside the root, also in QK-norm (norm_eps). "
        "1e-5 in PyTorch and GPT-2, 1e-6 in many recent models.",
        short="norm epsilon",
        low=1e-12,
        high=0.1,
        among=lambda config: sorted({1e-6, 1e-5, config.norm_eps}),
        acts=lambda config: (
            bool(config.part("norm").divides_by) or (config.attention and config.qk_norm)
        ),
        read_by=("attention", "norm"),
    )
    norm_gain: bool = more_setting(
        True,
        "Norm gains",
        "Learned gain in every norm, QK-norm included (norm_gain; none in nanochat). LayerNorm and"
        " DyT keep their bias, unless Biases is off.",
        short="norm gains",
        acts=lambda config: config.part("norm").normalises or (config.attention and config.qk_norm),
        read_by=("attention", "norm"),
    )
    embedding_norm: bool = more_setting(
        False,
        "Norm on embeddings",
        "Norm on the token vectors, with positions if these are added to them, before the first"
        " block (embedding_norm; BLOOM, nanochat).",
        short="norm on embeddings",
        acts=lambda config: config.part("norm").normalises,
    )
    logit_cap: float = more_setting(
        0.0,
        "Soft-cap on logits",
        "Logits become cap · tanh(logit / cap). 0 = off (logit_cap; 30 in Gemma 2).",
        short="logit cap",
        low=0.0,
        high=1000.0,
        step=1.0,
        top=50.0,
        offers=(5.0,),
    )

    def _check_together(self) -> None:
        """Raise ConfigError if d_model, heads, key-value heads, or RoPE and d_head do not fit."""
        if self.d_model % self.n_heads:
            fitting = allowed_heads(self.d_model)
            raise ConfigError(
                "n_heads",
                f"n_heads is {self.n_heads}; it must divide d_model, which is {self.d_model}: "
                f"one of {', '.join(map(str, fitting))}.",
                max(n for n in fitting if n < self.n_heads),
            )
        if self.n_heads % self.n_kv_heads:
            shared = [n for n in range(1, self.n_heads + 1) if self.n_heads % n == 0]
            raise ConfigError(
                "n_kv_heads",
                f"n_kv_heads is {self.n_kv_heads}; it must divide n_heads, which is {self.n_heads}:"
                f" one of {', '.join(map(str, shared))}.",
                max(n for n in shared if n < self.n_kv_heads),
            )
        if self.rotates_all_dimensions and self.d_head % 2:
            raise ConfigError(
                "position",
                f"position is {self.position}, which rotates pairs of dimensions, so d_head must be"
                f" even; it is {self.d_head}. Choose a different number of heads or d_head, or"
                " another position encoding.",
                "none",
            )
        if MENUS["position"][self.position].turns and not self.n_rotated:
            raise ConfigError(
                "rope_share",
                f"rope_share is {self.rope_share:g}, so RoPE would not rotate a single pair of a"
                f" head's {self.d_head} dimensions. Choose a larger share, a different d_head or"
                " another position encoding.",
                1.0,
            )

    @property
    def rotates_all_dimensions(self) -> bool:
        """Whether RoPE rotates all dimensions of a head, so that their number must be even."""
        return MENUS["position"][self.position].turns and self.rope_share == 1

    @property
    def n_blocks(self) -> int:
        """Number of blocks with their own weights."""
        return 1 if self.shared else self.n_layers

    def block_of(self, layer: int) -> int:
        """Return the index of the block whose weights a layer uses: 0 if shared, else layer."""
        return 0 if self.shared else layer

    def skip_source(self, layer: int) -> int | None:
        """Return the earlier layer whose output is added to this layer's input; None if none is.

        U-Net skips; layers count from 0.
        """
        early = self.n_layers - 1 - layer
        return early if self.skips and early < layer else None

    def feeds_skip(self, layer: int) -> bool:
        """Return whether a skip adds this layer's output, counted from 0, to a later layer."""
        return self.skip_source(self.n_layers - 1 - layer) == layer

    def window_in(self, layer: int) -> int:
        """Return the window of a layer (from 0): tokens fewer steps away are seen; 0 for all."""
        place = self.block_of(layer)
        if self.global_first and self.global_every:
            is_global = place % self.global_every == 0
        else:
            is_global = is_every_nth(self.global_every, place)
        return 0 if is_global else self.window

    def rope_base_in(self, layer: int) -> float:
        """Return the RoPE base of a layer (from 0): local_rope_base, if set, under a window."""
        is_local = self.local_rope_base > 0 and self.window_in(layer) > 0
        return self.local_rope_base if is_local else self.rope_base

    def position_in(self, layer: int) -> Any:
        """Return the position encoding's class in a layer (from 0); "none"'s if it has none."""
        return (
            position["none"]
            if is_every_nth(self.nope_every, self.block_of(layer))
            else self.part("position")
        )

    @property
    def n_rotated(self) -> int:
        """Number of dimensions of a head that RoPE rotates, or would rotate if it were chosen."""
        return count_rotated(self.d_head, self.rope_share)

    @classmethod
    def settings_read_by(cls, part: str) -> tuple[str, ...]:
        """Return the names of settings that "attention", "ffn" or "norm" reads, in field order."""
        return tuple(
            name for name, definition in cls.settings().items() if part in definition.read_by
        )

    def part(self, field: str) -> Any:
        """Return the chosen entry of a menu: `part("norm")` is the class LayerNorm."""
        return MENUS[field][getattr(self, field)]

    def replace(self, **changes: Any) -> "Config":
        """Return a copy; n_kv_heads, attention_bias follow n_heads, bias if equal; d_ff stays."""
        if "n_heads" in changes and self.n_kv_heads == self.n_heads:
            changes = {"n_kv_heads": changes["n_heads"]} | changes
        if "bias" in changes and self.attention_bias == self.bias:
            changes = {"attention_bias": changes["bias"]} | changes
        return dataclasses.replace(self, **changes)

    def with_seed(self, seed: int) -> "Config":
        """Return a copy with another seed, only that checked; ConfigError if it is not allowed."""
        checked = self.settings()["seed"].check("seed", seed)
        other = object.__new__(type(self))
        other.__dict__.update(
            {name: getattr(self, name) for name in self.settings()} | {"seed": checked}
        )
        return other

    def list_changes(self) -> list[tuple[str, Any]]:
        """List single changes to offer, (name, value), of settings that have an effect now.

        Every menu entry, every switch, fewer and more heads, one value of other numbers. Whether
        a change fits the other settings is checked when it is chosen.
        """
        unused = []
        for name, definition in self.settings().items():
            now = getattr(self, name)
            offered: list[Any] = self.choices(name) or list(definition.offers)
            if definition.kind is bool:
                offered = [not now]
            elif definition.among:
                offered = definition.among(self)
            if definition.acts is None or definition.acts(self):
                unused += [(name, value) for value in offered if value != now]
        return unused


def count_rotated(d_head: int, share: float) -> int:
    """Return how many of a head's dimensions RoPE rotates: the pairs within a share of them."""
    # Exact: in floats 0.7 * 180 is less than 126, and a pair would be lost.
    return 2 * (Fraction(str(share)) * d_head // 2)


def is_every_nth(n: int, layer: int) -> bool:
    """Return whether a layer, counted from 0, is an n-th one: n − 1, 2n − 1, …; False for n = 0."""
    return n > 0 and (layer + 1) % n == 0
