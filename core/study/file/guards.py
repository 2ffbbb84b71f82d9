"""What makes a comparison fair: as many parameters or operations for all, and for each model the learning rate that suits it."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from core.experiments.training.plan import BASELINE
from core.settings.setting import ConfigError
from core.settings.wording import shorten
from core.study.file.mistakes import Mistakes
from core.study.plan import TRAINING
from core.train.match import match

MOST_RATES = 12
SEARCHED = "learning rate searched"
Variants = dict[str, dict[str, Any]]  # name -> what it changes


def name_at(variant: str, rate: float) -> str:
    """A model's name at one of the rates: "QK-norm, learning rate 0.01"; of the baseline "learning rate 0.01"."""
    words = TRAINING["learning_rate"].change(rate)
    return words if variant == BASELINE else f"{variant}, {words}"


def without_rate(name: str, rate: float) -> str:
    """The model that was given this name at this rate, or at the rate that it would have anyway."""
    words = TRAINING["learning_rate"].change(rate)
    return BASELINE if name == words else name.removesuffix(f", {words}")


def at_every_rate(variants: Variants, rates: Sequence[float], mistakes: Mistakes) -> Variants:
    """Each variant as it is, then the baseline and each of them at every rate: the same ones for all. None may have the name of
    another."""
    every: Mapping[str, dict[str, Any]] = {BASELINE: {}, **variants}
    searched = {
        name_at(name, rate): changes | {"learning_rate": rate} for name, changes in every.items() for rate in rates
    }
    for name in variants.keys() & searched.keys():
        mistakes.add(
            ("search",), f"search: a model at one of the rates is called {shorten(name)}, and so is a variant."
        )
    return variants | searched


def read_equal(given: Any, mistakes: Mistakes) -> str:
    """What all models of a task have as much of as its baseline."""
    if isinstance(given, str) and given in match:
        return given
    mistakes.add(("equal",), f"equal is {shorten(given)}; it must be one of {', '.join(match)}.")
    return "nothing"


def read_rates(given: Any, mistakes: Mistakes) -> tuple[float, ...]:
    """The learning rates among which each model's is searched; none: it is not."""
    try:
        if not isinstance(given, list) or len(given) > MOST_RATES:
            raise ConfigError("search", "")
        return tuple(dict.fromkeys(TRAINING["learning_rate"].check("search", rate) for rate in given))
    except ConfigError as error:
        why = f" {error}" if str(error) else ""
        said = f"search is {shorten(given)}; it must be a list of at most {MOST_RATES} learning rates.{why}"
        mistakes.add(("search",), said)
        return ()


def guards(source: str) -> list[str]:
    """What the file of a study, as the store has it, holds alike for all its models: ["equal parameters", SEARCHED]."""
    given = tomllib.loads(source)
    kind = given.get("equal", "nothing")
    words = [f"equal {match.label(kind)}".replace("Parameters", "parameters")] if kind != "nothing" else []
    return [*words, *[SEARCHED] * bool(given.get("search"))]
