"""Which variants are the same model: settings that change nothing beside others are set to one value."""

from collections.abc import Callable
from typing import Any

from core.model.config import Config
from core.model.parts import MENUS
from core.model.parts.position import acts_in_attention

# Of attention alone, each with a value that is possible whatever else is set. A position that is added to the tokens stays.
OF_ATTENTION = {
    "n_heads": 1,
    "n_kv_heads": 1,
    "d_head": 1,
    "mask": "none",
    "scale": True,
    "qk_norm": False,
    "softmax": "usual",
    "gate": False,
    "value_residual": False,
    "score_cap": 0.0,
    "window": 0,
    "residual_attention": True,
}
OF_FFN = {"d_ff": 1, "activation": "identity", "matched": False, "residual_ffn": True}
# (settings, tokens of the text, passes) -> settings that may as well be so
Rule = Callable[[Config, int, int], dict[str, Any]]


def _without_sublayers(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {} if config.attention or config.ffn else {"norm": "none", "residual_scale": "none"}


def _without_norm(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {} if config.part("norm").normalises else {"placement": next(iter(MENUS["placement"]))}


def _without_attention(config: Config, length: int, passes: int) -> dict[str, Any]:
    if config.attention:
        return {}
    return OF_ATTENTION | ({"position": "none"} if acts_in_attention(config.part("position")) else {})


def _without_ffn(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {} if config.ffn else OF_FFN


def _with_one_sublayer(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {} if config.attention and config.ffn else {"parallel": False}


def _alone_in_parallel(config: Config, length: int, passes: int) -> dict[str, Any]:
    """Without its residual, a parallel FFN replaces what attention has added."""
    return {"residual_attention": True} if _replaces_attention(config) else {}


def _replaces_attention(config: Config) -> bool:
    return config.parallel and config.attention and config.ffn and not config.residual_ffn


def _without_residual(config: Config, length: int, passes: int) -> dict[str, Any]:
    """A norm after the sum is a norm on the output where nothing is added to it."""
    adds = config.attention and config.residual_attention and not _replaces_attention(config)
    adds = adds or config.ffn and config.residual_ffn or config.residual_scale != "none"
    return {"placement": "output"} if config.placement == "post" and not adds else {}


def _wide_window(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {"window": 0} if config.window >= length else {}


def _without_window(config: Config, length: int, passes: int) -> dict[str, Any]:
    acts = config.window and config.global_every <= config.n_blocks
    return {} if acts else {"global_every": 0}


def _without_positions_in_attention(config: Config, length: int, passes: int) -> dict[str, Any]:
    acts = acts_in_attention(config.part("position")) and config.nope_every <= config.n_blocks
    return {} if acts else {"nope_every": 0}


def _without_rope(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {} if config.part("position").turns else {"rope_share": 1.0, "rope_base": 10000.0}


def _one_wide(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {"scale": True} if config.d_head == 1 else {}


def _in_one_layer(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {"skips": False} if config.n_layers == 1 else {}


def _in_one_pass(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {"value_residual": False} if passes == 1 else {}


def _after_the_stream(config: Config, length: int, passes: int) -> dict[str, Any]:
    return {"tied": False, "logit_cap": 0.0}  # they only change how tokens are read from it


RULES: dict[Rule, str] = {
    _without_sublayers: "Without sub-layers there is nothing to normalise or to scale.",
    _without_norm: "Without a norm the placement does not matter.",
    _without_attention: "Without attention its settings do not matter.",
    _without_ffn: "Without an FFN its settings do not matter.",
    _with_one_sublayer: "One sub-layer alone cannot be parallel.",
    _alone_in_parallel: "A parallel FFN without its residual replaces what attention adds, so the residual of attention does not matter.",
    _without_residual: "Without residuals post-norm is the same as output norm.",
    _wide_window: "A window that holds the whole text does not matter.",
    _without_window: "Global layers do not matter where no layer has a window, or where no layer run here is global.",
    _without_positions_in_attention: "Layers without positions do not matter where attention has none, or where none of them is run.",
    _without_rope: "Without RoPE its share does not matter.",
    _one_wide: "The scale does not matter in heads of width 1.",
    _in_one_layer: "Skips need more than one layer.",
    _in_one_pass: "Values of the first pass do not matter in one pass.",
    _after_the_stream: "",  # no part of a grid
}


def stream_of(config: Config, length: int, passes: int) -> tuple[Config, tuple[str, ...]]:
    """Return the settings that all models of the same stream share, and why some do not matter.

    Args:
        length: tokens of the text, padding included.
        passes: how many blocks the stream goes through.
    """
    reasons = []
    for rule, sentence in RULES.items():
        new = {name: value for name, value in rule(config, length, passes).items() if getattr(config, name) != value}
        if new:
            config = config.replace(**new)
            reasons.append(sentence)
    return config, tuple(filter(None, reasons))
