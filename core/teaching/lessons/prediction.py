"""Predictions: the predicted quantity, answers, and their verdict.

One rule: as predicted if the whole interval of the measured value lies in the predicted range, not
as predicted if the whole interval lies outside, undecided otherwise.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from core.measure.intervals import (
    ANYTHING,
    Interval,
    Paired,
    Within,
    correct_together,
    interval,
    paired,
)
from core.settings.menu import Menu
from core.teaching.lessons.lesson import Lesson, Number, Prediction
from core.teaching.lessons.readings import EXACT, Measured, measure_reading, reading

AS_PREDICTED = "as_predicted"
NOT_AS_PREDICTED = "not_as_predicted"
UNDECIDED = "undecided"
VERDICTS = (AS_PREDICTED, NOT_AS_PREDICTED, UNDECIDED)
KINDS = ("choice", "curve", "number", "rank")
SURE = range(4)  # from a guess to certain
BECAUSE = 300  # characters
Answer = Any  # what JSON has: a number, or a list
Pair = tuple[str, str]  # names of values, the larger one first


@dataclass(frozen=True)
class Entry:
    """Stored prediction. carried: the answer to the transfer question, or None."""

    answer: Answer
    sure: int
    because: str = ""
    carried: int | None = None


@dataclass(frozen=True)
class Outcome:
    """Measured values of a lesson by name, and the predicted quantity."""

    values: Mapping[str, Measured]
    number: Measured
    unit: str


# How one number follows from those of a seed. unit: of the result; "" for that of the reading.
combine: Menu[Callable[..., float]] = Menu("Numbers", unit="")


combine.add("value", lambda value: value, label="Value", help="the number itself.")
combine.add(
    "ratio",
    lambda a, other: a / other,
    label="Ratio",
    help="the first divided by the second, seed by seed.",
    unit="times",
)
combine.add(
    "difference",
    lambda a, other: a - other,
    label="Difference",
    help="the first minus the second, seed by seed.",
    unit="points",
)
combine.add(
    "growth",
    lambda start, end: end / start,
    label="Growth",
    help="the end of the curve divided by its start, seed by seed.",
    unit="times",
)


def measure_outcome(lesson: Lesson) -> Outcome:
    """Measure all values of a lesson and the number to predict; ConfigError if data lacks.

    The lesson must have a prediction.
    """
    assert lesson.prediction is not None
    values = {
        name: measure_reading(value.reading, value.params) for name, value in lesson.values.items()
    }
    number = lesson.prediction.number
    within = reading[lesson.values[number.of[0]].reading].within
    return Outcome(values, _combine_values(values, number, within), unit_of(lesson))


def unit_of(lesson: Lesson) -> str:
    """Return the unit, "percent", "points", …, of a lesson's prediction, which it must have.

    Choices, curves and ranks have such a number, too.
    """
    assert lesson.prediction is not None
    number = lesson.prediction.number
    unit: str = combine[number.kind].unit  # type: ignore[attr-defined]
    return unit or reading[lesson.values[number.of[0]].reading].unit


def _combine_values(values: Mapping[str, Measured], number: Number, within: Within) -> Measured:
    """Compute the predicted number by seed: a value, its growth, a ratio or a difference.

    Args:
        values: Measured values by name.
        number: How it follows from them.
        within: Range of possible values.
    """
    first = values[number.of[0]]
    if number.kind == "value":
        return first
    if number.kind == "growth":
        assert first.curve is not None
        curves = first.curve.items()
        grown = {
            seed: combine["growth"](curve[min(curve)], curve[max(curve)]) for seed, curve in curves
        }
        return Measured(grown, interval(grown.values(), (0.0, math.inf)), first.per)
    second = values[number.of[1]]
    seeds = [seed for seed in first.values if seed in second.values]
    combined = {
        seed: combine[number.kind](first.values[seed], second.values[seed]) for seed in seeds
    }
    if first.per == second.per == EXACT:
        (only,) = combined.values()
        return Measured(combined, Interval(only, only, only, 1), EXACT)
    if number.kind == "difference":
        within = within[0] - within[1], within[1] - within[0]
    else:
        within = (0.0, math.inf) if within[0] >= 0 else ANYTHING
    return Measured(combined, interval(combined.values(), within), first.per)


def judge_interval(measured: Interval, low: float, high: float) -> str:
    """Return AS_PREDICTED (interval in [low, high)), NOT_AS_PREDICTED (outside) or UNDECIDED."""
    if not measured.low <= measured.high:  # NaN
        return UNDECIDED
    if low <= measured.low and measured.high < high:
        return AS_PREDICTED
    return NOT_AS_PREDICTED if measured.high < low or measured.low >= high else UNDECIDED


def predicted_range(answer: list[float]) -> tuple[float, float]:
    """Return (low, high) of a numeric answer [guess, ± margin]; not cut to the scale."""
    guess, within = answer
    return round(guess - within, 9), round(guess + within, 9)


def differences(order: list[str], out: Outcome) -> dict[Pair, Paired]:
    """Return (earlier, later) in `order` -> difference earlier − later, paired by seed.

    Holm-corrected together.
    """

    def compare(pair: Pair, level: float) -> Paired:
        return paired(out.values[pair[0]].values, out.values[pair[1]].values, level=level)

    return correct_together(compare, list(combinations(order, 2)))


def clear_pairs(names: list[str], out: Outcome) -> list[Pair]:
    """Return all pairs of these values that differ significantly (Holm), the larger one first."""
    measured = sorted(names, key=lambda name: -out.values[name].found.mean)
    return [pair for pair, gap in differences(measured, out).items() if gap.clear]


def undecided_pairs(names: list[str], out: Outcome) -> list[Pair]:
    """Return neighbours by measured mean that do not differ significantly, the larger first."""
    measured = sorted(names, key=lambda name: -out.values[name].found.mean)
    pairs = differences(measured, out)
    return [pair for pair in pairwise(measured) if not pairs[pair].clear]


def check_answer(prediction: Prediction, answer: Answer) -> Answer:
    """Return a valid answer (index from 0, all names in order, [number, ±]); else ValueError."""
    if prediction.kind in ("choice", "curve"):
        if type(answer) is int and 0 <= answer < len(prediction.options):
            return answer
        raise ValueError(
            f"the answer must be one of the {len(prediction.options)} that are offered"
        )
    parts = answer if isinstance(answer, list) else []
    if prediction.kind == "rank":
        if all(isinstance(name, str) for name in parts) and sorted(parts) == sorted(
            prediction.ranked
        ):
            return parts
        raise ValueError(
            f"the answer must put all {len(prediction.ranked)} in order, each of them once"
        )
    scale = prediction.scale
    assert scale is not None
    is_pair = len(parts) == 2 and all(type(part) in (int, float) for part in parts)
    if is_pair and scale.low <= parts[0] <= scale.high and parts[1] in scale.within:
        return [float(parts[0]), float(parts[1])]
    raise ValueError(
        f"the answer must be a number from {scale.low:g} to {scale.high:g}, and one of the ranges"
    )


def verdict(prediction: Prediction, answer: Answer, out: Outcome) -> str:
    """Return one of VERDICTS for an answer; in a rank, ties are UNDECIDED."""
    if prediction.kind in ("choice", "curve"):
        return judge_interval(
            out.number.found, prediction.options[answer].low, prediction.options[answer].high
        )
    if prediction.kind == "number":
        low, high = predicted_range(answer)
        return judge_interval(out.number.found, low, math.nextafter(high, math.inf))
    pairs = differences(answer, out)
    if any(gap.high < 0 for gap in pairs.values()):
        return NOT_AS_PREDICTED
    return AS_PREDICTED if all(pairs[pair].clear for pair in pairwise(answer)) else UNDECIDED


def write_answer(answer: Answer) -> str:
    """Return an answer as one line of JSON, by which equal answers are counted."""
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False)


def read_answer(prediction: Prediction, text: str) -> Answer:
    """Parse and check an answer in JSON; ValueError if it is not valid."""
    return check_answer(prediction, json.loads(text))
