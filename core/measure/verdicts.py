"""Verdicts on accuracies over seeds: which models differ from which.

The rule, whose false claims `python -m benchmarks.verdicts` counts:

- Two seeds decide nothing: a verdict needs three.
- Differences are paired by seed and compared by Student's t-test. Their standard deviation counts
  as at least one test answer.
- Some model of a task may have runs that learnt the task and runs that did not, far apart. A mean
  over both says little, so two things are compared: how many runs learnt it (Boschloo's exact
  test, 1970), and the means of pairs that both learnt it (t-test). The smaller p counts twice.
- Two models of such a task that are not in two groups themselves, and not on different sides of the
  threshold, are compared by their means.
- Several comparisons are corrected together (Holm, 1979).
- A study may look several times, with more seeds each time where a comparison is undecided. Each
  look may make the same part of the errors (Bonferroni): with three looks, 1.7 %.

Each comparison has one of three verdicts. "difference": p is below 0.05. "equivalent": it is not,
and the corrected interval lies inside ± a margin that was stated before the runs. That is two
one-sided t-tests (Schuirmann, 1987), each at half of the corrected level. "undecided": neither.
That no difference was found never means that there is none. Equivalence assumes that other runs
scatter as these did: five runs that all learnt a task do not exclude that one in ten would not.
"""

import functools
import importlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from core.measure.intervals import (
    LEVEL,
    Paired,
    Within,
    correct_together,
    interval,
    paired,
    sign_flips,
)
from core.measure.power import LEAST_SEEDS, seeds_for, smallest_effect

CHANGE: Within = (-1.0, 1.0)  # of the difference of two accuracies
DIGITS = 6  # that count in a difference: an accuracy is a float32
# Least distance between the runs of a model that learnt the task and those that did not.
APART = 0.2
MARGIN = 0.02  # of a difference that does not matter, where a study states no other
# Verdicts
DIFFERENCE = "difference"
EQUIVALENT = "equivalent"
UNDECIDED = "undecided"
SHOWN_POINTS = (1, 5)  # differences for which it is said how many seeds would show them

Key = TypeVar("Key", bound=Hashable)
Values = Mapping[int, float]  # seed -> accuracy; NaN for a run that diverged or is missing


class Facts(NamedTuple):
    """Facts of a task on which a verdict depends.

    learnt_from: accuracy from which a run has learnt it. answers: number of test answers. margin:
    models whose accuracies differ by less are equivalent.
    """

    learnt_from: float
    answers: int
    margin: float = MARGIN


class Pair(NamedTuple):
    """Accuracies of a model and of its baseline, by seed.

    has_groups: whether runs of this task learnt it or did not, far apart, for any of its models.
    """

    values: Values
    base: Values
    facts: Facts
    has_groups: bool


class Shares(NamedTuple):
    """Comparison of a model and its baseline by how many runs learnt the task.

    p: of the exact test of the two numbers, not corrected. both: pairs that both learnt it.
    """

    learnt: int
    base_learnt: int
    n: int
    p: float
    both: Paired


class Difference(NamedTuple):
    """Mean difference of accuracies, its interval, p of the verdict and reach; see Paired.

    shares: where the mean says little, what is compared instead; the interval is then NaN.
    margin: of equivalence. p_uncorrected: p before it is corrected for other comparisons and looks.
    """

    mean: float
    low: float
    high: float
    n: int
    p: float
    reach: float
    shares: Shares | None = None
    margin: float = MARGIN
    p_uncorrected: float = math.nan

    @property
    def clear(self) -> bool:
        """Whether the difference is significant: p is below 0.05; False for NaN."""
        return self.p < 1 - LEVEL

    @property
    def verdict(self) -> str:
        """Verdict: "difference", "equivalent" or "undecided"; see find_verdict()."""
        return find_verdict(self.p, self.low, self.high, self.margin)


NOTHING = Difference(math.nan, math.nan, math.nan, 0, math.nan, math.nan)


def find_verdict(p: float, low: float, high: float, margin: float) -> str:
    """Return DIFFERENCE for p < 0.05, EQUIVALENT for an interval inside ± margin, or UNDECIDED.

    Args:
        p: Corrected p of the difference; NaN with too few seeds.
        low: Lower end of its corrected interval; NaN without one.
        high: Upper end.
        margin: Largest difference that does not matter.
    """
    if p < 1 - LEVEL:
        return DIFFERENCE
    if -margin < low and high < margin:  # False for NaN
        return EQUIVALENT
    return UNDECIDED


def has_two_groups(values: Iterable[float], learnt_from: float) -> bool:
    """Return whether some runs learnt a task and others did not, at least 0.2 of accuracy apart.

    learnt_from: the accuracy from which a run has learnt it. Diverged runs (NaN) are left out.
    """
    finite = [value for value in values if not math.isnan(value)]
    learnt = [value for value in finite if value >= learnt_from]
    others = [value for value in finite if value < learnt_from]
    return bool(learnt and others) and min(learnt) - max(others) >= APART


