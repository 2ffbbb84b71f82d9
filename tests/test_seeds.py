"""Mean, interval and paired test over seeds, against SciPy, plain formulas and coverage.

95 % intervals contain the true value 95 % of the time.
"""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from core.measure.intervals import (
    correct_together,
    excludes_zero,
    geometric,
    interval,
    paired,
    wilson,
)
from tests.holm import differences

NAN = math.nan
NUMBERS = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))
SEEDS = st.dictionaries(st.integers(0, 12), st.one_of(NUMBERS, st.just(NAN)), max_size=12)


def close(value, expected):
    return value == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


def scipy_interval(values):
    """Return mean and Student's t interval of values that are not all equal."""
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
    )
    return np.mean(values), low, high


def varied(values, least=1e-6):
    return len(values) > 1 and np.ptp(values) > least


# A share


@pytest.mark.parametrize("count", [1, 2, 7, 40, 333])
def test_share_interval_matches_scipy(count):
    for right in range(count + 1):
        ends = stats.binomtest(right, count).proportion_ci(0.95, method="wilson")
        assert close(wilson(right, count), (right / count, ends.low, ends.high))
    assert wilson(0, count)[:2] == (0, 0) and wilson(count, count)[::2] == (1, 1)  # to the last bit


def test_share_of_nothing_is_nan():
    assert all(math.isnan(item) for item in wilson(0, 0))


# One group


@given(st.lists(NUMBERS, min_size=2, max_size=40).filter(varied))
def test_interval_matches_scipy(values):
    actual = interval(values)
    assert close(actual[:3], scipy_interval(values)) and actual.n == len(values)


@pytest.mark.parametrize("n", range(2, 31))
def test_interval_matches_scipy_for_any_number_of_seeds(n):
    values = np.random.default_rng(n).normal(0.7, 0.1, n).tolist()
    assert close(interval(values)[:3], scipy_interval(values))


def test_interval_matches_hand_computation():
    # 0.5, 0.6, 0.7: mean 0.6, standard deviation 0.1, t(2, 0.975) = 4.302653 from a printed table
    actual = interval([0.5, 0.6, 0.7])
    assert actual[:3] == pytest.approx(
        (0.6, 0.6 - 4.302653 * 0.1 / 3**0.5, 0.6 + 4.302653 * 0.1 / 3**0.5), abs=1e-6
    )


def test_fewer_than_two_values_have_no_interval():
    nothing = interval([])
    single = interval([0.25])
    assert nothing.n == 0 and all(map(math.isnan, nothing[:3]))
    assert single.n == 1 and single.mean == 0.25 and all(map(math.isnan, single[1:3]))
    assert math.isnan(interval([], (0, 1)).low) and math.isnan(interval([0.3], (0, 1)).high)
    assert interval([NAN]) == pytest.approx(nothing, nan_ok=True)


@given(NUMBERS, st.integers(2, 30))
def test_equal_values_have_exact_interval(value, n):
    assert interval([value] * n) == (value, value, value, n)


@given(st.lists(st.one_of(NUMBERS, st.just(NAN)), max_size=12))
def test_nan_is_left_out(values):
    assert interval(values) == pytest.approx(interval([v for v in values if v == v]), nan_ok=True)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_interval_is_clipped_to_possible_values_only(values):
    free = interval(values)
    cut = interval(values, (0.0, 1.0))
    assert (cut.mean, cut.n) == (free.mean, free.n)
    assert cut.low == max(free.low, 0.0) and cut.high == min(free.high, 1.0)
    assert 0 <= cut.low <= cut.mean + 1e-12 and cut.mean <= cut.high + 1e-12 and cut.high <= 1


def test_any_iterable_will_do():
    assert (
        interval({1: 0.5, 2: 0.6}.values())
        == interval([0.5, 0.6])
        == interval(v for v in (0.5, 0.6))
    )


