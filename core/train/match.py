"""A fair comparison: widen what is left of a model until it costs as much as the one from which a part was taken."""

from collections.abc import Callable

from core.model import cost
from core.model.config import Config
from core.model.variants import apply
from core.settings.menu import Menu
from core.settings.setting import ConfigError

CLOSE = 0.02  # how far off, relatively, still counts as the same cost
WIDER = 16  # steps of d_model that are tried where the sub-layers alone cannot be made to fit

Measured = Callable[[Config], int]  # what a config costs

# (config, tokens of a sequence, words of the vocabulary) -> what it costs
match: Menu[Callable[[Config, int, int], int]] = Menu("Hold equal")


@match
def nothing(config: Config, tokens: int, vocabulary: int) -> int:
    """Nothing: a part is taken out, and its parameters with it."""
    return 0


@match
def parameters(config: Config, tokens: int, vocabulary: int) -> int:
    """Parameters: the widths of what is left are changed until there are as many numbers to learn as before."""
    return sum(cost.parameters(config, vocabulary).values())


@match
def flops(config: Config, tokens: int, vocabulary: int) -> int:
    """FLOPs: the widths of what is left are changed until a forward pass takes as many floating point operations as before."""
    return sum(cost.flops(config, tokens).values()) + 2 * tokens * config.d_model * vocabulary


def widened(config: Config, wanted: int, measured: Measured) -> Config:
    """The config with its widths changed so that measured(config) comes as close to `wanted` as it can.

    d_ff is changed where there is a feed-forward network, else the width of the heads (d_head); where that alone stays
    more than CLOSE away, d_model too. Without either sub-layer nothing can be done, and the config comes back as it is.
    """
    name = "d_ff" if config.ffn else "d_head" if config.attention else None
    if name is None or abs(measured(config) - wanted) <= 0.001 * wanted:
        return config
    best = _fitted(config, name, wanted, measured)
    for more in range(1, WIDER + 1):
        if _off(best, wanted, measured) <= CLOSE:
            break
        for wider in (config.d_model + more * config.n_heads, config.d_model - more * config.n_heads):
            try:
                tried = _fitted(apply({"d_model": wider}, config), name, wanted, measured)
            except ConfigError:  # out of bounds, or the positions do not fit
                continue
            best = min(best, tried, key=lambda each: _off(each, wanted, measured))
    return best


def _off(config: Config, wanted: int, measured: Measured) -> float:
    return abs(measured(config) - wanted) / wanted


def _fitted(config: Config, name: str, wanted: int, measured: Measured) -> Config:
    """The width at which the cost, a straight line in it, comes closest to what is wanted."""
    step = 2 if name == "d_head" and config.part("position").turns else 1
    at = {width: measured(config.replace(**{name: width})) for width in (step, 2 * step)}
    slope = at[2 * step] - at[step]
    width = step * max(1, 1 + round((wanted - at[step]) / slope))
    known = Config.__dataclass_fields__[name].metadata["setting"]
    return config.replace(**{name: min(width, int(known.high) // step * step)})