def find_learnt(values: Values, learnt_from: float) -> set[int]:
    """Return the seeds with an accuracy of learnt_from or more; never a diverged run (NaN)."""
    return {seed for seed, value in values.items() if value >= learnt_from}


def pair_runs(several: Mapping[Key, tuple[Values, Values]], facts: Facts) -> dict[Key, Pair]:
    """Return {key: Pair} of one task; has_groups is whether runs of any of its models split."""
    models = [values for pair in several.values() for values in pair]
    has_groups = any(has_two_groups(values.values(), facts.learnt_from) for values in models)
    return {key: Pair(*pair, facts, has_groups) for key, pair in several.items()}


def compare_runs(
    pairs: Mapping[Key, Pair], within: Within = CHANGE, looks: int = 1, others: int = 0
) -> dict[Key, Difference]:
    """Return model − baseline by pair, Holm-corrected with `others` more pairs, p times looks.

    Args:
        pairs: Models and their baselines, by key.
        within: Range of possible differences.
        looks: How often they are compared, with more seeds each time.
        others: Number of comparisons that were equivalent at an earlier look; they still count.
    """

    def compare(key: Key, level: float) -> Difference:
        gap = _compare(pairs[key], within, level)
        return gap._replace(p_uncorrected=gap.p)

    differences = correct_together(compare, pairs, looks, others)
    return {
        key: difference._replace(margin=pairs[key].facts.margin)
        for key, difference in differences.items()
    }


class Looked(NamedTuple):
    """Differences as they were at the look that decided them, and the seeds each one needs now."""

    differences: dict[Any, Difference]
    seeds: dict[Any, int]


def compare_in_looks(
    several: Mapping[Key, tuple[Values, Values]], facts: Facts, looks: Sequence[int]
) -> Looked:
    """Compare models at ever more seeds (`looks`) until decided: differences, seeds each needs.

    A look is complete when all undecided models and their baselines have ended on its seeds. One
    that is not complete is shown only if it is the first. Models that diverged on too many seeds
    for a verdict get no more seeds.

    Args:
        several: (model, baseline), each from seeds 0, 1, … to accuracies. NaN for a run that
            diverged; runs that have not ended are left out.
        facts: Of the task.
        looks: Numbers of seeds, such as (5, 10, 20).
    """
    differences: dict[Key, Difference] = {}
    seeds = dict.fromkeys(several, looks[0])
    undecided = list(several)
    n_equivalent = 0
    for number, n in enumerate(looks):
        pairs = {
            key: (_first_seeds(several[key][0], n), _first_seeds(several[key][1], n))
            for key in undecided
        }
        is_complete = all(len(side) == n for pair in pairs.values() for side in pair)
        if number and not is_complete:
            break
        compared = compare_runs(pair_runs(pairs, facts), looks=len(looks), others=n_equivalent)
        differences |= compared
        if not is_complete:
            break
        undecided = [
            key
            for key in undecided
            if compared[key].verdict == UNDECIDED and compared[key].n >= LEAST_SEEDS
        ]
        n_equivalent += sum(gap.verdict == EQUIVALENT for gap in compared.values())
        if number + 1 < len(looks):
            seeds |= dict.fromkeys(undecided, looks[number + 1])
    return Looked(differences, seeds)


def _first_seeds(values: Values, n: int) -> dict[int, float]:
    """Return the accuracies, NaN too, of those seeds that are below n."""
    return {seed: value for seed, value in values.items() if seed < n}


def _compare(pair: Pair, within: Within, level: float) -> Difference:
    """Return a pair's difference, interval at a level (NaN: compared by shares), uncorrected p."""
    values, base, facts, has_groups = pair
    gap = _compare_means(values, base, facts, within, level)
    seeds = [seed for seed in values if not math.isnan(values[seed] - base.get(seed, math.nan))]
    if not has_groups or gap.n < LEAST_SEEDS:
        return gap
    learnt = find_learnt(values, facts.learnt_from) & set(seeds)
    base_learnt = find_learnt(base, facts.learnt_from) & set(seeds)
    half = (1 + level) / 2  # the smaller of two p counts twice
    everywhere = [len(runs) in (0, len(seeds)) for runs in (learnt, base_learnt)]
    is_split = any(has_two_groups(runs.values(), facts.learnt_from) for runs in (values, base))
    # Runs near the threshold, on both sides of it, are no two groups: their mean says enough.
    if not is_split and (learnt == base_learnt or not all(everywhere)):
        gap = _compare_means(values, base, facts, within, half)
        return gap._replace(p=min(1.0, 2 * gap.p))
    both = learnt & base_learnt
    p = compare_counts(len(learnt), len(base_learnt), len(seeds))
    means = _compare_means({seed: values[seed] for seed in both}, base, facts, within, half)
    smaller = min(p, means.p) if means.p == means.p else p
    shares = Shares(len(learnt), len(base_learnt), len(seeds), p, Paired(*means[:6]))
    return gap._replace(low=math.nan, high=math.nan, p=min(1.0, 2 * smaller), shares=shares)