# Pairs


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30))
def test_paired_difference_matches_scipy(pairs):
    some, others = zip(*pairs)
    differences = [a - b for a, b in pairs]
    if not varied(differences):
        return
    actual = paired(dict(enumerate(some)), dict(enumerate(others)))
    test = stats.ttest_rel(some, others)
    assert close(actual.mean, np.mean(differences)) and actual.n == len(pairs)
    assert actual.p == pytest.approx(test.pvalue, rel=1e-6, abs=1e-12)
    assert close((actual.low, actual.high), tuple(test.confidence_interval(0.95)))
    assert close(actual.reach, (actual.high - actual.low) / 2)
    assert actual.clear == (test.pvalue < 0.05)
    if abs(actual.p - 0.05) > 1e-6:
        assert actual.clear == (actual.low > 0 or actual.high < 0)  # test and interval say the same


@given(SEEDS, SEEDS)
def test_pairs_are_made_by_seed_whatever_is_missing(values, base):
    shared = sorted(
        seed
        for seed in values.keys() & base.keys()
        if values[seed] == values[seed] and base[seed] == base[seed]
    )
    actual = paired(values, base)
    assert actual.n == len(shared)
    if not shared:
        assert (
            all(map(math.isnan, (actual.mean, actual.low, actual.high, actual.p)))
            and not actual.clear
        )
    elif len(shared) == 1:
        assert close(actual.mean, values[shared[0]] - base[shared[0]])
        assert all(map(math.isnan, (actual.low, actual.high, actual.p))) and not actual.clear
    elif varied([values[seed] - base[seed] for seed in shared]):
        test = stats.ttest_rel([values[seed] for seed in shared], [base[seed] for seed in shared])
        assert actual.p == pytest.approx(test.pvalue, rel=1e-6, abs=1e-12)


def test_seed_order_does_not_matter():
    first = {3: 0.9, 1: 0.5, 2: 0.8}
    other = {1: 0.4, 2: 0.1, 3: 0.6}
    assert paired(first, other) == paired(dict(sorted(first.items())), other)
    assert paired(first, other).mean == pytest.approx((0.3 + 0.1 + 0.7) / 3)


def test_reversed_difference_flips_sign():
    first = {0: 0.9, 1: 0.5, 2: 0.8}
    other = {0: 0.4, 1: 0.1, 2: 0.6}
    forward = paired(first, other)
    back = paired(other, first)
    assert (back.mean, back.low, back.high, back.p) == pytest.approx(
        (-forward.mean, -forward.high, -forward.low, forward.p)
    )


def test_differences_without_any_spread():
    same = paired({0: 0.5, 1: 0.75}, {0: 0.5, 1: 0.75})
    assert same == (0, 0, 0, 2, 1.0, 0.0) and not same.clear
    shifted = paired({0: 0.5, 1: 0.75}, {0: 0.25, 1: 0.5})
    assert shifted == (0.25, 0.25, 0.25, 2, 0.0, 0.0) and shifted.clear
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert stats.ttest_rel([0.5, 0.75], [0.25, 0.5]).pvalue == 0.0  # SciPy says so too


def test_difference_is_clipped_to_possible_values():
    free = paired({0: 0.1, 1: 0.9}, {0: 0.9, 1: 0.8})
    cut = paired({0: 0.1, 1: 0.9}, {0: 0.9, 1: 0.8}, (-1.0, 1.0))
    assert free.low < -1 and free.high > 1
    assert (cut.low, cut.high) == (-1, 1) and (cut.mean, cut.n, cut.p) == (
        free.mean,
        free.n,
        free.p,
    )


# Several at once


FAMILIES = st.lists(st.lists(NUMBERS, min_size=0, max_size=6), min_size=1, max_size=6)


def compared(samples, within=(-math.inf, math.inf)):
    def compare(index, level):
        sample = dict(enumerate(samples[index]))
        return paired(sample, dict.fromkeys(sample, 0.0), within, level)

    return correct_together(compare, range(len(samples)))


@given(FAMILIES)
def test_holm_matches_closed_test(samples):
    samples = [sample for sample in samples if len(sample) < 2 or varied(sample)]
    actual = compared(samples)
    expected = differences(dict(enumerate(samples)))
    assert list(actual) == list(range(len(samples)))
    for index, (mean, low, high, n, p) in expected.items():
        result = actual[index]
        assert (
            result.n == n
            and close(result.mean, mean)
            and result.p == pytest.approx(p, rel=1e-6, abs=1e-12, nan_ok=True)
        )
        if all(abs(item[-1] - 0.05) > 1e-6 for item in expected.values()):
            assert close((result.low, result.high), (low, high))
            assert result.clear == (result.p < 0.05)  # what the interval says is what the test says


