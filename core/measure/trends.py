"""Trends of effects over sizes: does what a part is worth hold in larger models?

The rule, stated before any ladder was trained:

- An effect is the difference of a variant from the baseline of the same size, paired by seed. Only
  seeds that all sizes have count.
- Each seed has a line through its effects over the sizes (least squares). The mean of the slopes
  has an interval over seeds (Student's t), so noise may differ from size to size.
- The slopes of all variants of a task are corrected together (Holm), and for the looks of a study
  that adds seeds where they are needed (Bonferroni). The other intervals have the same level.

The first of these that is true is the verdict:

- "flips": at two sizes the variant differs from the baseline, with opposite signs.
- "steady": between every two sizes the effect changes by less than the margin, with the whole
  interval.
- "grows": the slope differs from 0, and so does the mean effect over all sizes, with the same sign.
- "shrinks": the same with opposite signs.
- "cannot be told": always with fewer than three sizes or three seeds.

The prediction for the next size continues the line. Its interval is the wider of two, so that it
holds if either kind of error is large: one from the spread over seeds, and one from how far the
mean effects lie from their line. The second assumes nothing of seeds, and has few degrees of
freedom.
"""

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from core.measure.intervals import (
    LEVEL,
    Interval,
    Paired,
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

    begin, end: mean line at the smallest and at the largest size. middle: interval of the mean
    effect over all sizes. changes: interval that holds those of the change between any two sizes.
    NaN with too few sizes or seeds.
    """

    slope: float
    low: float
    high: float
    p: float
    n: int
    begin: float
    end: float
    middle: tuple[float, float]
    changes: tuple[float, float]


UNKNOWN = (math.nan, math.nan)
NO_TREND = Trend(math.nan, math.nan, math.nan, math.nan, 0, math.nan, math.nan, UNKNOWN, UNKNOWN)


def measure_trends(
    effects: Mapping[Key, Effects], answers: int, looks: int = 1
) -> dict[Key, Trend]:
    """Return the trend of every variant of a task, corrected together.

    Args:
        effects: Differences from the baseline, by variant.
        answers: Number of test answers of the task: a difference of one answer is the least noise
            that counts.
        looks: How often variants are compared, with more seeds each time.
    """
    return correct_together(
        lambda key, level: measure_trend(effects[key], answers, level), effects, looks
    )


def measure_trend(effects: Effects, answers: int, level: float = LEVEL) -> Trend:
    """Return the trend of one variant on the seeds that all sizes share; see measure_trends()."""
    sizes, seeds, values = _align(effects)
    if len(sizes) < LEAST_SIZES or len(seeds) < LEAST_SEEDS:
        return NO_TREND

    def compare(by_seed: np.ndarray, least_spread: float) -> Paired:
        # Least squares add something in the last digits; 0 stays 0.
        rounded = {seed: round(float(x), 9) + 0.0 for seed, x in zip(seeds, by_seed)}
        zero = dict.fromkeys(seeds, 0.0)
        return paired(rounded, zero, level=level, least_spread=least_spread)

    slopes, starts = np.polyfit(sizes, values, 1)
    distance = math.sqrt(sum((size - np.mean(sizes)) ** 2 for size in sizes))
    gap = compare(slopes, 1 / answers / distance)
    middle = compare(values.mean(0), 1 / answers)
    changes = [
        compare(later - earlier, 1 / answers)
        for earlier, later in itertools.combinations(values, 2)
    ]
    begin, end = (float(np.mean(starts + slopes * size)) for size in (sizes[0], sizes[-1]))
    return Trend(
        gap.mean,
        gap.low,
        gap.high,
        gap.p,
        gap.n,
        begin,
        end,
        (middle.low, middle.high),
        (min(change.low for change in changes), max(change.high for change in changes)),
    )


def judge_trend(trend: Trend, verdicts: Sequence[tuple[str, float]], margin: float) -> str:
    """Return GROWS, SHRINKS, FLIPS, STEADY or UNTOLD, by the rule above.

    Args:
        trend: Trend of the variant.
        verdicts: (verdict, mean difference) at each size.
        margin: Change between two sizes that does not matter.
    """
    signs = {math.copysign(1, mean) for verdict, mean in verdicts if verdict == DIFFERENCE}
    if trend.n and len(signs) == 2:
        return FLIPS
    if -margin < trend.changes[0] and trend.changes[1] < margin:
        return STEADY
    if excludes_zero(trend.low, trend.high) and excludes_zero(*trend.middle):
        return GROWS if (trend.low > 0) == (trend.middle[0] > 0) else SHRINKS
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
    # From seeds: the spread of their lines at the new size, and the noise of a measurement there.
    noise = float(np.mean(np.var(values, axis=1, ddof=1)))
    by_seeds = math.sqrt(float(np.var(ahead, ddof=1)) / len(seeds) + noise / n)
    # From sizes: how far the mean effects lie from their line (the usual interval of a regression).
    mean_line = np.mean(starts) + np.mean(slopes) * np.array(sizes)
    left = len(sizes) - 2
    spread = math.sqrt(float(np.sum((values.mean(1) - mean_line) ** 2)) / left)
    away = (size - np.mean(sizes)) ** 2 / np.sum((np.array(sizes) - np.mean(sizes)) ** 2)
    by_sizes = spread * math.sqrt(1 + 1 / len(sizes) + float(away))
    reach = max(half_width(by_seeds, len(seeds), level), half_width(by_sizes, left + 1, level))
    mean = float(np.clip(np.mean(ahead), *CHANGE))
    return Interval(mean, *clip_interval(mean - reach, mean + reach, CHANGE), len(seeds))


def _align(effects: Effects) -> tuple[list[int], list[int], np.ndarray]:
    """Return the sizes, the seeds that all sizes have, and their effects (size × seed)."""
    sizes = sorted(size for size, by_seed in effects.items() if by_seed)
    seeds_of_sizes = [
        {seed for seed, value in effects[size].items() if not math.isnan(value)} for size in sizes
    ]
    seeds = sorted(set.intersection(*seeds_of_sizes)) if seeds_of_sizes else []
    values = np.array([[effects[size][seed] for seed in seeds] for size in sizes])
    return sizes, seeds, values
