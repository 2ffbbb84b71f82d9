"""Trends of effects over sizes: does what a part is worth hold in larger models?

The rule, stated before any ladder was trained:

- An effect is the difference of a variant from the baseline of the same size, paired by seed.
- Each seed has a line through its effects over the sizes (least squares). The mean of the slopes
  has an interval over seeds (Student's t), so noise may differ from size to size.
- The slopes of all variants of a task are corrected together (Holm).
- "flips": at two sizes the variant differs from the baseline, with opposite signs.
- "grows": the slope differs from 0, and the line ends farther from 0 than it began.
- "shrinks": the slope differs from 0, and the line ends nearer to 0.
- "steady": from the first to the last size the line changes by less than the margin, with its whole
  interval.
- "cannot be told": none of these, or fewer than three sizes or three seeds.

The prediction for another size extends each seed's line. Its interval has two parts: the spread of
the extended lines over seeds, and the noise of the effect that will be measured there.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from core.measure.intervals import (
    LEVEL,
    Interval,
    clip_interval,
    correct_together,
    excludes_zero,
    half_width,
    paired,
)
from core.measure.power import LEAST_SEEDS
from core.measure.verdicts import CHANGE, DIFFERENCE

GROWS = "grows"
SHRINKS = "shrinks"
FLIPS = "flips"
STEADY = "steady"
UNTOLD = "cannot be told"
LEAST_SIZES = 3

Key = TypeVar("Key", bound=Hashable)
Effects = Mapping[int, Mapping[int, float]]  # size -> seed -> difference from the baseline


class Trend(NamedTuple):
    """Change of an effect per size: mean slope over n seeds, its interval, and p of the t-test.

    first, last: mean line at the smallest and the largest size. sizes: number of steps between
    them. NaN with too few sizes or seeds.
    """

    slope: float
    low: float
    high: float
    p: float
    n: int
    first: float
    last: float
    sizes: int


NO_TREND = Trend(math.nan, math.nan, math.nan, math.nan, 0, math.nan, math.nan, 0)


def measure_trends(effects: Mapping[Key, Effects], answers: Mapping[Key, int]) -> dict[Key, Trend]:
    """Return the trend of every variant of a task, corrected together.

    Args:
        effects: Differences from the baseline, by variant.
        answers: Number of test answers of the task, by variant: a difference of one answer is the
            least noise that counts.
    """
    return correct_together(
        lambda key, level: measure_trend(effects[key], answers[key], level), effects
    )


def measure_trend(effects: Effects, answers: int, level: float = LEVEL) -> Trend:
    """Return the trend of one variant on the seeds that all sizes share; see measure_trends()."""
    sizes, seeds, values = _align(effects)
    if len(sizes) < LEAST_SIZES or len(seeds) < LEAST_SEEDS:
        return NO_TREND
    slopes, starts = np.polyfit(sizes, values, 1)
    spread = 1 / answers / math.sqrt(sum((size - np.mean(sizes)) ** 2 for size in sizes))
    by_seed = dict(zip(seeds, _without_rounding(slopes)))
    gap = paired(by_seed, dict.fromkeys(seeds, 0.0), level=level, least_spread=spread)
    first, last = (float(np.mean(starts + slopes * size)) for size in (sizes[0], sizes[-1]))
    return Trend(gap.mean, gap.low, gap.high, gap.p, gap.n, first, last, sizes[-1] - sizes[0])


def judge_trend(trend: Trend, verdicts: Sequence[tuple[str, float]], margin: float) -> str:
    """Return GROWS, SHRINKS, FLIPS, STEADY or UNTOLD, by the rule above.

    Args:
        trend: Trend of the variant.
        verdicts: (verdict, mean difference) at each size.
        margin: Change over all sizes that does not matter.
    """
    signs = {math.copysign(1, mean) for verdict, mean in verdicts if verdict == DIFFERENCE}
    if len(signs) == 2:
        return FLIPS
    if excludes_zero(trend.low, trend.high):
        return GROWS if abs(trend.last) > abs(trend.first) else SHRINKS
    if -margin < trend.low * trend.sizes and trend.high * trend.sizes < margin:
        return STEADY
    return UNTOLD


def predict_effect(effects: Effects, size: int, n: int, level: float = LEVEL) -> Interval:
    """Predict the mean effect of n seeds at another size, with its prediction interval.

    The interval is cut to possible differences; NaN with too few sizes or seeds.

    Args:
        effects: Differences from the baseline, by size and seed.
        size: Size to predict.
        n: Number of seeds that will be measured there.
        level: Level of the interval.
    """
    sizes, seeds, values = _align(effects)
    if len(sizes) < LEAST_SIZES or len(seeds) < LEAST_SEEDS:
        return Interval(math.nan, math.nan, math.nan, len(seeds))
    slopes, starts = np.polyfit(sizes, values, 1)
    ahead = starts + slopes * size
    noise = float(np.mean(np.var(values, axis=1, ddof=1)))
    error = math.sqrt(float(np.var(ahead, ddof=1)) / len(seeds) + noise / n)
    reach = half_width(error, len(seeds), level)
    mean = float(np.clip(np.mean(ahead), *CHANGE))
    return Interval(mean, *clip_interval(mean - reach, mean + reach, CHANGE), len(seeds))


def _align(effects: Effects) -> tuple[list[int], list[int], np.ndarray]:
    """Return the sizes, the seeds that all sizes have, and their effects (size × seed)."""
    sizes = sorted(size for size, by_seed in effects.items() if by_seed)
    known = [
        {seed for seed, value in effects[size].items() if not math.isnan(value)} for size in sizes
    ]
    seeds = sorted(set.intersection(*known)) if known else []
    values = np.array([[effects[size][seed] for seed in seeds] for size in sizes])
    return sizes, seeds, values


def _without_rounding(slopes: np.ndarray) -> list[float]:
    """Return slopes without what least squares add in the last digits, so that 0 is 0."""
    return [round(float(slope), 9) + 0.0 for slope in slopes]
