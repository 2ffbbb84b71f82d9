"""A fair comparison: for each model the learning rate that suits it, out of as many as every other model has."""

import math
from collections.abc import Callable, Mapping

from core.settings.menu import Menu
from core.settings.setting import Setting
from core.train.settings import Training

# Learning rate that a model would have anyway -> those that are tried beside it.
search: Menu[Callable[[float], list[float]]] = Menu("Search")
ENOUGH = 2  # seeds, of which one can be chosen by the other


def _times(rate: float, factors: tuple[float, ...]) -> list[float]:
    """In three digits, as somebody would write them, and only those that a training may have."""
    known: Setting = Training.settings()["learning_rate"]
    rates = [float(f"{rate * factor:.3g}") for factor in factors]
    return [each for each in rates if (known.low or 0) <= each <= (known.high or math.inf) and each != rate]


@search
def none(rate: float) -> list[float]:
    """No: each model has the learning rate that is set."""
    return []


@search
def three(rate: float) -> list[float]:
    """Three rates: a third of the one that is set, that one, and three times as much."""
    return _times(rate, (1 / 3, 3))


@search
def five(rate: float) -> list[float]:
    """Five rates: from a ninth of the one that is set to nine times as much."""
    return _times(rate, (1 / 9, 1 / 3, 3, 9))


def at_rate(name: str, rate: float) -> str:
    """What a model is called at one of the rates: "QK-norm, learning rate 0.01"."""
    return f"{name}, {Training.settings()['learning_rate'].change(rate)}"


def choose(accuracies: Mapping[float, Mapping[int, float]], guessing: float) -> dict[int, float]:
    """accuracies: rate -> seed -> accuracy at the end, NaN for a run that diverged, nothing for one that is not that far yet;
    guessing: what such a run counts with -> seed -> the rate at which the other seeds were right most often, the least of equals.

    No seed is judged on what its rate was chosen by: test sets differ from seed to seed. A seed that lacks one of the rates is left
    out, and none is chosen by it; of fewer than two seeds nothing can be chosen.
    """
    seeds = set.intersection(*map(set, accuracies.values()))
    if len(seeds) < ENOUGH:
        return {}
    worth = {rate: {seed: _worth(of[seed], guessing) for seed in seeds} for rate, of in accuracies.items()}
    totals = {
        seed: {rate: math.fsum(of[other] for other in seeds - {seed}) for rate, of in worth.items()} for seed in seeds
    }
    return {seed: min(rate for rate in of if of[rate] == max(of.values())) for seed, of in sorted(totals.items())}


def _worth(accuracy: float, guessing: float) -> float:
    return guessing if math.isnan(accuracy) else accuracy
