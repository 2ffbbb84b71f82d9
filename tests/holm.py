"""Holm's correction by its definition as a closed test, with SciPy's t-tests.

core.measure.intervals.together() must equal it.
"""

from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy import stats


def corrected(pvalues: list[float]) -> list[float]:
    """Return Holm-corrected p-values by closed testing.

    A hypothesis is rejected if every set of hypotheses that contains it is rejected, each by
    Bonferroni's test.
    """
    return _closed(tuple(pvalues))


@lru_cache(maxsize=16)
def _closed(pvalues):
    numbers = range(len(pvalues))
    sets = [
        combination
        for size in range(1, len(pvalues) + 1)
        for combination in combinations(numbers, size)
    ]
    return [
        max(min(1.0, len(s) * min(pvalues[n] for n in s)) for s in sets if index in s)
        for index in numbers
    ]


def level(pvalues: list[float], index: int) -> float:
    """Return the confidence level at which Holm's procedure tests one hypothesis.

    Bonferroni's correction counts the hypotheses that have not been rejected before it.
    """
    rejected = sum(p < 0.05 for p in corrected(pvalues))
    smaller = sum((p, n) < (pvalues[index], index) for n, p in enumerate(pvalues))
    return 1 - 0.05 / (len(pvalues) - min(smaller, rejected))


def differences(samples: dict, low: float = -np.inf, high: float = np.inf) -> dict:
    """Return the corrected interval and test of each sample's mean.

    Args:
        samples: name -> differences, one per seed.

    Returns:
        name -> (mean, low, high, n, p); NaN for the last where there are fewer than two values.
    """
    arrays = {name: np.array(sample, dtype=float) for name, sample in samples.items()}
    tested = [name for name, item in arrays.items() if len(item) > 1]
    ps = [_p(arrays[name]) for name in tested]
    built = {}
    for name, entry in arrays.items():
        if name not in tested:
            built[name] = (
                entry.mean() if len(entry) else np.nan,
                np.nan,
                np.nan,
                len(entry),
                np.nan,
            )
            continue
        index = tested.index(name)
        ends = (entry[0], entry[0])
        if np.ptp(entry):
            ends = stats.ttest_1samp(entry, 0).confidence_interval(level(ps, index))
        built[name] = (
            entry.mean(),
            max(low, ends[0]),
            min(high, ends[1]),
            len(entry),
            corrected(ps)[index],
        )
    return built


def _p(sample) -> float:
    return stats.ttest_1samp(sample, 0).pvalue if np.ptp(sample) else float(sample[0] == 0)


def verdict(p: float, low: float, high: float, margin: float) -> str:
    """Return the verdict on a difference from its corrected p and interval."""
    if p < 0.05:
        return "difference"
    return "equivalent" if max(-low, high) < margin else "undecided"


def verdicts(
    pairs: dict, learnt_from: float, answers: int, margin=0.02, low=-1.0, high=1.0
) -> dict:
    """Return each difference of accuracies by the rule of core/measure/verdicts.py, with SciPy.

    Args:
        pairs: name -> (accuracies, those of the baseline), by seed.
        learnt_from: Accuracy from which a run has learnt the task.
        answers: Number of test answers.
        margin: Of equivalence; it does not change these numbers.
        low: Least possible difference.
        high: Largest possible difference.

    Returns:
        name -> (mean, low, high, n, p), NaN where there is none.
    """
    models = [list(values.values()) for pair in pairs.values() for values in pair]
    has_groups = any(_is_split(np.array(model, float), learnt_from) for model in models)
    arrays = {}
    for name, (values, base) in pairs.items():
        seeds = [seed for seed in values if seed in base]
        both = np.array([(values[seed], base[seed]) for seed in seeds], float).reshape(-1, 2)
        both = both[~np.isnan(both).any(1)]
        learnt = both >= learnt_from
        arrays[name] = (
            both,
            learnt,
            has_groups and not _by_means((values, base), learnt, learnt_from),
        )
    raw = {name: _verdict_p(*pair, has_groups, answers) for name, pair in arrays.items()}
    tested = [name for name, p in raw.items() if not np.isnan(p)]
    ps = [raw[name] for name in tested]
    built = {}
    for name, (both, _, by_shares) in arrays.items():
        gaps = (both[:, 0] - both[:, 1]).round(6)
        mean = gaps.mean() if len(gaps) else np.nan
        ends = (np.nan, np.nan)
        p = np.nan
        if name in tested:
            index = tested.index(name)
            p = corrected(ps)[index]
            if not by_shares:
                confidence = level(ps, index)
                if has_groups:
                    confidence = (1 + confidence) / 2
                ends = _t_interval(gaps, confidence, answers)
                ends = max(low, ends[0]), min(high, ends[1])
        built[name] = (mean, *ends, len(gaps), p)
    return built


def _is_split(model, learnt_from: float) -> bool:
    model = model[~np.isnan(model)]
    learnt = model >= learnt_from
    both = learnt.any() and not learnt.all()
    return bool(both) and model[learnt].min() - model[~learnt].max() >= 0.2


def _by_means(pair, learnt, learnt_from: float) -> bool:
    """Return whether two models of a task with two groups are compared by their means."""
    if any(_is_split(np.array(list(model.values()), float), learnt_from) for model in pair):
        return False
    first, second = (set(column) for column in learnt.T.tolist())
    return len(first) > 1 or len(second) > 1 or first == second


def _error(gaps, answers: int) -> float:
    if not gaps.any():
        return 0.0
    return max(np.std(gaps, ddof=1), 1 / answers) / np.sqrt(len(gaps))


def _t_interval(gaps, confidence: float, answers: int) -> tuple[float, float]:
    reach = stats.t.ppf((1 + confidence) / 2, len(gaps) - 1) * _error(gaps, answers)
    return gaps.mean() - reach, gaps.mean() + reach


def _t_test(gaps, answers: int) -> float:
    if len(gaps) < 3:
        return np.nan
    if not gaps.any():
        return 1.0
    with np.errstate(divide="ignore"):
        return 2 * stats.t.sf(abs(gaps.mean()) / _error(gaps, answers), len(gaps) - 1)


def _verdict_p(both, learnt, by_shares: bool, has_groups: bool, answers: int) -> float:
    """Return the p of one difference, not corrected for the others."""
    gaps = (both[:, 0] - both[:, 1]).round(6)
    p = _t_test(gaps, answers)
    if not has_groups or np.isnan(p):
        return p
    if not by_shares:
        return min(1.0, 2 * p)
    first, second = (int(count) for count in learnt.sum(0))
    table = [[first, second], [len(both) - first, len(both) - second]]
    shares = 1.0 if first == second else stats.boschloo_exact(table, n=64).pvalue
    return min(1.0, 2 * np.nanmin([shares, _t_test(gaps[learnt.all(1)], answers)]))
