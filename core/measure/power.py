"""Power of the paired t-test: how large an effect some seeds show, and how many seeds it takes.

An effect counts as shown by so many seeds if the test finds it in 80 % of all studies. Power is
that of the non-central t-distribution (Cohen, 1988, chapter 2).
"""

import bisect
import functools
import importlib
import math

POWER = 0.8
LEAST_SEEDS = 3  # for a verdict
MOST_SEEDS = 1000  # more are not counted: nobody trains them


def power(effect: float, spread: float, seeds: int, level: float) -> float:
    """Return how often (0 to 1) a paired t-test finds an effect at a level such as 0.95.

    Args:
        effect: True mean difference.
        spread: Standard deviation of the differences over seeds.
        seeds: Number of seeds, at least two.
        level: Level of the interval.
    """
    if not spread:
        return float(bool(effect))
    return _power_of_shift(abs(effect) / spread * math.sqrt(seeds), seeds, level)


def _power_of_shift(shift: float, seeds: int, level: float) -> float:
    """Return the power for an effect that is given in standard errors of the mean."""
    special = importlib.import_module("scipy.special")
    critical = float(special.stdtrit(seeds - 1, (1 + level) / 2))
    # Below −critical as above critical with the opposite shift: so the function stays accurate.
    return sum(1 - float(special.nctdtr(seeds - 1, side * shift, critical)) for side in (1, -1))


def smallest_effect(spread: float, seeds: int, level: float) -> float:
    """Return the smallest effect, in spread's unit, with 80 % power; NaN below three seeds.

    level: of the interval, such as 0.95.
    """
    if seeds < LEAST_SEEDS or math.isnan(spread):
        return math.nan
    return _smallest_shift(seeds, level) * spread / math.sqrt(seeds)


@functools.cache
def _smallest_shift(seeds: int, level: float) -> float:
    """Return the least effect, in standard errors of the mean, with 80 % power."""
    low = 0.0
    high = 1.0
    while _power_of_shift(high, seeds, level) < POWER:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _power_of_shift(middle, seeds, level) < POWER else (low, middle)
        )
    return high


def seeds_for(effect: float, spread: float, level: float) -> float:
    """Return how many seeds (3 or more) show an effect with 80 % power; infinity if over 1,000.

    NaN without a spread. level: of the interval, such as 0.95.
    """
    if math.isnan(spread):
        return math.nan
    numbers = range(LEAST_SEEDS, MOST_SEEDS + 1)
    index = bisect.bisect_left(
        numbers, True, key=lambda seeds: smallest_effect(spread, seeds, level) <= effect
    )
    return numbers[index] if index < len(numbers) else math.inf
