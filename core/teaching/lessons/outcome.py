"""What came out: the values of a lesson, and the one number that its prediction is about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.measure.intervals import ANYTHING, Interval, Within, interval
from core.settings.menu import Menu
from core.teaching.lessons.lesson import Lesson, Number
from core.teaching.lessons.readings import EXACT, Measured, measured, reading

Combine = Callable[..., float]


@dataclass(frozen=True)
class Outcome:
    """values: of the lesson, by their names; number: what the prediction is about; unit: how it is written."""

    values: Mapping[str, Measured]
    number: Measured
    unit: str


# How one number comes from those of a seed. unit: of the result; "" that of the reading.
combine: Menu[Combine] = Menu("Numbers", unit="")


@combine
def value(one: float) -> float:
    """Value: the number itself."""
    return one


@combine(unit="times")
def ratio(one: float, other: float) -> float:
    """Ratio: the first divided by the second, seed by seed."""
    return one / other


@combine(unit="points")
def difference(one: float, other: float) -> float:
    """Difference: the first minus the second, seed by seed."""
    return one - other


@combine(unit="times")
def growth(start: float, end: float) -> float:
    """Growth: the end of the curve divided by its start, seed by seed."""
    return end / start


def outcome(lesson: Lesson) -> Outcome:
    """Measure all of it. Raises ConfigError for what cannot be measured here."""
    values = {name: measured(each.reading, each.params) for name, each in lesson.values.items()}
    assert lesson.prediction is not None
    number = lesson.prediction.number
    kind = lesson.values[number.of[0]].reading
    return Outcome(values, _combined(values, number, reading[kind].within), unit_of(lesson))


def unit_of(lesson: Lesson) -> str:
    """How the number is written that its prediction is about."""
    assert lesson.prediction is not None
    number = lesson.prediction.number
    of_kind: str = combine[number.kind].unit  # type: ignore[attr-defined]
    return of_kind or reading[lesson.values[number.of[0]].reading].unit


def _combined(values: Mapping[str, Measured], number: Number, within: Within) -> Measured:
    first = values[number.of[0]]
    if number.kind == "value":
        return first
    if number.kind == "growth":
        assert first.curve is not None
        found = {seed: growth(each[min(each)], each[max(each)]) for seed, each in first.curve.items()}
        return Measured(found, interval(found.values(), (0.0, float("inf"))), first.per)
    second = values[number.of[1]]
    found = {
        seed: combine[number.kind](one, second.values[seed])
        for seed, one in first.values.items()
        if seed in second.values
    }
    if first.per == second.per == EXACT:
        (only,) = found.values()
        return Measured(found, Interval(only, only, only, 1), EXACT)
    return Measured(found, interval(found.values(), _bounds(number.kind, within)), first.per)


def _bounds(kind: str, within: Within) -> Within:
    """What a combination can be at all, given what its parts can be."""
    if kind == "difference":
        return within[0] - within[1], within[1] - within[0]
    return (0.0, float("inf")) if within[0] >= 0 else ANYTHING
