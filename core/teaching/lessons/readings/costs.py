"""Readings that are computed from the settings alone."""

from core.model import cost
from core.model.config import Config
from core.settings.setting import ConfigError
from core.teaching.lessons.readings.reading import Measured, Params, exact, names_of, reading, settings_of

LONGEST = 100_000  # words


def tokens_of(params: Params) -> int:
    """How many words the text has that costs are asked for. Raises ConfigError."""
    text = params.get("tokens", "100")
    if text.isascii() and text.isdigit() and len(text) <= len(str(LONGEST)) and 0 < int(text) <= LONGEST:
        return int(text)
    raise ConfigError("tokens", f"tokens is {text[:20]}; it must be a whole number from 1 to {LONGEST}.")


@reading(unit="count", takes=names_of(Config))
def parameters(params: Params) -> Measured:
    """Parameters: how many numbers the block learns."""
    return exact(sum(cost.parameters(settings_of(params, Config)).values()))


@reading(unit="count", takes=(*names_of(Config), "tokens"))
def attention_work(params: Params) -> Measured:
    """Work of attention: floating point operations of scores and weighted sum, for so many words."""
    return exact(cost.flops(settings_of(params, Config), tokens_of(params))["scores and weighted sum"])


@reading(unit="count", takes=(*names_of(Config), "tokens"))
def block_work(params: Params) -> Measured:
    """Work of the block: floating point operations of all its matrix products, for so many words."""
    return exact(sum(cost.flops(settings_of(params, Config), tokens_of(params)).values()))
