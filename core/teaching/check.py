"""Eight questions before a class and after it, and what the class has gained between them.

The normalised gain is what was gained of what could be gained, of the averages of the class (Hake, 1998): (after − before) / (1 − before).
"""

import functools
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from core.measure.intervals import Interval, half_width

FILE = Path(__file__).parent.parent.parent / "lessons" / "check" / "eight.toml"


@dataclass(frozen=True)
class Item:
    """right: the number of the right option, from 0."""

    asks: str
    options: tuple[str, ...]
    right: int


@functools.cache
def items() -> tuple[Item, ...]:
    """The questions, in their order."""
    given = tomllib.loads(FILE.read_text(encoding="utf-8-sig"))["questions"]
    return tuple(Item(each["asks"], tuple(each["options"]), each["right"] - 1) for each in given)


def write(answers: Sequence[int | None]) -> str:
    """All answers as one line; None: no answer to that one."""
    return json.dumps(list(answers), separators=(",", ":"))


def read(text: str) -> list[int | None]:
    """Raises ValueError for what are no answers to these questions."""
    try:
        given = json.loads(text)
    except RecursionError:
        given = None
    if not isinstance(given, list) or len(given) != len(items()):
        raise ValueError(f"there must be {len(items())} answers")
    for item, answer in zip(items(), given):
        if answer is not None and (type(answer) is not int or not 0 <= answer < len(item.options)):
            raise ValueError("an answer must be one of those that are offered")
    return given


def score(text: str) -> float:
    """The share that is right, from 0 to 1; what is not answered is not right. Raises ValueError as read() does."""
    return fmean(answer == item.right for item, answer in zip(items(), read(text)))


def gain(before: Mapping[int, float], after: Mapping[int, float]) -> Interval:
    """The class's normalised gain over the seats that answered both times, with its 95 % interval (jackknife over seats: Tukey, 1958).

    before, after: seat -> score(). NaN where nothing could be gained, or nobody answered both.
    """
    both = sorted(before.keys() & after.keys())
    pairs = [(before[seat], after[seat]) for seat in both]
    whole, n = _gain(pairs), len(pairs)
    if n < 2 or math.isnan(whole):
        return Interval(whole, math.nan, math.nan, n)
    parts = [_gain(pairs[:at] + pairs[at + 1 :]) for at in range(n)]
    middle = fmean(parts)
    error = math.sqrt((n - 1) / n * sum((part - middle) ** 2 for part in parts))
    reach = half_width(error, n)
    return Interval(whole, whole - reach, min(1.0, whole + reach), n)


def _gain(pairs: Sequence[tuple[float, float]]) -> float:
    if not pairs:
        return math.nan
    before, after = fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs)
    return (after - before) / (1 - before) if before < 1 else math.nan