@given(FAMILIES)
def test_more_comparisons_never_make_an_interval_narrower(samples):
    samples = [sample for sample in samples if len(sample) < 2 or varied(sample)]
    for index, result in compared(samples).items():
        alone = compared([samples[index]])[0]
        assert not result.reach < alone.reach * (1 - 1e-9) and not result.p < alone.p
        assert not result.clear or alone.clear


def test_single_difference_is_uncorrected_and_single_seed_ignored():
    differences = [0.1, 0.12, 0.02]
    assert (
        compared([differences])[0]
        == compared([differences, [0.5], []])[0]
        == paired(dict(enumerate(differences)), dict.fromkeys(range(3), 0.0))
    )


def test_family_error_of_twelve_noise_differences_is_5_percent():
    random = np.random.default_rng(12)
    families = random.normal(0, 0.1, (1500, 12, 5)).tolist()
    named = [any(item.clear for item in compared(samples).values()) for samples in families]
    assert np.mean(named) == pytest.approx(0.05, abs=0.02)
    alone = [any(compared([sample])[0].clear for sample in samples) for samples in families[:300]]
    assert np.mean(alone) > 0.35  # each by itself


# What 95 % means


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_mean_interval_covers_truth_in_95_of_100(n):
    random = np.random.default_rng(n)
    drawn = random.normal(0.4, 0.2, (4000, n)).tolist()
    covered = [actual.low <= 0.4 <= actual.high for actual in map(interval, drawn)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.012)  # 3.5 standard errors


@pytest.mark.parametrize("n", [2, 3, 10])
def test_false_positive_rate_is_5_percent(n):
    random = np.random.default_rng(n)
    hard = random.normal(
        0, 1.0, (4000, n)
    )  # a seed that is hard is hard for both: the pairing takes that out
    some = hard + random.normal(0, 0.1, hard.shape)
    others = hard + random.normal(0, 0.1, hard.shape)
    clear = [
        paired(dict(enumerate(a)), dict(enumerate(b))).clear
        for a, b in zip(some.tolist(), others.tolist())
    ]
    assert np.mean(clear) == pytest.approx(0.05, abs=0.012)


def test_pairing_sees_what_seeds_alone_would_hide():
    hard = {seed: 0.1 * seed for seed in range(8)}
    better = {seed: value + 0.02 + 0.001 * (seed % 3) for seed, value in hard.items()}
    assert paired(better, hard).clear
    assert stats.ttest_ind(list(better.values()), list(hard.values())).pvalue > 0.5


@pytest.mark.parametrize(
    "values", [[1.0, 10.0, 100.0], [0.2, 0.3], [5.0], [1e-30, 1e-20, 3e-25, float("nan")]]
)
def test_geometric_mean_is_mean_of_logarithms(values):
    actual = geometric(values)
    logs = interval([math.log(value) for value in values if value == value])
    assert actual.n == logs.n and actual.mean == pytest.approx(math.exp(logs.mean))
    if actual.n > 1:
        assert (actual.low, actual.high) == pytest.approx((math.exp(logs.low), math.exp(logs.high)))


def test_geometric_mean_needs_positive_values():
    assert math.isnan(geometric([1.0, 0.0]).mean) and math.isnan(geometric([]).mean)
    wide = geometric([1e-300, 1e300])
    assert wide.mean == pytest.approx(1.0) and math.isnan(wide.high)  # beyond all numbers


@pytest.mark.parametrize(
    "values",
    [[math.inf, -math.inf, 1.0], [1e300, -1e300, 0.0]],
    ids=["infinite", "too large to be squared"],
)
def test_infinite_or_nan_values_have_no_interval(values):
    """Huge weights give such values: the interval is NaN, and the page does not fail."""
    actual = interval(values)
    assert math.isnan(actual.low) and math.isnan(actual.high)
    assert not excludes_zero(actual.low, actual.high)
