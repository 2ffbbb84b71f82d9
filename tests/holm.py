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
