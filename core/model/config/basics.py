"""The settings of a block as it was published and first built: its size, its parts, its initial weights."""

from dataclasses import dataclass

from core.model.parts import MENUS
from core.model.parts.activation import inputs
from core.settings.setting import Settings, setting


def allowed_heads(d_model: int) -> list[int]:
    """The numbers of heads that divide d_model, up to 64."""
    return [n for n in range(1, 65) if d_model % n == 0]


@dataclass(frozen=True)
class Basics(Settings):
    """Size, parts, and more parts."""

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
        among=lambda config: [n for n in allowed_heads(config.d_model) if n <= max(32, config.n_heads)],
        read_by=("attention",),
    )
    d_ff: int = setting(
        None,
        "FFN width (d_ff)",
        "Hidden units of the feed-forward network. Follows 4 × d_model until you move it; with a gated activation "
        "of matched width two thirds of that.",
        group="Size",
        short="d_ff",
        kind=int,
        low=1,
        high=8192,
        step=8,
        follows=lambda config: (
            round(8 * config.d_model / (1 + inputs(config.part("activation"))))
            if config.matched
            else 4 * config.d_model
        ),
        read_by=("ffn",),
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
        read_by=("norm",),
    )
    placement: str = setting(
        "pre",
        "Placement",
        "Where the norm stands.",
        group="Parts",
        short="norm",
        menu=MENUS["placement"],
        read_by=("norm",),
    )
    activation: str = setting(
        "gelu",
        "Activation",
        "The nonlinearity inside the feed-forward network.",
        group="Parts",
        short="activation",
        menu=MENUS["activation"],
        read_by=("ffn",),
    )
    position: str = setting(
        "none",
        "Positions",
        "How the model is told where a token stands.",
        group="Parts",
        short="positions",
        menu=MENUS["position"],
        read_by=("attention",),
    )
    mask: str = setting(
        "none",
        "Mask",
        "Which tokens a token may see.",
        group="Parts",
        short="mask",
        menu=MENUS["mask"],
        read_by=("attention",),
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
        stride=lambda config: 2 if config.turns_all else 1,
        top=128,
        # At least 1: heads that do not divide d_model are refused as such, and not for the width that they would have.
        follows=lambda config: max(1, config.d_model // config.n_heads),
        read_by=("attention",),
    )
    scale: bool = setting(
        True,
        "Scale 1/√d_k",
        "Divide query·key by the square root of the head size before the softmax (scale).",
        group="More parts",
        short="scaling",
        read_by=("attention",),
    )
    bias: bool = setting(
        True,
        "Biases",
        "Constants added by every linear map and by LayerNorm (bias).",
        group="More parts",
        short="biases",
        read_by=("attention", "ffn", "norm"),
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
