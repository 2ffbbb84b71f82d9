"""Trends of effects over sizes: SciPy's numbers, the rule of the verdicts, and its errors."""

import math

import numpy as np
import pytest
from scipy import stats

from core.measure.trends import (
    FLIPS,
    GROWS,
    NO_TREND,
    SHRINKS,
    STEADY,
    UNTOLD,
    judge_trend,
    measure_trend,
    measure_trends,
    predict_effect,
)
from core.measure.verdicts import DIFFERENCE, EQUIVALENT, UNDECIDED

ANSWERS = 10_000
MARGIN = 0.02


def effects_of(means, n=5, spread=0.01, seed=0):
    """Return {size: {seed: effect}} of normal effects around these means, for sizes 1, 2, …."""
    draw = np.random.default_rng(seed)
    return {
        size: {seed: float(draw.normal(mean, spread)) for seed in range(n)}
        for size, mean in enumerate(means, 1)
    }


def judge(effects, verdicts=None):
    means = [float(np.mean(list(by_seed.values()))) for by_seed in effects.values()]
    verdicts = verdicts or [UNDECIDED] * len(means)
    trend = measure_trend(effects, ANSWERS)
    return judge_trend(trend, list(zip(verdicts, means)), MARGIN)


def test_slope_is_that_of_scipy():
    effects = effects_of([-0.4, -0.3, -0.25, -0.1], n=7, spread=0.05)
    slopes = [
        stats.linregress(list(effects), [effects[size][seed] for size in effects]).slope
        for seed in range(7)
    ]
    trend = measure_trend(effects, ANSWERS)
    expected = stats.ttest_1samp(slopes, 0.0)
    interval = expected.confidence_interval(0.95)
    assert trend.slope == pytest.approx(np.mean(slopes), abs=1e-8)
    assert trend.p == pytest.approx(expected.pvalue, rel=1e-5)
    assert (trend.low, trend.high) == pytest.approx((interval.low, interval.high), abs=1e-8)
    assert trend.begin == pytest.approx(
        np.mean([[effects[size][seed] for seed in range(7)] for size in effects], axis=1)
        @ [0.7, 0.4, 0.1, -0.2],  # least squares at the first of four sizes
        abs=1e-8,
    )


def test_trends_of_a_task_are_corrected_together():
    several = {
        name: effects_of([0, slope, 2 * slope], spread=0.004, seed=n)
        for n, (name, slope) in enumerate([("a", 0.01), ("b", 0.003), ("c", 0.0)])
    }
    alone = {name: measure_trend(effects, ANSWERS).p for name, effects in several.items()}
    together = measure_trends(several, ANSWERS)
    smallest, middle, largest = sorted(alone, key=alone.get)
    assert together[smallest].p == pytest.approx(3 * alone[smallest])
    assert together[middle].p == pytest.approx(max(2 * alone[middle], 3 * alone[smallest]))
    assert together[largest].p >= together[middle].p


@pytest.mark.parametrize(
    "means, expected",
    [
        ([-0.1, -0.2, -0.3], GROWS),
        ([0.0, 0.1, 0.2], GROWS),
        ([-0.3, -0.2, -0.1], SHRINKS),
        ([0.3, 0.1, 0.0], SHRINKS),
        ([-0.3, -0.05, 0.2], SHRINKS),
    ],
)
def test_effect_that_moves_with_size(means, expected):
    assert judge(effects_of(means)) == expected


def test_effect_that_stays():
    assert judge(effects_of([-0.3, -0.3, -0.3], spread=0.002)) == STEADY
    assert judge(effects_of([0, 0, 0], spread=0.0)) == STEADY
    assert judge(effects_of([-0.3, -0.3, -0.3], spread=0.1)) == UNTOLD


def test_effect_that_vanishes_and_returns_is_not_steady():
    assert judge(effects_of([-0.3, 0.0, -0.3])) == UNTOLD
    assert judge(effects_of([-0.3, 0.0, 0.0, -0.3])) == UNTOLD


def test_small_change_is_steady():
    effects = effects_of([-0.2, -0.203, -0.206], spread=0.0005)
    trend = measure_trend(effects, ANSWERS)
    assert trend.high < 0
    assert judge(effects) == STEADY


