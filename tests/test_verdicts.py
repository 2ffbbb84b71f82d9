"""Verdicts on accuracies over seeds, against SciPy and made-up runs of known kind."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from core.experiments.training.sentences import describe_gap, format_learnt
from core.measure.power import power, seeds_for, smallest_effect
from core.measure.verdicts import (
    DIFFERENCE,
    EQUIVALENT,
    NO_NOISE,
    UNDECIDED,
    Facts,
    compare_counts,
    compare_runs,
    describe_learnt,
    has_two_groups,
    measure_noise,
    pair_runs,
)
from core.tasks import task
from tests.holm import verdict, verdicts
from ui.training.interactions import describe_largest_effect

FACTS = Facts(0.5, 1000)
ACCURACY = some.one_of(
    some.integers(0, 1000).map(lambda right: right / 1000),
    some.sampled_from([0.34, 0.35, 0.99, 1.0, math.nan]),
)


def by_seed(*values) -> dict[int, float]:
    return dict(enumerate(values))


def compare(several: dict, facts: Facts = FACTS) -> dict:
    return compare_runs(pair_runs(several, facts))


@given(
    some.integers(1, 7).flatmap(
        lambda n: some.lists(some.lists(ACCURACY, min_size=n, max_size=n), min_size=2, max_size=5)
    )
)
def test_differences_match_scipy(models):
    base, *others = (by_seed(*model) for model in models)
    several = {index: (model, base) for index, model in enumerate(others)}
    expected = verdicts(several, *FACTS)
    for index, difference in compare(several).items():
        actual = difference[:5]
        if all(not abs(line[-1] - 0.05) < 1e-6 for line in expected.values()):
            assert actual == pytest.approx(expected[index], rel=1e-6, abs=1e-9, nan_ok=True)
        assert difference.clear == (difference.p < 0.05)
        _, low, high, _, p = actual
        assert difference.verdict == verdict(p, low, high, FACTS.margin)
        if not math.isnan(difference.low):
            assert difference.clear == (difference.low > 0 or difference.high < 0)


@pytest.mark.parametrize(
    ("values", "margin", "expected"),
    [
        ([0.901, 0.899, 0.902, 0.9, 0.898], 0.02, EQUIVALENT),
        ([0.901, 0.899, 0.902, 0.9, 0.898], 0.001, UNDECIDED),  # narrower than the interval
        ([0.905, 0.906, 0.904, 0.905, 0.906], 0.02, DIFFERENCE),  # significant, if small
        ([0.93, 0.87, 0.95, 0.88, 0.9], 0.02, UNDECIDED),
        ([0.9, 0.9], 0.02, UNDECIDED),
        ([0.9, 0.9, 0.9], 0.02, EQUIVALENT),
        ([0.912, 0.93, 0.9, 0.918, 0.895], 0.02, UNDECIDED),  # the mean is inside, an end is not
    ],
)
def test_verdict_follows_from_interval_and_margin(values, margin, expected):
    base = dict.fromkeys(range(len(values)), 0.9)
    facts = FACTS._replace(margin=margin)
    difference = compare({"a": (by_seed(*values), base)}, facts)["a"]
    assert difference.verdict == expected and difference.margin == margin
    text = describe_gap(difference)
    assert ("equivalent within" in text) == (
        expected == EQUIVALENT and any(values) and (difference.low < difference.high)
    )
    assert text.startswith("Undecided") == (expected == UNDECIDED and difference.n > 2)


def test_equivalence_is_two_one_sided_tests():
    """Each at half of the corrected level, as SciPy computes them."""
    generator = np.random.default_rng(0)
    for n in (3, 5, 10, 20):
        for spread in (0.005, 0.01, 0.02):
            gaps = generator.normal(0.004, spread, n).round(6)
            base = dict.fromkeys(range(n), 0.5)
            values = {seed: 0.5 + gap for seed, gap in enumerate(gaps.tolist())}
            difference = compare({"a": (values, base)})["a"]
            sides = (
                stats.ttest_1samp(gaps, -0.02, alternative="greater").pvalue,
                stats.ttest_1samp(gaps, 0.02, alternative="less").pvalue,
            )
            if not difference.clear:
                assert (difference.verdict == EQUIVALENT) == (max(sides) < 0.025)


def test_noise_matches_scipy():
    values = by_seed(0.9, 0.93, 0.91, 0.95, 0.92, math.nan)
    base = by_seed(0.91, 0.92, 0.93, 0.94, 0.9, 0.9)
    noise = measure_noise(values, base, 1000, comparisons=4)
    gaps = np.array([values[seed] - base[seed] for seed in range(5)])
    exact = stats.permutation_test((gaps,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert noise.p_exact == pytest.approx(exact.pvalue)
    assert noise.p_exact_least == 0.0625
    first, second = ([side[seed] for seed in range(5)] for side in (values, base))
    assert noise.correlation == pytest.approx(stats.pearsonr(first, second).statistic)
    assert noise.spread == pytest.approx(gaps.std(ddof=1))
    assert noise.seeds_for_1 > noise.seeds_for_5 >= 3
    assert power(noise.smallest_effect, noise.spread, 5, 1 - 0.05 / 4) == pytest.approx(0.8)
    assert measure_noise(by_seed(0.9, 0.8), base, 1000) == pytest.approx(NO_NOISE, nan_ok=True)
    equal = measure_noise(by_seed(1.0, 1.0, 1.0), by_seed(1.0, 1.0, 1.0), 1000)
    assert math.isnan(equal.correlation) and equal.spread == 1 / 1000 and equal.p_exact == 1


@pytest.mark.parametrize("level", [0.95, 1 - 0.05 / 11])
@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_power_matches_noncentral_t(n, level):
    critical = stats.t.ppf((1 + level) / 2, n - 1)
    for effect in (0.0, 0.5, 1.0, 3.0):
        shift = effect * math.sqrt(n)
        expected = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
        assert power(effect, 1.0, n, level) == pytest.approx(expected, abs=1e-9)
    found = smallest_effect(0.03, n, level)
    assert power(found, 0.03, n, level) == pytest.approx(0.8)
    assert seeds_for(found, 0.03, level) == n
    assert seeds_for(found * 0.99, 0.03, level) == n + 1


def test_power_is_the_share_of_simulated_studies():
    generator = np.random.default_rng(0)
    gaps = generator.normal(1.5, 1.0, (20_000, 5))
    found = stats.ttest_1samp(gaps, 0, axis=1).pvalue < 0.05
    assert power(1.5, 1.0, 5, 0.95) == pytest.approx(found.mean(), abs=0.01)


def test_more_seeds_than_anybody_trains_are_not_counted():
    assert math.isinf(seeds_for(0.0001, 0.1, 0.95)) and seeds_for(0.05, 0.0, 0.95) == 3
    assert math.isnan(seeds_for(0.01, math.nan, 0.95))


def test_two_seeds_give_no_verdict():
    difference = compare({"a": (by_seed(0.3, 0.3), by_seed(1.0, 1.0))})["a"]
    assert difference.mean == -0.7 and difference.n == 2 and not difference.clear
    assert all(map(math.isnan, (difference.low, difference.high, difference.p)))
    assert describe_gap(difference).startswith("Two seeds, so significance cannot be tested")


def test_equal_gaps_have_noise_of_one_answer():
    difference = compare({"a": (by_seed(0.7, 0.7, 0.7), by_seed(0.9, 0.9, 0.9))})["a"]
    error = 1 / 1000 / math.sqrt(3)
    reach = stats.t.ppf(0.975, 2) * error
    assert (difference.low, difference.high) == pytest.approx((-0.2 - reach, -0.2 + reach))
    assert difference.p == pytest.approx(2 * stats.t.sf(0.2 / error, 2)) and difference.clear


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ([1.0, 0.99, 0.35], True),
        ([1.0, 0.99, 0.98], False),  # all learnt it
        ([0.33, 0.35, 0.36], False),  # none did
        ([0.45, 0.55, 0.6], False),  # near the threshold, not two groups
        ([0.39, 0.6, math.nan], True),
        ([0.41, 0.6], False),
        ([math.nan], False),
        ([], False),
    ],
)
def test_two_groups_are_far_apart(accuracies, expected):
    assert has_two_groups(accuracies, 0.5) is expected


def test_lucky_seed_is_compared_by_counts():
    """Recall without scaling: 35, 36, 34, 100, 33 % against five times 100 %."""
    base = by_seed(1.0, 1.0, 1.0, 1.0, 1.0)
    difference = compare({"a": (by_seed(0.35, 0.36, 0.34, 1.0, 0.33), base)})["a"]
    shares = difference.shares
    assert (shares.learnt, shares.base_learnt, shares.n) == (1, 5, 5)
    table = [[1, 5], [4, 0]]
    assert shares.p == pytest.approx(stats.boschloo_exact(table, n=64).pvalue)
    assert difference.p == pytest.approx(2 * shares.p) and difference.clear
    text = describe_gap(difference)
    assert (
        "1 of 5 runs learnt it (4 to 62 %), 5 of the baseline; the difference is significant"
        in text
    )
    assert math.isnan(difference.low) and "CI" not in text


def test_means_are_compared_among_pairs_that_both_learnt():
    """Compare nine pairs that differ by three points; the tenth baseline run failed."""
    base = by_seed(*[0.94, 0.95, 0.93, 0.94, 0.95, 0.94, 0.93, 0.95, 0.94, 0.0])
    values = by_seed(*[0.97, 0.98, 0.965, 0.97, 0.98, 0.975, 0.96, 0.98, 0.97, 0.97])
    difference = compare({"a": (values, base)})["a"]
    gaps = [values[seed] - base[seed] for seed in range(9)]
    both = difference.shares.both
    assert both.n == 9 and both.mean == pytest.approx(np.mean(gaps))
    assert both.p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    ends = stats.ttest_1samp(gaps, 0).confidence_interval(0.975)
    assert (both.low, both.high) == pytest.approx(tuple(ends))
    assert difference.clear and difference.p == pytest.approx(2 * both.p)
    assert "Where both learnt it, the difference is 3.1 points, significant" in describe_gap(
        difference
    )


def test_collapse_is_found_among_eleven_variants_of_five_seeds():
    """Find it with a variant beside it that learns in some runs, too."""
    base = by_seed(1.0, 1.0, 1.0, 1.0, 1.0)
    gone = by_seed(0.34, 0.35, 0.33, 0.36, 0.35)
    for other in (base, by_seed(1.0, 0.35, 1.0, 0.34, 1.0)):
        several = {n: (other, base) for n in range(10)} | {"gone": (gone, base)}
        assert compare(several)["gone"].clear


def test_runs_near_the_threshold_are_compared_by_their_mean():
    """They are no two groups; the task has groups by another model."""
    base = by_seed(1.0, 1.0, 1.0, 1.0, 1.0)
    lucky = by_seed(1.0, 1.0, 0.3, 1.0, 1.0)
    near = by_seed(0.52, 0.51, 0.48, 0.47, 0.49)
    difference = compare({"near": (near, base), "lucky": (lucky, base)})["near"]
    assert difference.shares is None and difference.clear and difference.high < 0
    higher = by_seed(0.55, 0.56, 0.53, 0.49, 0.52)
    pair = {"near": (near, higher), "lucky": (lucky, higher)}
    gaps = [near[seed] - higher[seed] for seed in near]
    difference = compare(pair)["near"]
    assert compare(pair)["lucky"].p < difference.p  # so Holm's factor is 1, and 2 is the rule's
    assert difference.p == pytest.approx(2 * stats.ttest_1samp(gaps, 0).pvalue)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_counts_match_the_exact_test(seeds):
    """Boschloo's p, from all tables and a fine grid of the common probability."""
    from math import comb

    def fisher(a: int, b: int) -> float:
        return min(
            stats.fisher_exact([[a, b], [seeds - a, seeds - b]], side).pvalue
            for side in ("less", "greater")
        )

    grid = np.linspace(0.001, 0.999, 999)
    for learnt in range(seeds + 1):
        p = compare_counts(learnt, 0, seeds)
        if not learnt:
            assert p == 1
            continue
        limit = stats.fisher_exact([[learnt, 0], [seeds - learnt, seeds]], "greater").pvalue
        total = 0.0 * grid
        for a in range(seeds + 1):
            for b in range(seeds + 1):
                table = [[a, b], [seeds - a, seeds - b]]
                if stats.fisher_exact(table, "greater").pvalue <= limit * (1 + 1e-9):
                    total += (
                        comb(seeds, a)
                        * comb(seeds, b)
                        * grid ** (a + b)
                        * (1 - grid) ** (2 * seeds - a - b)
                    )
        assert p == pytest.approx(min(1, 2 * total.max()), rel=0.01)


