"""Results of a plan as tables: every run, each model over seeds, differences from the baseline."""

import math
from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import TypeVar

import pandas as pd

from core.experiments.training.plan import Plan
from core.measure.intervals import (
    LEVEL,
    Interval,
    Paired,
    correct_together,
    geometric,
    interval,
    paired,
)
from core.train import Row
from core.train.match import match

Runs = Mapping[tuple[str, int], list[Row]]  # (arm, seed) -> what was measured of it
Span = tuple[float, float]
Name = TypeVar("Name", bound=Hashable)

RANGE = (0.0, 1.0)  # of an accuracy
CHANGE = (-1.0, 1.0)  # of the difference of two
DIGITS = 6  # that count in a difference: an accuracy is a float32
NINETY = 0.9


def last_value(rows: list[Row], field: str = "accuracy") -> float:
    """Return the newest value of a run; NaN before the first row, and if it diverged."""
    return getattr(rows[-1], field) if rows and not diverged(rows) else math.nan


def diverged(rows: list[Row]) -> str:
    """Return "diverged at step k" for a run that diverged, else ""."""
    return rows[-1].note if rows else ""


def value_at(rows: list[Row], step: int, field: str) -> float:
    """Return a run's value at a step; NaN where there is none."""
    return next((getattr(row, field) for row in rows if row.step == step), math.nan)


def newest_step(runs: Runs, seeds: Iterable[int], name: str) -> int:
    """Return the newest step that all seeds of a model reached, except diverged ones; or 0."""
    steps = [
        runs[name, seed][-1].step if runs[name, seed] else 0
        for seed in seeds
        if not diverged(runs[name, seed])
    ]
    return min(steps, default=0)


def common_step(runs: Runs, plan: Plan) -> int:
    """Return the newest step that all models reached, except those that diverged; or 0."""
    steps = [
        newest_step(runs, plan.seeds, arm.name)
        for arm in plan.arms
        if not all(diverged(runs[arm.name, seed]) for seed in plan.seeds)
    ]
    return min(steps, default=0)


def steps_to(rows: list[Row], level: float) -> float:
    """Return the first step with at least this accuracy; NaN where there is none yet."""
    return next((row.step for row in rows if row.accuracy >= level), math.nan)


def scores(
    runs: Runs, plan: Plan, name: str, step: int | None = None, field: str = "accuracy"
) -> dict[int, float]:
    """Return a model's value at a step (None: the last) by seed; NaN if diverged or missing."""
    runs_by_seed = {seed: runs[name, seed] for seed in plan.seeds}
    values = {
        seed: last_value(rows, field) if step is None else value_at(rows, step, field)
        for seed, rows in runs_by_seed.items()
    }
    return {
        seed: math.nan if diverged(runs_by_seed[seed]) else value for seed, value in values.items()
    }


def mean_accuracy(runs: Runs, plan: Plan, name: str, step: int | None = None) -> Interval:
    """Return a model's mean accuracy over seeds with its interval, at a step or at the end."""
    return interval(scores(runs, plan, name, step).values(), RANGE)


def values_by_step(
    runs: Runs, plan: Plan, name: str, field: str, log: bool = False
) -> list[tuple[int, Interval]]:
    """Return a value's mean and interval over seeds for each step that all seeds reached.

    A model of which all seeds diverged is shown up to there.

    Args:
        runs: Rows by (model, seed).
        plan: The plan of the runs.
        name: Name of the model.
        field: Field of a row.
        log: Whether to take the geometric mean, for values shown on a logarithmic axis.
    """
    going = [seed for seed in plan.seeds if not diverged(runs[name, seed])] or plan.seeds
    rows = [
        {row.step: getattr(row, field) for row in runs[name, seed] if not row.note}
        for seed in going
    ]
    steps = sorted(set.intersection(*(set(values) for values in rows)))
    within = RANGE if field == "accuracy" else (-math.inf, math.inf)
    values = {step: [values[step] for values in rows] for step in steps}
    return [
        (step, geometric(per_seed) if log else interval(per_seed, within))
        for step, per_seed in values.items()
    ]


def gap(
    values: dict[int, float], base: dict[int, float], within: Span = CHANGE, level: float = LEVEL
) -> Paired:
    """Return the paired difference values − base of accuracies, rounded against float32 noise."""
    both = {seed: round(values[seed] - base[seed], DIGITS) for seed in values}
    return paired(both, dict.fromkeys(both, 0.0), within, level)


def gaps(
    pairs: Mapping[Name, tuple[dict[int, float], dict[int, float]]], within: Span = CHANGE
) -> dict[Name, Paired]:
    """Return paired differences a − b for {name: (a, b by seed)}, Holm-corrected together."""
    return correct_together(lambda key, level: gap(*pairs[key], within, level), pairs)