def _compare_means(
    values: Values, base: Values, facts: Facts, within: Within, level: float
) -> Difference:
    """Return the paired mean difference with its t-interval and p, both NaN below three seeds."""
    gaps = {seed: round(values[seed] - base.get(seed, math.nan), DIGITS) for seed in values}
    gap = paired(gaps, dict.fromkeys(gaps, 0.0), within, level, 1 / facts.answers)
    if gap.n < LEAST_SEEDS:
        return Difference(gap.mean, math.nan, math.nan, gap.n, math.nan, math.nan)
    return Difference(*gap)


@functools.cache
def compare_counts(learnt: int, base_learnt: int, seeds: int) -> float:
    """Return p of learnt and base_learnt runs, of so many seeds each (Boschloo, two-sided)."""
    if learnt == base_learnt:
        return 1.0
    # SciPy's statistics take 40 MB, which most servers never need.
    statistics = importlib.import_module("scipy.stats")
    table = [[learnt, base_learnt], [seeds - learnt, seeds - base_learnt]]
    return float(statistics.boschloo_exact(table, n=64).pvalue)


def describe_learnt(values: Iterable[float], learnt_from: float) -> dict[str, float]:
    """Return learnt (a count), two_groups (0 or 1), learnt_accuracy, learnt_low, learnt_high.

    Columns of a table. two_groups: 1 if other runs did not learn the task, far apart. The last
    three: mean and interval of the runs that learnt it; NaN without such runs.
    """
    by_run = dict(enumerate(values))
    learnt = find_learnt(by_run, learnt_from)
    mean = interval([by_run[run] for run in learnt], (0.0, 1.0))
    return {
        "learnt": len(learnt),
        "two_groups": int(has_two_groups(by_run.values(), learnt_from)),
        "learnt_accuracy": mean.mean,
        "learnt_low": mean.low,
        "learnt_high": mean.high,
    }


class Noise(NamedTuple):
    """Noise of a paired comparison over seeds: what it allows to see. For information only.

    Attributes:
        p_exact: p of the exact test by sign flips (Fisher, 1935), not corrected.
        p_exact_least: Least p that this test can have with so many seeds.
        correlation: Of the two models' accuracies over seeds; pairing helps only where it is
            above 0.
        spread: Standard deviation of the differences, at least one test answer.
        smallest_effect: Smallest difference that these seeds show (core.measure.power).
        seeds_for_1: Number of seeds that would show one percentage point.
        seeds_for_5: Number of seeds that would show five.
    """

    p_exact: float = math.nan
    p_exact_least: float = math.nan
    correlation: float = math.nan
    spread: float = math.nan
    smallest_effect: float = math.nan
    seeds_for_1: float = math.nan
    seeds_for_5: float = math.nan


NO_NOISE = Noise()


def measure_noise(
    values: Values, base: Values, answers_per_run: int, comparisons: int = 1
) -> Noise:
    """Measure the noise of values − base, shares by seed; all NaN below three common seeds.

    Args:
        values: Accuracies of a model by seed.
        base: Those of the baseline.
        answers_per_run: Number of test answers of a run.
        comparisons: How many comparisons are corrected together; effects and seeds are for the
            level of the first of them.
    """
    seeds = [seed for seed in values if not math.isnan(values[seed] - base.get(seed, math.nan))]
    if len(seeds) < LEAST_SEEDS:
        return NO_NOISE
    both = np.array([(values[seed], base[seed]) for seed in seeds])
    gaps = both[:, 0] - both[:, 1]
    spread = max(float(gaps.std(ddof=1)), 1 / answers_per_run)
    level = 1 - (1 - LEVEL) / comparisons
    varies = bool((np.ptp(both, 0) > 0).all())
    return Noise(
        _flip_signs(tuple(np.round(gaps * answers_per_run).astype(int).tolist()), answers_per_run),
        2.0 ** (1 - len(seeds)),
        float(np.corrcoef(both.T)[0, 1]) if varies else math.nan,
        spread,
        smallest_effect(spread, len(seeds), level),
        *(seeds_for(points / 100, spread, level) for points in SHOWN_POINTS),
    )


@functools.lru_cache(maxsize=4096)
def _flip_signs(gaps: tuple[int, ...], answers_per_run: int) -> float:
    """Return the exact sign-flip p of differences that are given as numbers of test answers."""
    return sign_flips([Fraction(gap, answers_per_run) for gap in gaps])