def test_columns_of_learnt_runs():
    line = describe_learnt([1.0, 0.98, 0.35, math.nan, 0.99], 0.5)
    assert (line["learnt"], line["two_groups"]) == (3, 1)
    assert line["learnt_accuracy"] == pytest.approx(0.99)
    reach = stats.t.ppf(0.975, 2) * 0.01 / math.sqrt(3)
    assert (line["learnt_low"], line["learnt_high"]) == pytest.approx((0.99 - reach, 1.0))
    assert format_learnt(5, 6) == "5 of 6 runs learnt it (44 to 97 %)"


def test_threshold_lies_halfway_between_chance_and_best():
    for name, entry in task.items():
        assert entry.chance < entry.learnt_from < entry.best, name
        assert entry.learnt_from == (entry.chance + entry.best) / 2


@pytest.mark.parametrize(
    ("p", "sentence"),
    [
        (math.nan, "60.0 points. Too few seeds for a verdict."),
        (0.2, "No single effect is significant; largest: − norm, 60.0 points."),
        (0.01, "Largest significant single effect: − norm, 60.0 points."),
    ],
)
def test_effect_without_interval_is_told_by_its_p(p, sentence):
    row = {"part": "− norm", "removed": 0.6, "removed_low": math.nan, "removed_p": p}
    assert sentence in describe_largest_effect(pd.DataFrame([row]))
