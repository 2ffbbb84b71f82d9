"""Two models' answers to the same questions: how much accuracy changes, when a few answers flip.

Student's t takes five flips of 256 for more than chance (p = 0.025) where an exact test does not (McNemar's: 0.0625).
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from core.measure.intervals import LEVEL, Paired, cut, interval

WITHIN = (-1.0, 1.0)
SCALE = 10_000  # shares are counted in steps of this part, or of their common denominator where that is coarser


def changed(differences: Iterable[float], level: float = LEVEL) -> Paired:
    """The mean change of accuracy over texts: what each gets right now − what it got right before, from −1 to 1.

    p: of the exact test by sign flips (Fisher, 1935), which for texts of one question each is McNemar's (1947). The interval: for those
    Tango's (1998), which inverts the score test; for texts of several questions Student's t. Where the exact test does not
    tell the change from chance at this level, it is widened to hold 0. NaN are left out.
    """
    values = [Fraction(value).limit_denominator(SCALE) for value in differences if not math.isnan(value)]
    n = len(values)
    if n < 2:
        return Paired(float(values[0]) if n else math.nan, math.nan, math.nan, n, math.nan, math.nan)
    mean, p = float(sum(values) / n), sign_flips(values)
    if all(abs(value) in (0, 1) for value in values):
        low, high = tango(values.count(Fraction(1)), values.count(Fraction(-1)), n, level)
    else:
        whole = interval(map(float, values), WITHIN, level)
        low, high = whole.low, whole.high
    if p >= 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    return Paired(mean, *cut(low, high, WITHIN), n, p, (high - low) / 2)


def sign_flips(values: list[Fraction]) -> float:
    """Two-sided p of their sum, if each had its sign by the toss of a coin: exact, over all 2ⁿ signs."""
    values = [value for value in values if value]
    scale = min(SCALE, math.lcm(*(value.denominator for value in values)))
    sizes = [round(abs(value) * scale) for value in values]
    chances = np.ones(1)  # of the sum of those that are positive
    for size in sizes:
        more = np.zeros(len(chances) + size)
        more[: len(chances)] += 0.5 * chances
        more[size:] += 0.5 * chances
        chances = more
    total = sum(sizes)
    observed = abs(sum(round(value * scale) for value in values))
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(chances[sums >= observed].sum()))


def tango(gained: int, lost: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """The interval of (gained − lost) / n, of n pairs of answers of which so many flipped either way (Tango, 1998)."""
    z = NormalDist().inv_cdf((1 + level) / 2)

    def score(change: float) -> float:
        """How many standard errors the flips are from what a true change of this size would give."""
        b = -gained - lost + (2 * n - gained + lost) * change
        c = -lost * change * (1 - change)
        flipped = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (
            4 * n
        )  # the likeliest share of losses, given the change
        variance = n * (2 * flipped + change * (1 - change))
        distance = gained - lost - n * change
        return (
            distance / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, distance) if distance else 0.0
        )

    observed = (gained - lost) / n
    return _where(score, z, -1.0, observed), _where(score, -z, observed, 1.0)


def _where(score: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Where the score, which falls as the change grows, passes the level between two changes."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if score(middle) > level else (low, middle)
    return (low + high) / 2
