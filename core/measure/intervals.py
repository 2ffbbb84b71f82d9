"""Statistics over seeds: means with intervals, and whether a difference is significant.

One rule everywhere: a difference is significant if its interval excludes 0. Several that are
compared together get wider intervals, and p to match (Holm, 1979).
"""

import importlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import NormalDist
from types import ModuleType
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

Within = tuple[float, float]  # the least and the most that something can be

LEVEL = 0.95
LARGEST = 700.0  # whose exponential is still a number
ANYTHING: Within = (-math.inf, math.inf)

Key = TypeVar("Key", bound=Hashable)


class Interval(NamedTuple):
    """Mean over n seeds with its 95 % interval (Student's t); NaN ends for fewer than two."""

    mean: float
    low: float
    high: float
    n: int


class Paired(NamedTuple):
    """Mean paired difference, its interval, and p of the paired t-test (Student, 1908).

    reach: half-width of the interval, before it is cut to possible values; a smaller difference
        could not have been distinguished from this much noise.
    """

    mean: float
    low: float
    high: float
    n: int
    p: float
    reach: float

    @property
    def clear(self) -> bool:
        """Whether the difference is significant: its interval excludes 0."""
        return excludes_zero(self.low, self.high)


def excludes_zero(low: float, high: float) -> bool:
    """Return whether 0 lies outside an interval, not on its ends; False for NaN ends."""
    return low > 0 or high < 0


def interval(values: Iterable[float], within: Within = ANYTHING, level: float = LEVEL) -> Interval:
    """Return the Interval of independent values, one per seed; NaN are left out.

    within: range of possible values. An interval is cut there, which leaves its coverage as it is.
    """
    values = [value for value in values if not math.isnan(value)]
    mean, error = _mean_and_error(values)
    reach = half_width(error, len(values), level)
    return Interval(mean, *clip_interval(mean - reach, mean + reach, within), len(values))


def half_width(error: float, n: int, level: float = LEVEL) -> float:
    """Return the half-width of a mean's t-interval from its standard error; NaN for n < 2."""
    return (
        float(_import_scipy_special().stdtrit(n - 1, (1 + level) / 2)) * error
        if n > 1
        else math.nan
    )


def _import_scipy_special() -> ModuleType:
    """Import and return scipy.special: 12 MB, needed only when somebody compares seeds."""
    return importlib.import_module("scipy.special")


def clip_interval(low: float, high: float, within: Within) -> tuple[float, float]:
    """Clip an interval to the range of possible values; NaN ends stay NaN."""
    return (max(low, within[0]) if low == low else low), (
        min(high, within[1]) if high == high else high
    )


def wilson(right: int, total: int) -> tuple[float, float, float]:
    """Return right / total and its 95 % score interval's ends (Wilson, 1927); NaN for total 0."""
    if not total:
        return math.nan, math.nan, math.nan
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share = right / total
    middle = share + z * z / (2 * total)
    wide = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    low, high = ((middle + side * wide) / (1 + z * z / total) for side in (-1, 1))
    return share, max(0.0, low) if right else 0.0, min(1.0, high) if right < total else 1.0


def geometric(values: Iterable[float]) -> Interval:
    """Return the geometric mean and interval of all but NaN; NaN if a value is 0 or below."""
    values = [value for value in values if not math.isnan(value)]
    of_logs = interval([math.log(value) if value > 0 else math.nan for value in values])
    if of_logs.n < len(values):
        return Interval(math.nan, math.nan, math.nan, len(values))
    mean, low, high = (
        math.nan if math.isnan(value) or value > LARGEST else math.exp(value)
        for value in of_logs[:3]
    )
    return Interval(mean, low, high, of_logs.n)


def paired(
    values: Mapping[int, float],
    base: Mapping[int, float],
    within: Within = ANYTHING,
    level: float = LEVEL,
    least_spread: float = 0.0,
) -> Paired:
    """Return mean values − base over common seeds, its t-interval, n, p, reach; NaN left out.

    Where all differences are the same to the last bit there is no noise to compare with, unless
    `least_spread` says how much there must be: p is 0, or 1 if they are 0.

    Args:
        values: Values by seed.
        base: Values of the baseline by seed.
        within: Range of possible differences; the interval is cut there.
        level: Level of the interval.
        least_spread: Standard deviation that differences have at least, unless all are 0.
    """
    both = [values[seed] - base[seed] for seed in values if seed in base]
    both = [difference for difference in both if not math.isnan(difference)]
    mean, error = _mean_and_error(both)
    if len(both) > 1 and any(both):
        error = max(error, least_spread / math.sqrt(len(both)))
    reach = half_width(error, len(both), level)
    gap = Interval(mean, *clip_interval(mean - reach, mean + reach, within), len(both))
    if gap.n < 2:
        p = math.nan
    elif error == 0:
        p = 1.0 if gap.mean == 0 else 0.0
    else:
        p = 2 * float(_import_scipy_special().stdtr(gap.n - 1, -abs(gap.mean) / error))
    return Paired(*gap, p, reach)


