"""A fair comparison: for each model the learning rate that suits it, out of as many as every other model has."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from core.settings.menu import Menu
from core.settings.setting import Setting
from core.train.settings import Training

# Learning rate that a model would have anyway -> those that are tried beside it.
search: Menu[Callable[[float], list[float]]] = Menu("Search")


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


def counted(rates: Sequence[float]) -> str:
    """Which rates were chosen, and on how many seeds: "0.003 on 2, 0.01 on 1"."""
    return ", ".join(f"{rate:g} on {rates.count(rate)}" for rate in sorted(set(rates)))


def late_loss(losses: Iterable[tuple[int, float]], end: int) -> float:
    """What a run is chosen by: the mean of its losses (step, loss) in the last tenth of the way to a step.

    A loss is that of new sequences, before anything is learnt from them (Dawid, 1984, calls that prequential). So it is a validation: not
    on the test set, and of this seed alone, which keeps the seeds independent of each other.
    """
    late = [loss for step, loss in losses if 10 * step > 9 * end and step <= end]
    return math.fsum(late) / len(late) if late else math.inf


def choose(losses: Mapping[float, float]) -> float:
    """losses: rate -> late_loss, infinite for a run that diverged -> the rate of the least, and of equals the lowest."""
    return min(losses, key=lambda rate: (losses[rate], rate))