def test_slope_through_zero_neither_grows_nor_shrinks():
    """The slope differs from 0, and the mean effect does not: which end is larger is unknown."""
    effects = effects_of([-0.05, 0.0, 0.05], spread=0.01)
    assert measure_trend(effects, ANSWERS).low > 0
    assert judge(effects) == UNTOLD


def test_trends_are_corrected_for_looks():
    effects = {"a": effects_of([0, 0.01, 0.02], spread=0.004)}
    once = measure_trends(effects, ANSWERS)["a"]
    thrice = measure_trends(effects, ANSWERS, looks=3)["a"]
    assert thrice.p == pytest.approx(3 * once.p)
    assert thrice.low < once.low and thrice.high > once.high


def test_prediction_allows_for_a_curve():
    """Four means on a curve, each without noise: the interval holds where the curve ends."""
    effects = effects_of([-0.3, -0.08, -0.02, 0.0], spread=0.0001)
    predicted = predict_effect(effects, 5, 5)
    assert predicted.low <= 0 <= predicted.high


def test_opposite_differences_flip():
    effects = effects_of([-0.2, 0.0, 0.2])
    assert judge(effects, [DIFFERENCE, EQUIVALENT, DIFFERENCE]) == FLIPS
    assert judge(effects, [DIFFERENCE, EQUIVALENT, UNDECIDED]) != FLIPS


@pytest.mark.parametrize("sizes, seeds", [(2, 5), (4, 2), (0, 5)])
def test_few_sizes_or_seeds_tell_nothing(sizes, seeds):
    effects = effects_of([0.1 * n for n in range(sizes)], n=seeds)
    trend = measure_trend(effects, ANSWERS)
    assert trend == NO_TREND or math.isnan(trend.slope)
    assert judge_trend(trend, [(UNDECIDED, 0.0)] * sizes, MARGIN) == UNTOLD
    assert math.isnan(predict_effect(effects, 5, 5).mean)


def test_seeds_that_some_size_lacks_are_left_out():
    effects = effects_of([0.1, 0.2, 0.3], n=6)
    effects[2][4] = math.nan
    del effects[3][5]
    trend = measure_trend(effects, ANSWERS)
    assert trend.n == 4
    complete = {size: {seed: effects[size][seed] for seed in range(4)} for size in effects}
    assert trend == measure_trend(complete, ANSWERS)


def test_identical_slopes_have_the_noise_of_one_answer():
    """Five equal gaps are not certainty: one test answer more or less is the least noise."""
    effects = {size: dict.fromkeys(range(5), 0.01 * size) for size in (1, 2, 3)}
    trend = measure_trend(effects, 100)
    assert trend.high > trend.low and trend.p > 0


def test_null_studies_seldom_grow():
    """Without a trend at most 5 % of studies of four variants have a false one.

    Noise that grows with size is included.
    """
    draw = np.random.default_rng(1)
    n_studies = 400
    for spreads in ([0.02] * 4, [0.005, 0.01, 0.02, 0.04]):
        false = 0
        for _ in range(n_studies):
            several = {
                variant: {
                    size: dict(enumerate(draw.normal(0.1, spread, 5)))
                    for size, spread in enumerate(spreads, 1)
                }
                for variant in range(4)
            }
            trends = measure_trends(several, ANSWERS)
            false += any(
                judge_trend(trend, [(UNDECIDED, 0.1)] * 4, MARGIN) in (GROWS, SHRINKS)
                for trend in trends.values()
            )
        # The upper end of what 400 studies at a true rate of 5 % show in 99 of 100 cases.
        assert false <= stats.binom.ppf(0.99, n_studies, 0.05)


def test_predictions_hold_as_often_as_they_say():
    draw = np.random.default_rng(2)
    n_studies = 400
    held = 0
    for _ in range(n_studies):
        effects = {
            size: dict(enumerate(draw.normal(-0.1 * size, 0.03, 5))) for size in (1, 2, 3, 4)
        }
        predicted = predict_effect(effects, 5, 5)
        measured = np.mean(draw.normal(-0.5, 0.03, 5))
        held += predicted.low <= measured <= predicted.high
    assert held >= stats.binom.ppf(0.01, n_studies, 0.95)
    assert held < n_studies  # an interval that always holds is too wide
