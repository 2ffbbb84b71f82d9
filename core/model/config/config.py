"""Config: everything that defines a model. Equal configs are the same model, to the last bit."""

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from core.model.config.attention import Attention
from core.model.config.basics import allowed_heads
from core.model.parts import MENUS
from core.model.parts.activation import inputs
from core.model.parts.norm import EPSILON
from core.model.parts.position import position
from core.settings.setting import ConfigError, setting


@dataclass(frozen=True)
class Config(Attention):
    """The settings of a transformer block and of the stack made from it. Frozen and hashable: usable as a cache key.

    Here stand settings of the block and the stack that came later; basics.py has those of the block as it was published,
    attention.py what attention has had since.
    Raises ConfigError, in words, for a value that cannot be: which field, why, and what is allowed.
    """

    FIRST = ("activation", "matched")  # d_ff follows them

    parallel: bool = setting(
        False,
        "Parallel sub-layers",
        "The feed-forward network reads what attention reads, instead of waiting for it: both at the same time "
        "(parallel; GPT-NeoX, section 2.1).",
        group="More parts",
        short="parallel sub-layers",
        acts=lambda config: config.attention and config.ffn,
        read_by=("norm",),
    )
    residual_scale: str = setting(
        "none",
        "Scale of what is added",
        "What each sub-layer's output is multiplied by before it joins the stream.",
        group="More parts",
        short="residual scale",
        menu=MENUS["residual_scale"],
        read_by=("norm",),
    )
    skips: bool = setting(
        False,
        "Skips from early to late",
        "The last layer also reads what left the first one, the last but one what left the second, and so on. Each is times a "
        "learned number, 1 at first (skips; as in a U-Net: Bao et al., 2023).",
        group="More parts",
        short="skips",
        acts=lambda config: config.n_layers > 1,
    )
    shared: bool = setting(
        False,
        "One block for all layers",
        "All layers are one block, gone through again and again (shared; Universal Transformer, Dehghani et al., 2019).",
        group="More parts",
        short="shared layers",
        acts=lambda config: config.n_layers > 1,
    )
    matched: bool = setting(
        False,
        "Width of gated activations matched",
        "A gated activation has a third matrix. With two thirds of the width it has no more parameters than one without a gate "
        "(matched; Shazeer, 2020, section 2). It acts where d_ff follows d_model.",
        group="More parts",
        short="matched width",
        acts=lambda config: inputs(MENUS["activation"][config.activation]) > 1,
    )
    ffn_dropout: bool = setting(
        False,
        "Dropout on hidden units",
        "Dropout acts on the FFN's hidden units too, after the activation, as in PyTorch's TransformerEncoderLayer (ffn_dropout).",
        group="More parts",
        short="dropout on hidden units",
        acts=lambda config: config.ffn and config.dropout > 0,
        read_by=("ffn",),
    )
    norm_eps: float = setting(
        EPSILON,
        "Epsilon of norms",
        "Added to the variance or the mean square before the root is taken, also in QK-norm, so that nothing is divided by "
        "zero (norm_eps). PyTorch and GPT-2 have 1e-5, many recent models 1e-6.",
        group="More parts",
        short="norm epsilon",
        low=1e-12,
        high=0.1,
        among=lambda config: sorted({1e-6, 1e-5, config.norm_eps}),
        acts=lambda config: bool(config.part("norm").divides_by) or (config.attention and config.qk_norm),
        read_by=("attention", "norm"),
    )
    logit_cap: float = setting(
        0.0,
        "Soft-cap of logits",
        "Squeezes the scores of the words between − and + this: cap · tanh(logit / cap). 0: no cap (logit_cap; Gemma 2 has 30).",
        group="More parts",
        short="logit cap",
        low=0.0,
        high=1000.0,
        step=1.0,
        top=50.0,
        offers=(5.0,),
    )

    def _check_together(self) -> None:
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
                f"n_kv_heads is {self.n_kv_heads}; it must divide n_heads, which is {self.n_heads}: "
                f"one of {', '.join(map(str, shared))}.",
                max(n for n in shared if n < self.n_kv_heads),
            )
        if MENUS["position"][self.position].turns:
            self._check_turned()

    def _check_turned(self) -> None:
        if self.turns_all and self.d_head % 2:
            raise ConfigError(
                "position",
                f"position is {self.position}, which turns pairs of numbers, so d_head must be even; it is {self.d_head}. "
                "Choose other heads, another d_head, or other positions.",
                "none",
            )
        if not self.turned:
            raise ConfigError(
                "rope_share",
                f"rope_share is {self.rope_share:g}, so not a single pair of a head's {self.d_head} numbers would be turned. "
                "Choose a larger share, another d_head, or other positions.",
                1.0,
            )

    @property
    def turns_all(self) -> bool:
        """Whether RoPE turns all numbers of a head, pair by pair: they are then even in number."""
        return MENUS["position"][self.position].turns and self.rope_share == 1

    @property
    def n_blocks(self) -> int:
        """Blocks with weights of their own."""
        return 1 if self.shared else self.n_layers

    def block_of(self, layer: int) -> int:
        """Which block a layer goes through, both counted from 0."""
        return 0 if self.shared else layer

    def early_of(self, layer: int) -> int | None:
        """The layer whose output a late one reads too, both counted from 0; None: none."""
        early = self.n_layers - 1 - layer
        return early if self.skips and early < layer else None

    def is_early(self, layer: int) -> bool:
        """Whether a late layer reads what leaves this one, counted from 0."""
        return self.early_of(self.n_layers - 1 - layer) == layer

    def window_in(self, layer: int) -> int:
        """How far attention sees in a layer, counted from 0; 0: as far as the mask lets it."""
        return 0 if every(self.global_every, self.block_of(layer)) else self.window

    def position_in(self, layer: int) -> Any:
        """The position encoding that acts in a layer's attention."""
        return position["none"] if every(self.nope_every, self.block_of(layer)) else self.part("position")

    @property
    def turned(self) -> int:
        """How many of a head's numbers RoPE turns: pairs."""
        return count_turned(self.d_head, self.rope_share)

    @classmethod
    def read_by(cls, part: str) -> tuple[str, ...]:
        """The settings that a part reads: "attention", "ffn" or "norm", beside those of the whole stack."""
        return tuple(name for name, known in cls.settings().items() if part in known.read_by)

    def part(self, field: str) -> Any:
        """The chosen entry of a menu, e.g. `part("norm")` -> the class LayerNorm."""
        return MENUS[field][getattr(self, field)]

    def replace(self, **changes: Any) -> "Config":
        """Return a copy with some settings changed. As many key-value heads as heads stay so; attention's biases follow the others."""
        if "n_heads" in changes and self.n_kv_heads == self.n_heads:
            changes = {"n_kv_heads": changes["n_heads"]} | changes
        if "bias" in changes and self.attention_bias == self.bias:
            changes = {"attention_bias": changes["bias"]} | changes
        return dataclasses.replace(self, **changes)

    def with_seed(self, seed: int) -> "Config":
        """The same with another seed: nothing else depends on it, and need not be checked again. Raises ConfigError."""
        checked = self.settings()["seed"].check("seed", seed)
        other = object.__new__(type(self))
        other.__dict__.update({name: getattr(self, name) for name in self.settings()} | {"seed": checked})
        return other

    def others(self) -> list[tuple[str, Any]]:
        """What one click can change: a setting, and a value that it does not have. Every entry of every menu, every switch,
        fewer and more heads, of other numbers a telling one; nothing that would not act. Whether the rest of the settings can be
        so with it is said where it is chosen."""
        found = []
        for name, known in self.settings().items():
            now = getattr(self, name)
            offered: list[Any] = self.choices(name) or list(known.offers)
            if known.kind is bool:
                offered = [not now]
            elif known.among:
                offered = known.among(self)
            if known.acts is None or known.acts(self):
                found += [(name, value) for value in offered if value != now]
        return found


def count_turned(d_head: int, share: float) -> int:
    """Return how many of a head's numbers are whole pairs within a share of them."""
    # Exact: in floats 0.7 * 180 is less than 126, and a pair would be lost.
    return 2 * (Fraction(str(share)) * d_head // 2)


def every(number: int, layer: int) -> bool:
    """Whether a layer, counted from 0, is one of every so many; 0: none is."""
    return number > 0 and (layer + 1) % number == 0
