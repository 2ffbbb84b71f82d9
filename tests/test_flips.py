"""Paired accuracy changes against SciPy, published figures and a brute-force likelihood.

The coverage of the 95 % interval is checked, too.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import optimize, stats

from core.measure.intervals import accuracy_change, sign_flips, tango

FLIPS = some.tuples(some.integers(0, 12), some.integers(0, 12), some.integers(1, 200))
LEVELS = some.sampled_from([0.8, 0.95, 0.99, 1 - 0.05 / 12])


def answers(gained, lost, same):
    return [1.0] * gained + [-1.0] * lost + [0.0] * same


def test_six_flips_of_256_are_significant_and_five_not():
    five = accuracy_change(answers(0, 5, 251))
    six = accuracy_change(answers(0, 6, 250))
    assert five.p == 0.0625 and not five.clear and five.high == 0.0
    assert six.p == 0.03125 and six.clear
    assert stats.ttest_1samp(answers(0, 5, 251), 0).pvalue < 0.03  # Student's t takes it for more


@given(FLIPS)
def test_single_questions_use_exact_mcnemar_test(flips):
    gained, lost, same = flips
    actual = accuracy_change(answers(gained, lost, same))
    expected = stats.binomtest(gained, gained + lost, 0.5).pvalue if gained + lost else 1.0
    if gained + lost + same > 1:
        assert actual.p == pytest.approx(expected, rel=1e-9)
    assert actual.n == gained + lost + same and actual.mean == pytest.approx(
        (gained - lost) / actual.n
    )


@given(
    some.lists(
        some.sampled_from([-1, -0.75, -1 / 3, 0, 0.25, 0.5, 2 / 3, 1]), min_size=2, max_size=10
    )
)
def test_several_questions_use_exact_sign_flips(values):
    sums = [
        abs(sum(s * v for s, v in zip(signs, values)))
        for signs in itertools.product((-1, 1), repeat=len(values))
    ]
    expected = np.mean([flipped >= abs(sum(values)) - 1e-9 for flipped in sums])
    assert accuracy_change(values).p == pytest.approx(expected, abs=1e-9)


def test_interval_matches_published_values():
    # 21 children, 1 and 7 discordant: Fagerland, Lydersen and Laake (2014), table of intervals for
    # the difference, Tango's
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=0.0005)


def slow_score(change, gained, lost, n):
    """Return the score statistic with a brute-force constrained maximum likelihood.

    The share of losses is the most likely one given the change, found by a search.
    """

    def less_likely(share):
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [
                (gained, share + change),
                (lost, share),
                (n - gained - lost, 1 - 2 * share - change),
            ]
            return -sum(count * math.log(max(p, 1e-300)) for count, p in terms if count)

    low = max(0.0, -change)
    high = (1 - change) / 2
    share = optimize.minimize_scalar(
        less_likely, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    ).x
    return (gained - lost - n * change) / math.sqrt(n * (2 * share + change - change**2))


@given(some.integers(1, 30), some.integers(1, 30), some.integers(1, 200), LEVELS)
def test_interval_ends_have_normal_quantile_score(gained, lost, same, level):
    n = gained + lost + same
    z = stats.norm.ppf((1 + level) / 2)
    low, high = tango(gained, lost, n, level)
    assert slow_score(low, gained, lost, n) == pytest.approx(z, abs=1e-3)
    assert slow_score(high, gained, lost, n) == pytest.approx(-z, abs=1e-3)


@given(FLIPS, LEVELS)
def test_interval_and_test_say_the_same_at_every_level(flips, level):
    gained, lost, same = flips
    if gained + lost + same < 2:
        return
    actual = accuracy_change(answers(gained, lost, same), level)
    back = accuracy_change(answers(lost, gained, same), level)
    assert actual.clear == (actual.p < 1 - level)
    assert -1 <= actual.low <= actual.mean <= actual.high <= 1
    assert (back.low, back.high, back.p) == pytest.approx(
        (-actual.high, -actual.low, actual.p), abs=1e-9
    )


@given(
    some.lists(
        some.sampled_from([-1, -0.5, -0.25, 0, 0, 0, 0.25, 0.75, 1]), min_size=2, max_size=80
    ),
    LEVELS,
)
def test_also_for_several_questions_a_text(values, level):
    actual = accuracy_change(values, level)
    assert not actual.clear or actual.p < 1 - level
    if actual.p < 1 - level and len(values) > 20:
        assert actual.clear
    assert actual.low <= actual.mean <= actual.high


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "loss"), [(0.0, 0.02), (0.05, 0.05), (0.1, 0.3)])
def test_change_interval_covers_truth_in_95_of_100(gain, loss):
    random = np.random.default_rng(1)
    counts = random.multinomial(256, [gain, loss, 1 - gain - loss], 1500)
    observed = {}
    for gained, lost, same in map(tuple, counts.tolist()):
        observed.setdefault((gained, lost), accuracy_change(answers(gained, lost, same)))
    covered = [
        observed[a, b].low <= gain - loss <= observed[a, b].high for a, b, _ in counts.tolist()
    ]
    assert np.mean(covered) > 0.93


def test_interval_without_flips_bounds_missed_change():
    actual = accuracy_change(answers(0, 0, 256))
    assert (actual.mean, actual.p) == (0.0, 1.0) and -0.02 < actual.low < 0 < actual.high < 0.02


def test_fewer_than_two_texts_have_no_p():
    assert (
        math.isnan(accuracy_change([1.0]).p)
        and math.isnan(accuracy_change([1.0]).low)
        and accuracy_change([1.0]).mean == 1.0
    )
    assert math.isnan(accuracy_change([]).mean) and accuracy_change([math.nan, 1.0]).n == 1
    assert sign_flips([]) == 1.0
