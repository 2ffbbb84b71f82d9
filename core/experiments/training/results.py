"""Results of a plan as tables: every run, each model over seeds, differences from the baseline."""

import math
from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import TypeVar

import pandas as pd

from core.experiments.training.plan import Plan
from core.measure.intervals import Interval, geometric, interval
from core.measure.verdicts import (
    MARGIN,
    NO_NOISE,
    NOTHING,
    Difference,
    Facts,
    Pair,
    Values,
    compare_runs,
    describe_learnt,
    measure_noise,
    pair_runs,
)
from core.tasks import task
from core.train import Row, Training, held_out
from core.train.match import match

Runs = Mapping[tuple[str, int], list[Row]]  # (arm, seed) -> what was measured of it
Name = TypeVar("Name", bound=Hashable)

RANGE = (0.0, 1.0)  # of an accuracy
NINETY = 0.9


def last_value(rows: list[Row], field: str = "accuracy") -> float:
    """Return a run's newest value (accuracy: a share); NaN without rows and for a diverged run."""
    return getattr(rows[-1], field) if rows and not diverged(rows) else math.nan


def diverged(rows: list[Row]) -> str:
    """Return "diverged at step k" for a run that diverged, else ""."""
    return rows[-1].note if rows else ""


def value_at(rows: list[Row], step: int, field: str) -> float:
    """Return a run's value at exactly this step; NaN if it has no such row."""
    return next((getattr(row, field) for row in rows if row.step == step), math.nan)


def newest_step(runs: Runs, seeds: Iterable[int], name: str) -> int:
    """Return the newest step that all seeds of a model reached, except diverged ones; else 0."""
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


def steps_to(rows: list[Row], accuracy: float) -> float:
    """Return the first step with at least this accuracy, a share; NaN if there is none so far."""
    return next((row.step for row in rows if row.accuracy >= accuracy), math.nan)


def scores(
    runs: Runs, plan: Plan, name: str, step: int | None = None, field: str = "accuracy"
) -> dict[int, float]:
    """Return a model's value by seed at a step (None: newest); NaN if diverged or missing."""
    runs_by_seed = {seed: runs[name, seed] for seed in plan.seeds}
    values = {
        seed: last_value(rows, field) if step is None else value_at(rows, step, field)
        for seed, rows in runs_by_seed.items()
    }
    return {
        seed: math.nan if diverged(runs_by_seed[seed]) else value for seed, value in values.items()
    }


def mean_accuracy(runs: Runs, plan: Plan, name: str, step: int | None = None) -> Interval:
    """Return a model's mean accuracy (share) over seeds not diverged, at a step (None: newest)."""
    return interval(scores(runs, plan, name, step).values(), RANGE)


