"""Config: everything that defines a model. Equal configs are the same model, to the last bit."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from core.model.parts import MENUS
from core.settings.setting import ConfigError, Settings, setting


@dataclass(frozen=True)
class Config(Settings):
    """The settings of a transformer block and of the stack made from it. Frozen and hashable: usable as a cache key.

    Raises ConfigError, in words, for a value that cannot be: which field, why, and what is allowed.
    """

    d_model: int = setting(
        64,
        "Width (d_model)",
        "Numbers per token: the width of the residual stream.",
        group="Size",
        short="d_model",
        low=8,
        high=1600,  # GPT-2 XL
        step=8,
        top=256,
    )
    n_heads: int = setting(
        4,
        "Heads (n_heads)",
        "Attention heads. Each works on d_head numbers, usually d_model / n_heads: only divisors of d_model are offered.",
        group="Size",
        short="heads",
        low=1,
        high=64,
        among=lambda config: [n for n in Config.allowed_heads(config.d_model) if n <= max(32, config.n_heads)],
    )
    d_ff: int = setting(
        None,
        "FFN width (d_ff)",
        "Hidden units of the feed-forward network. Follows 4 × d_model until you move it.",
        group="Size",
        short="d_ff",
        kind=int,
        low=1,
        high=8192,
        step=8,
        follows=lambda config: 4 * config.d_model,
    )
    n_layers: int = setting(
        1,
        "Layers (n_layers)",
        "Blocks on top of each other.",
        group="Size",
        short="layers",
        low=1,
        high=100,
        step=1,
        top=12,
    )
    seed: int = setting(
        0,
        "Random seed",
        "Which random weights. The same seed gives the same numbers, everywhere.",
        group="Size",
        short="seed",
        low=0,
        high=2**31 - 1,
        step=1,
        top=99,
    )
    attention: bool = setting(
        True,
        "Attention",
        "The sub-layer in which tokens read from each other (attention).",
        group="Parts",
        short="attention",
    )
    residual_attention: bool = setting(
        True,
        "Attention residual",
        "Add what attention computes to the stream, instead of replacing the stream (residual_attention).",
        group="Parts",
        short="residual (attention)",
    )
    ffn: bool = setting(
        True,
        "Feed-forward",
        "The sub-layer that works on each token by itself (ffn, also called MLP).",
        group="Parts",
        short="FFN",
    )
    residual_ffn: bool = setting(
        True,
        "Feed-forward residual",
        "Add what the feed-forward network computes to the stream, instead of replacing it (residual_ffn).",
        group="Parts",
        short="residual (FFN)",
    )
    norm: str = setting(
        "LayerNorm",
        "Norm",
        "Brings each token's numbers to a common scale.",
        group="Parts",
        short="norm",
        menu=MENUS["norm"],
    )
    placement: str = setting(
        "pre", "Placement", "Where the norm stands.", group="Parts", short="norm", menu=MENUS["placement"]
    )
    activation: str = setting(
        "gelu",
        "Activation",
        "The nonlinearity inside the feed-forward network.",
        group="Parts",
        short="activation",
        menu=MENUS["activation"],
    )
    position: str = setting(
        "none",
        "Positions",
        "How the model is told where a token stands.",
        group="Parts",
        short="positions",
        menu=MENUS["position"],
    )
    mask: str = setting(
        "none", "Mask", "Which tokens a token may see.", group="Parts", short="mask", menu=MENUS["mask"]
    )
    d_head: int = setting(
        None,
        "Head width (d_head)",
        "Numbers that each head works on (d_head, also called d_k). Follows d_model / n_heads until you move it.",
        group="More parts",
        short="d_head",
        kind=int,
        low=1,
        high=1600,
        step=1,
        top=128,
        # At least 1: heads that do not divide d_model are refused as such, and not for the width that they would have.
        follows=lambda config: max(1, config.d_model // config.n_heads),
    )
    scale: bool = setting(
        True,
        "Scale 1/√d_k",
        "Divide query·key by the square root of the head size before the softmax (scale).",
        group="More parts",
        short="scaling",
    )
    bias: bool = setting(
        True,
        "Biases",
        "Constants added by every linear map and by LayerNorm (bias).",
        group="More parts",
        short="biases",
    )
    tied: bool = setting(
        False,
        "Tied embeddings",
        "The embedding is also the unembedding: one table instead of two (Press and Wolf, 2017).",
        group="More parts",
        short="tied embeddings",
    )
    padding: int = setting(
        0,
        "Padding tokens",
        "Empty tokens after the sentence, as in a batch of unequal lengths. No token may attend to them.",
        group="More parts",
        short="padding tokens",
        low=0,
        high=16,
        step=1,
    )
    init: str = setting(
        "default",
        "Initial weights",
        "How the random weights are drawn.",
        group="More parts",
        short="weights",
        menu=MENUS["init"],
    )
    dropout: float = setting(
        0.0,
        "Dropout",
        "Share of numbers set to zero at random. Acts only while the switch below is on.",
        group="More parts",
        short="dropout",
        low=0.0,
        high=0.9,
        step=0.05,
    )

    def _check_together(self) -> None:
        fitting = self.allowed_heads(self.d_model)
        if self.n_heads not in fitting:
            raise ConfigError(
                "n_heads",
                f"n_heads is {self.n_heads}; it must divide d_model, which is {self.d_model}: "
                f"one of {', '.join(map(str, fitting))}.",
                max(n for n in fitting if n < self.n_heads),
            )
        if MENUS["position"][self.position].needs_even_head and self.d_head % 2:
            raise ConfigError(
                "position",
                f"position is {self.position}, which turns pairs of numbers, so d_head must be even; it is {self.d_head}. "
                "Choose other heads, another d_head, or other positions.",
                "none",
            )

    @classmethod
    def allowed_heads(cls, d_model: int) -> list[int]:
        """The numbers of heads that divide d_model, up to 64."""
        return [n for n in range(1, 65) if d_model % n == 0]

    def part(self, field: str) -> Any:
        """The chosen entry of a menu, e.g. `part("norm")` -> the class LayerNorm."""
        return MENUS[field][getattr(self, field)]

    def replace(self, **changes: Any) -> "Config":
        """A copy with some settings changed."""
        return dataclasses.replace(self, **changes)

    def others(self) -> list[tuple[str, Any]]:
        """What one click can change: a setting, and a value that it does not have. Every entry of every menu, every switch,
        fewer and more heads; whether the rest of the settings can be so with it is said where it is chosen."""
        found = []
        for name, known in self.settings().items():
            now = getattr(self, name)
            offered: list[Any] = self.choices(name)
            if known.kind is bool:
                offered = [not now]
            elif known.among:
                offered = known.among(self)
            found += [(name, value) for value in offered if value != now]
        return found