def summary(runs: Runs, plan: Plan, rates: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return one row per model at the newest step that all of them reached.

    variant; accuracy, low, high (95 % interval); seeds (that did not diverge, of which accuracy and
    loss are means); diverged (how many did); difference to the baseline, difference_low,
    difference_high, p (paired t-test on the seeds that diverged in neither; corrected for all
    variants, Holm); parameters, parameters_difference (relative); flops (of one sequence, forward),
    flops_difference; note (how it was widened); loss; steps_to_90 (mean over the seeds that came to
    90 % right, of the first step at which they had; as coarse as the rows are), seeds_at_90 (how
    many did); guards (what was held alike for all); rates, where they are given (variant -> which
    learning rates were chosen).
    """
    base = plan.arms[0]
    step = common_step(runs, plan)
    size = {arm.name: match["parameters"](arm.config, plan.training) for arm in plan.arms}
    work = {arm.name: match["flops"](arm.config, plan.training) for arm in plan.arms}
    rows = []
    nothing = gap({}, {})
    compared = differences(runs, plan, step)
    for arm in plan.arms:
        mean = mean_accuracy(runs, plan, arm.name, step)
        off = compared.get(arm.name, nothing)
        quick = interval([steps_to(runs[arm.name, seed], NINETY) for seed in plan.seeds])
        rows.append(
            {
                "variant": arm.name,
                "accuracy": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "seeds": mean.n,
                "diverged": sum(bool(diverged(runs[arm.name, seed])) for seed in plan.seeds),
                "difference": off.mean,
                "difference_low": off.low,
                "difference_high": off.high,
                "p": off.p,
                "loss": interval(scores(runs, plan, arm.name, step, "loss").values()).mean,
                "parameters": size[arm.name],
                "parameters_difference": size[arm.name] / size[base.name] - 1,
                "flops": work[arm.name],
                "flops_difference": work[arm.name] / work[base.name] - 1,
                "note": arm.note,
                "steps_to_90": quick.mean,
                "seeds_at_90": quick.n,
                "guards": ", ".join(plan.guards) or "none",
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(rates=table.variant.map(rates)) if rates else table


def differences(runs: Runs, plan: Plan, step: int) -> dict[str, Paired]:
    """Return each model's difference in accuracy from the baseline at a step, Holm-corrected."""
    base = scores(runs, plan, plan.arms[0].name, step)
    return gaps({arm.name: (scores(runs, plan, arm.name, step), base) for arm in plan.arms[1:]})


def curves(runs: Runs, plan: Plan) -> pd.DataFrame:
    """Return the means over seeds with their 95 % interval; of loss the geometric mean.

    Columns: variant, field (accuracy or loss), step, mean, low, high, seeds.
    """
    rows = [
        (arm.name, field, step, *values)
        for field in ("accuracy", "loss")
        for arm in plan.arms
        for step, values in values_by_step(runs, plan, arm.name, field, log=field == "loss")
    ]
    return pd.DataFrame(rows, columns=["variant", "field", "step", "mean", "low", "high", "seeds"])


def every_row(runs: Runs, plan: Plan) -> pd.DataFrame:
    """Return every row of every run as a table: variant, seed and the fields of core.train.Row."""
    rows = [(name, seed, *row) for (name, seed), rows in runs.items() for row in rows]
    return pd.DataFrame(rows, columns=["variant", "seed", *Row._fields])


def effects(runs: Runs, plan: Plan) -> pd.DataFrame:
    """Compute leave-one-out and add-one-back effects of each part at the newest common step.

    Returns part; removed, removed_low, removed_high, removed_p (accuracy lost when it alone is
    removed); alone, alone_low, … (accuracy gained when it alone is put back). Uses seeds on which
    neither diverged; each column is Holm-corrected.
    """
    by = _by_members(plan)
    step = common_step(runs, plan)
    every = frozenset(arm.name for arm in plan.parts)

    def scored(members: frozenset[str]) -> dict[int, float]:  # NaN of an arm that is not trained
        return (
            scores(runs, plan, by[members], step)
            if members in by
            else dict.fromkeys(plan.seeds, math.nan)
        )

    out = gaps({arm.name: (scored(frozenset()), scored(arm.members)) for arm in plan.parts})
    back = gaps({arm.name: (scored(every - arm.members), scored(every)) for arm in plan.parts})
    rows = [(name, *out[name][:3], out[name].p, *back[name][:3], back[name].p) for name in out]
    names = [
        "removed",
        "removed_low",
        "removed_high",
        "removed_p",
        "alone",
        "alone_low",
        "alone_high",
        "alone_p",
    ]
    return pd.DataFrame(rows, columns=["part", *names])


def interactions(runs: Runs, plan: Plan) -> pd.DataFrame:
    """Compute the 2 × 2 interaction for every pair of variants, Holm-corrected over pairs.

    Returns one, other; neither, first, second, both (mean accuracies); interaction, low, high, p of
    both − first − second + neither by seed. 0: losses add up; below 0: removing both costs more
    than the sum.
    """
    by = _by_members(plan)
    step = common_step(runs, plan)
    results = {}
    for a, other in combinations([arm.name for arm in plan.parts], 2):
        four = [by.get(frozenset(members)) for members in ((), (a,), (other,), (a, other))]
        arm_names = [name for name in four if name is not None]
        if len(arm_names) == len(four):
            results[a, other] = [scores(runs, plan, name, step) for name in arm_names]
    sums = {
        pair: (
            {seed: both[seed] - first[seed] for seed in plan.seeds},
            {seed: second[seed] - neither[seed] for seed in plan.seeds},
        )
        for pair, (neither, first, second, both) in results.items()
    }
    rows = []
    off_by = gaps(sums, (-2.0, 2.0))
    for pair, values in results.items():
        all_four = [
            seed for seed in plan.seeds if not any(math.isnan(v[seed]) for v in values)
        ] or plan.seeds
        means = [interval([v[seed] for seed in all_four]).mean for v in values]
        rows.append((*pair, *means, *off_by[pair][:3], off_by[pair].p, off_by[pair].n))
    names = ["neither", "first", "second", "both", "interaction", "low", "high", "p", "seeds"]
    return pd.DataFrame(rows, columns=["one", "other", *names])


def _by_members(plan: Plan) -> dict[frozenset[str], str]:
    """Return {variants that are combined: name of the arm}, also for combinations that equal it."""
    return {members: arm.name for arm in plan.arms for members in (arm.members, *arm.also)}
