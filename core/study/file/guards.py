"""What makes a comparison fair: as many parameters or operations for all, and for each model the learning rate that suits it."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.experiments.training.plan import BASELINE
from core.experiments.training.plan import guards as held_alike
from core.settings.setting import ConfigError
from core.settings.wording import shorten
from core.study.file.mistakes import Mistakes
from core.study.plan import TRAINING, TaskSetup
from core.train.match import match
from core.train.search import at_rate, search

MOST_RATES = 12
Variants = dict[str, dict[str, Any]]  # name -> what it changes
Rates = Callable[[float], Sequence[float]]  # of a model, by the one that it would have anyway


def name_at(variant: str, rate: float) -> str:
    """A model's name at one of the rates: "QK-norm, learning rate 0.01"; of the baseline "learning rate 0.01"."""
    return TRAINING["learning_rate"].change(rate) if variant == BASELINE else at_rate(variant, rate)


def without_rate(name: str, rate: float) -> str:
    """The model that was given this name at this rate, or at the rate that it would have anyway."""
    words = TRAINING["learning_rate"].change(rate)
    return BASELINE if name == words else name.removesuffix(f", {words}")


def at_every_rate(setting: TaskSetup, variants: Variants, rates: Rates, mistakes: Mistakes) -> Variants:
    """Each variant as it is, then the baseline and each of them at every other rate. None may have the name of another. Raises
    ConfigError for a baseline that cannot be trained."""
    base = setting.training({}).learning_rate
    every: Mapping[str, dict[str, Any]] = {BASELINE: {}, **variants}
    own = {name: changes.get("learning_rate", base) for name, changes in every.items()}
    searched = {
        name_at(name, rate): changes | {"learning_rate": rate}
        for name, changes in every.items()
        for rate in rates(own[name])
        if rate != own[name]
    }
    alike: dict[frozenset[tuple[str, Any]], str] = {}
    for name, changes in every.items() if searched else ():
        twin = alike.setdefault(frozenset(changes.items() - {("learning_rate", changes.get("learning_rate"))}), name)
        if twin != name:
            words = f"search: {shorten(name)} differs from {shorten(twin)} in nothing but the learning rate, which is searched."
            mistakes.add(("variants", name), words)
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


def read_search(given: Any, mistakes: Mistakes) -> Rates:
    """At which learning rates each model is trained besides its own: an entry of the menu, or a list, the same for all."""
    if isinstance(given, str) and given in search:
        return search[given]
    try:
        if not isinstance(given, list) or len(given) > MOST_RATES:
            raise ConfigError("search", "")
        rates = list(dict.fromkeys(TRAINING["learning_rate"].check("search", rate) for rate in given))
        return lambda own: rates
    except ConfigError as error:
        why = f" {error}" if str(error) else ""
        said = (
            f"search is {shorten(given)}; it must be one of {', '.join(search)}, or a list of at most {MOST_RATES} learning "
            f"rates.{why}"
        )
        mistakes.add(("search",), said)
        return search["none"]


def search_of(source: str) -> str:
    """How the file of a study has learning rates searched: an entry of the menu, or "" for a list of its own."""
    given = tomllib.loads(source).get("search", "none")
    return given if isinstance(given, str) else "" if given else "none"


def guards(source: str) -> list[str]:
    """What the file of a study, as the store has it, holds alike for all its models (core.experiments.training.plan.guards)."""
    return held_alike(tomllib.loads(source).get("equal", "nothing"), search_of(source) != "none")