class Tested(Protocol):
    """A difference with the p of its test."""

    @property
    def p(self) -> float:
        """The p of its test; NaN without one."""

    def _replace(self, *, p: float) -> Self: ...


Gap = TypeVar("Gap", bound=Tested)


def correct_together(
    compare: Callable[[Key, float], Gap], keys: Iterable[Key], looks: int = 1, others: int = 0
) -> dict[Key, Gap]:
    """Return compare(key, level) by key, its level and p by Holm, × looks, counting others.

    Each interval has the level at which Holm's procedure tests its difference. So where both come
    from one test, it excludes 0 exactly where the corrected p is below 0.05. Differences without a
    p (too few seeds) stay as they are, and do not count.

    Args:
        compare: Returns the difference of a key with its interval at a level, and its own p.
        keys: Keys of the differences that are corrected together.
        looks: How often the same differences are tested, with more seeds each time: each look may
            make this part of the errors (Bonferroni).
        others: Number of further differences that count, although they are not tested any more.
    """
    compared = {key: compare(key, LEVEL) for key in keys}
    order = sorted(
        (key for key in compared if not math.isnan(compared[key].p)),
        key=lambda key: compared[key].p,
    )
    p = 0.0
    level = LEVEL
    for left, key in zip(range(len(order) + others, others, -1), order):
        # Else one was not told from noise: the rest is held to the level at which that one was
        # tested.
        if p < 1 - LEVEL:
            level = 1 - (1 - LEVEL) / (left * looks)
        p = max(p, min(1.0, left * looks * compared[key].p))
        compared[key] = compare(key, level)._replace(p=p)
    return compared


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean (NaN for none or overflow) and its standard error (NaN below two values)."""
    if not values:
        return math.nan, math.nan
    if len(set(values)) == 1:  # to the last bit, which fsum and division would lose
        return values[0], 0.0 if len(values) > 1 else math.nan
    try:
        mean = math.fsum(values) / len(values)
        spread = math.fsum((value - mean) ** 2 for value in values)
    except (OverflowError, ValueError):  # too large to be squared, or ∞ − ∞
        return math.nan, math.nan
    return mean, math.sqrt(spread / (len(values) - 1) / len(values))


# shares are counted in steps of this part, or of their common denominator where that is coarser
SCALE = 10_000


def accuracy_change(differences: Iterable[float], level: float = LEVEL) -> Paired:
    """Return the mean accuracy difference (shares) of texts, its interval and exact sign-flip p.

    p: of the exact test by sign flips (Fisher, 1935), which for texts of one question each is
        McNemar's (1947). The interval: for those Tango's (1998), which inverts the score test; for
        texts of several questions Student's t. Where the exact test is not significant at this
        level, the interval is widened to include 0. NaN are left out.
    """
    values = [
        Fraction(value).limit_denominator(SCALE) for value in differences if not math.isnan(value)
    ]
    n = len(values)
    if n < 2:
        return Paired(
            float(values[0]) if n else math.nan, math.nan, math.nan, n, math.nan, math.nan
        )
    mean = float(sum(values) / n)
    p = sign_flips(values)
    if all(abs(value) in (0, 1) for value in values):
        low, high = tango(values.count(Fraction(1)), values.count(Fraction(-1)), n, level)
    else:
        share = interval(map(float, values), (-1.0, 1.0), level)
        low = share.low
        high = share.high
    if p >= 1 - level:
        low = min(low, 0.0)
        high = max(high, 0.0)
    return Paired(mean, *clip_interval(low, high, (-1.0, 1.0)), n, p, (high - low) / 2)


def sign_flips(values: list[Fraction]) -> float:
    """Return the exact two-sided p of the sum of values under random signs."""
    values = [value for value in values if value]
    scale = min(SCALE, math.lcm(*(value.denominator for value in values)))
    sizes = [round(abs(value) * scale) for value in values]
    chances = np.ones(1)  # of the sum of those that are positive
    for size in sizes:
        padded = np.zeros(len(chances) + size)
        padded[: len(chances)] += 0.5 * chances
        padded[size:] += 0.5 * chances
        chances = padded
    total = sum(sizes)
    observed = abs(sum(round(value * scale) for value in values))
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(chances[sums >= observed].sum()))


def tango(gained: int, lost: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return (low, high) of (gained − lost) / n from counts; n > 0 paired answers (Tango, 1998)."""
    z = NormalDist().inv_cdf((1 + level) / 2)

    def score(change: float) -> float:
        """Return how many standard errors the flips are from a true change of this size."""
        b = -gained - lost + (2 * n - gained + lost) * change
        c = -lost * change * (1 - change)
        # The likeliest share of losses, given the change.
        flipped = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        variance = n * (2 * flipped + change * (1 - change))
        distance = gained - lost - n * change
        if variance > 0:
            return distance / math.sqrt(variance)
        return math.copysign(math.inf, distance) if distance else 0.0

    observed = (gained - lost) / n
    return _bisect(score, z, -1.0, observed), _bisect(score, -z, observed, 1.0)


def _bisect(score: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Return where between low and high a falling function, `score`, passes the level."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if score(middle) > level else (low, middle)
    return (low + high) / 2