def values_by_step(
    runs: Runs, plan: Plan, name: str, field: str, log: bool = False
) -> list[tuple[int, Interval]]:
    """Return (step, Interval) for each step that all seeds have; diverged ones aside unless all.

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


def facts_of(training: Training, margin: float = MARGIN) -> Facts:
    """Return the Facts of a task: its learnt threshold, number of test answers, and the margin."""
    learnt = task[training.task]
    _, targets = held_out(training.task, 0, training.length)
    return Facts(learnt.learnt_from, int(learnt.answer_positions(targets).sum()), margin)


def gaps(
    training: Training, several: Mapping[Name, tuple[Values, Values]]
) -> dict[Name, Difference]:
    """Return the differences model − baseline of (model, baseline) pairs, corrected together.

    Args:
        training: Training of all of them.
        several: Accuracies of a model and of its baseline, by seed.
    """
    return compare_runs(pair_runs(several, facts_of(training)))


def summary(runs: Runs, plan: Plan, rates: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Tabulate accuracy, difference, verdict, cost and more per model at the newest common step.

    variant; accuracy, low, high (95 % interval); seeds (that did not diverge, of which accuracy and
    loss are means); diverged (how many did); difference to the baseline, difference_low,
    difference_high, p (core/measure/verdicts.py, on the seeds that diverged in neither; corrected
    for all variants, Holm), p_uncorrected, pairs (number of those seeds), verdict and margin (of
    equivalence), p_exact, p_exact_least, correlation, spread, smallest_effect, seeds_for_1,
    seeds_for_5 (core.measure.verdicts.Noise);
    the columns of describe_learnt; parameters, parameters_difference
    (relative); flops (of one sequence, forward), flops_difference; note (how it was widened); loss;
    steps_to_90 (mean over the seeds that came to 90 % right, of the first step at which they had;
    as coarse as the rows are), seeds_at_90 (how many did); guards (what was held alike for all);
    rates, where they are given (variant -> which learning rates were chosen).
    """
    base = plan.arms[0]
    step = common_step(runs, plan)
    size = {arm.name: match["parameters"](arm.config, plan.training) for arm in plan.arms}
    work = {arm.name: match["flops"](arm.config, plan.training) for arm in plan.arms}
    rows = []
    facts = facts_of(plan.training)
    compared = differences(runs, plan, step)
    base_accuracies = scores(runs, plan, base.name, step)
    comparisons = sum(not math.isnan(gap.p) for gap in compared.values())
    for arm in plan.arms:
        accuracies = scores(runs, plan, arm.name, step)
        noise = NO_NOISE
        if arm.name in compared:
            noise = measure_noise(accuracies, base_accuracies, facts.answers, comparisons)
        mean = interval(accuracies.values(), RANGE)
        off = compared.get(arm.name, NOTHING)
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
                "p_uncorrected": off.p_uncorrected,
                "pairs": off.n,
                "verdict": off.verdict if arm.name in compared else "",
                "margin": off.margin,
                **noise._asdict(),
                **describe_learnt(accuracies.values(), facts.learnt_from),
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


def differences(runs: Runs, plan: Plan, step: int) -> dict[str, Difference]:
    """Return each variant's accuracy difference from the baseline at a step, Holm-corrected."""
    base = scores(runs, plan, plan.arms[0].name, step)
    several = {arm.name: (scores(runs, plan, arm.name, step), base) for arm in plan.arms[1:]}
    return gaps(plan.training, several)


def curves(runs: Runs, plan: Plan) -> pd.DataFrame:
    """Return means over seeds with interval: variant, field, step, mean, low, high, seeds.

    field: accuracy, or loss with its geometric mean.
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
    """Tabulate the accuracy each part loses when removed alone, and gains when put back alone.

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

    base = scored(frozenset())
    removed = {arm.name: (base, scored(arm.members)) for arm in plan.parts}
    restored = {arm.name: (scored(every - arm.members), scored(every)) for arm in plan.parts}
    out = gaps(plan.training, removed)
    back = gaps(plan.training, restored)
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
    """Tabulate the 2 × 2 interaction, both − first − second + neither, of each pair of variants.

    Returns one, other; neither, first, second, both (mean accuracies); interaction, low, high, p by
    seed, Holm-corrected over pairs; seeds. Pairs that were not trained together are left out. 0:
    losses add up; below 0: removing both costs more than the sum.
    """
    by = _by_members(plan)
    step = common_step(runs, plan)
    results = {}
    for a, other in combinations([arm.name for arm in plan.parts], 2):
        four = [by.get(frozenset(members)) for members in ((), (a,), (other,), (a, other))]
        arm_names = [name for name in four if name is not None]
        if len(arm_names) == len(four):
            results[a, other] = [scores(runs, plan, name, step) for name in arm_names]
    facts = facts_of(plan.training)
    sums = {
        pair: Pair(
            {seed: both[seed] - first[seed] for seed in plan.seeds},
            {seed: second[seed] - neither[seed] for seed in plan.seeds},
            facts,
            has_groups=False,
        )
        for pair, (neither, first, second, both) in results.items()
    }
    rows = []
    off_by = compare_runs(sums, (-2.0, 2.0))
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
