"""Kinds of predictions: what an answer to each is, and whether what came out is as predicted.

One rule: as predicted where the whole interval of what was measured lies in what was predicted, not as predicted where the
whole interval lies outside, undecided where the seeds do not tell.
"""

import json
import math
from itertools import combinations, pairwise
from typing import Any, Protocol

from core.measure.intervals import Interval, Paired, paired, together
from core.settings.menu import Menu
from core.teaching.lessons.lesson import Prediction
from core.teaching.lessons.outcome import Outcome

AS_PREDICTED, NOT_AS_PREDICTED, UNDECIDED = VERDICTS = ("as_predicted", "not_as_predicted", "undecided")
SURE = range(4)  # from a guess to certain
BECAUSE = 300  # letters
Answer = Any  # what JSON has: a number, or a list
Pair = tuple[str, str]  # names of values, the one that was put higher first


class Kind(Protocol):
    """An entry of the menu."""

    def check(self, asked: Prediction, answer: Answer, /) -> Answer:
        """The answer, if it is one. Raises ValueError."""

    def verdict(self, asked: Prediction, answer: Answer, out: Outcome, /) -> str: ...


kind: Menu[Kind] = Menu("Kinds of predictions")


def judged(found: Interval, low: float, high: float) -> str:
    """Whether an interval lies from `low` up to, but not including, `high`."""
    if not found.low <= found.high:  # there is none
        return UNDECIDED
    if low <= found.low and found.high < high:
        return AS_PREDICTED
    return NOT_AS_PREDICTED if found.high < low or found.low >= high else UNDECIDED


@kind
class choice:
    """One of a few: which of the statements is right."""

    @staticmethod
    def check(asked: Prediction, answer: Answer) -> int:
        if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(asked.options):
            return answer
        raise ValueError(f"the answer must be one of the {len(asked.options)} that are offered")

    @staticmethod
    def verdict(asked: Prediction, answer: int, out: Outcome) -> str:
        option = asked.options[answer]
        return judged(out.number.found, option.low, option.high)


@kind
class curve(choice):
    """Curve: which of three shapes it has."""


@kind
class number:
    """Number: how large it is, and within what range."""

    @staticmethod
    def check(asked: Prediction, answer: Answer) -> list[float]:
        scale = asked.scale
        assert scale is not None
        good = isinstance(answer, list) and len(answer) == 2 and all(type(each) in (int, float) for each in answer)
        if good and scale.low <= answer[0] <= scale.high and answer[1] in scale.within:
            return [float(answer[0]), float(answer[1])]
        raise ValueError(f"the answer must be a number from {scale.low:g} to {scale.high:g}, and one of the ranges")

    @staticmethod
    def verdict(asked: Prediction, answer: list[float], out: Outcome) -> str:
        low, high = interval_of(answer)
        return judged(out.number.found, low, math.nextafter(high, math.inf))


def interval_of(answer: list[float]) -> tuple[float, float]:
    """What a predicted number and its range reach from and to, without the rounding of their sum."""
    guess, within = answer
    return round(guess - within, 9), round(guess + within, 9)


@kind
class rank:
    """Rank: which is largest, which comes next."""

    @staticmethod
    def check(asked: Prediction, answer: Answer) -> list[str]:
        names = [each for each in answer if isinstance(each, str)] if isinstance(answer, list) else []
        if sorted(names) == sorted(asked.ranked) and len(names) == len(answer):
            return names
        raise ValueError(f"the answer must put all {len(asked.ranked)} in order, each of them once")

    @staticmethod
    def verdict(asked: Prediction, answer: list[str], out: Outcome) -> str:
        found = differences(answer, out)
        if any(each.high < 0 for each in found.values()):
            return NOT_AS_PREDICTED
        return AS_PREDICTED if all(found[pair].clear for pair in pairwise(answer)) else UNDECIDED


def differences(order: list[str], out: Outcome) -> dict[Pair, Paired]:
    """Every pair -> the one that was put higher minus the other, seed by seed; their intervals hold together (Holm)."""
    pairs = list(combinations(order, 2))

    def compare(pair: Pair, level: float) -> Paired:
        return paired(out.values[pair[0]].values, out.values[pair[1]].values, level=level)

    return together(compare, pairs)


def clear_pairs(order: list[str], out: Outcome) -> list[Pair]:
    """Return the pairs that can be told apart, the larger one first."""
    measured = sorted(order, key=lambda name: -out.values[name].found.mean)
    return [pair for pair, gap in differences(measured, out).items() if gap.clear]


def undecided_pairs(order: list[str], out: Outcome) -> list[Pair]:
    """Those next to each other, as measured, that cannot be told apart."""
    measured = sorted(order, key=lambda name: -out.values[name].found.mean)
    found = differences(measured, out)
    return [pair for pair in pairwise(measured) if not found[pair].clear]


def check(asked: Prediction, answer: Answer) -> Answer:
    """The answer, if it is one of this prediction's. Raises ValueError, in words."""
    return kind[asked.kind].check(asked, answer)


def verdict(asked: Prediction, answer: Answer, out: Outcome) -> str:
    """One of VERDICTS."""
    return kind[asked.kind].verdict(asked, answer, out)


def write(answer: Answer) -> str:
    """As one line of text, by which equal answers are counted."""
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False)


def read(asked: Prediction, text: str) -> Answer:
    """Raises ValueError for what write() has not written of an answer to this."""
    try:
        return check(asked, json.loads(text))
    except RecursionError:
        raise ValueError("the answer cannot be read") from None
