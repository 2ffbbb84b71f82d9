"""Several parts taken out at once: what each is worth alone, and whether two losses add up."""

import math
from collections.abc import Callable
from itertools import combinations

import pandas as pd

from core.experiments.training.plan import Plan
from core.experiments.training.results import Runs, common, gaps, scores
from core.measure.intervals import interval


def effects(runs: Runs, plan: Plan) -> pd.DataFrame:
    """Leave one out and add one back: part; removed, removed_low, removed_high, removed_p: accuracy lost when it
    alone is gone; alone, …: accuracy won when it alone comes back to the model that lacks all of them. At the newest
    step that all have reached, over the seeds on which neither of the two diverged; each of the two columns corrected
    for all parts (Holm)."""
    singles = plan.parts
    by, step = _by_members(plan), common(runs, plan)
    every = frozenset(arm.name for arm in singles)
    of: Callable[[frozenset[str]], dict[int, float]] = lambda members: _scores_of(runs, plan, by.get(members), step)  # noqa: E731
    out = gaps({arm.name: (of(frozenset()), of(arm.members)) for arm in singles})
    back = gaps({arm.name: (of(every - arm.members), of(every)) for arm in singles})
    rows = [(name, *out[name][:3], out[name].p, *back[name][:3], back[name].p) for name in out]
    names = ["removed", "removed_low", "removed_high", "removed_p", "alone", "alone_low", "alone_high", "alone_p"]
    return pd.DataFrame(rows, columns=["part", *names])


def interactions(runs: Runs, plan: Plan) -> pd.DataFrame:
    """2 × 2 for every pair of variants: one, other; neither, first, second, both: mean accuracy with so much removed;
    interaction, low, high, p: both − first − second + neither, seed by seed, corrected for all pairs (Holm). 0: the losses
    simply add up; below 0: taking out both costs more than the two losses together; above 0: less (what the first took,
    the second cannot). At the newest step that all have reached, over the seeds on which none of the four diverged (each
    mean over its own, where there are none)."""
    by, step = _by_members(plan), common(runs, plan)
    results = {}
    for one, other in combinations([arm.name for arm in plan.parts], 2):
        four = [by.get(frozenset(members)) for members in ((), (one,), (other,), (one, other))]
        there = [name for name in four if name is not None]
        if len(there) == len(four):
            results[one, other] = [scores(runs, plan, name, step) for name in there]
    sums = {
        pair: (
            {seed: both[seed] - first[seed] for seed in plan.seeds},
            {seed: second[seed] - neither[seed] for seed in plan.seeds},
        )
        for pair, (neither, first, second, both) in results.items()
    }
    rows, off_by = [], gaps(sums, (-2.0, 2.0))
    for pair, values in results.items():
        all_four = [seed for seed in plan.seeds if not any(math.isnan(v[seed]) for v in values)] or plan.seeds
        means = [interval([v[seed] for seed in all_four]).mean for v in values]
        rows.append((*pair, *means, *off_by[pair][:3], off_by[pair].p, off_by[pair].n))
    names = ["neither", "first", "second", "both", "interaction", "low", "high", "p", "seeds"]
    return pd.DataFrame(rows, columns=["one", "other", *names])


def _by_members(plan: Plan) -> dict[frozenset[str], str]:
    """Which arm has just these variants in it."""
    return {members: arm.name for arm in plan.arms for members in (arm.members, *arm.also)}


def _scores_of(runs: Runs, plan: Plan, name: str | None, step: int) -> dict[int, float]:
    """Of an arm that may not have been trained."""
    return scores(runs, plan, name, step) if name else dict.fromkeys(plan.seeds, math.nan)
