"""Selection of the runs to compare: one rate for each model and seed, at the baseline's steps."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from core.experiments.training.plan import Arm, Plan
from core.experiments.training.results import Runs, diverged
from core.train import Row, State
from core.train.match import choose_rate, count_rates, late_loss

Key = tuple[str, int]  # of a model or of one of its runs, and the seed


@dataclass(frozen=True)
class Judged:
    """Rows that are compared by (model, seed), and the name of the run that they come from."""

    runs: Runs
    names: Mapping[Key, str]


def select_runs(runs: Runs, plan: Plan) -> Judged:
    """Select each model and seed's run of least late loss; resample rows to the plan's steps.

    Before it is known, or where rates are not searched: the model's own rate. A model may be
    trained for more or fewer steps than the plan says (matched time). It is resampled: at each
    step, what was measured last by then.
    """
    if plan.one_training:
        return Judged(
            runs, {(arm.name, seed): arm.name for arm in plan.arms for seed in plan.seeds}
        )
    rows_by_key: dict[Key, list[Row]] = {}
    names: dict[Key, str] = {}
    for arm in plan.arms:
        for seed in plan.seeds:
            name = _choose_run({name: runs[name, seed] for name in plan.ways(arm)}, arm, plan)
            names[arm.name, seed] = name
            rows_by_key[arm.name, seed] = _resample_rows(
                runs[name, seed], (arm.training or plan.training).steps, plan
            )
    return Judged(rows_by_key, names)


def _choose_run(runs: Mapping[str, list[Row]], arm: Arm, plan: Plan) -> str:
    """Return the run name of least late loss, diverged ones ∞; the arm's own before any rows."""
    end = min(
        (rows[-1].step if rows else 0 for rows in runs.values() if not diverged(rows)), default=1
    )
    if not end:
        return arm.name
    named = {way.learning_rate: name for name, way in plan.ways(arm).items()}
    losses = {}
    for rate, name in named.items():
        rows = runs[name]
        losses[rate] = (
            math.inf if diverged(rows) else late_loss([(row.step, row.loss) for row in rows], end)
        )
    return named[choose_rate(losses)]


def _resample_rows(rows: list[Row], steps: int, plan: Plan) -> list[Row]:
    """Resample a run of `steps` steps at the plan's: the last row by that share of the run."""
    training = plan.training
    valid = [row for row in rows if not row.note]
    if steps == training.steps or not rows:
        return rows
    own_steps = [row.step for row in valid]
    due = sorted({1, *range(training.every, training.steps + 1, training.every), training.steps})
    # Multiplied before it is divided: in floats 50 * (58 / 100) is less than 29, whose row would be
    # missed.
    reached = {step: max(1, step * steps / training.steps) for step in due}
    placed = [
        valid[bisect_right(own_steps, at_most) - 1]._replace(step=step)
        for step, at_most in reached.items()
        if valid and (at_most < rows[-1].step or at_most == rows[-1].step and not rows[-1].note)
    ]
    lost = [
        row._replace(step=min(training.steps, -(-row.step * training.steps // steps)))
        for row in rows
        if row.note
    ]
    return placed + lost


def describe_rates(plan: Plan, chosen_ways: Mapping[Key, str]) -> dict[str, str]:
    """Return {model: chosen rates, such as "0.003 on 2" (seeds)}; {} unless rates are searched."""
    if plan.trial.search == "none":
        return {}
    return {arm.name: count_rates(_chosen_rates(arm, plan, chosen_ways)) for arm in plan.arms}


def models_at_edge(plan: Plan, chosen_ways: Mapping[Key, str]) -> list[str]:
    """List models whose chosen rate, on most seeds, is the least or greatest of several tried."""
    edge_names = []
    for arm in plan.arms:
        tried = [way.learning_rate for way in plan.ways(arm).values()]
        chosen = _chosen_rates(arm, plan, chosen_ways)
        if len(tried) > 1 and any(
            2 * chosen.count(end) > len(chosen) for end in (min(tried), max(tried))
        ):
            edge_names.append(arm.name)
    return edge_names


def _chosen_rates(arm: Arm, plan: Plan, chosen_ways: Mapping[Key, str]) -> list[float]:
    """Return a model's chosen learning rate for each of the plan's seeds, in their order."""
    ways = plan.ways(arm)
    return [ways[chosen_ways[arm.name, seed]].learning_rate for seed in plan.seeds]


class Judge:
    """Selection of the runs of a plan, repeated only when there are more rows."""

    def __init__(self, plan: Plan, runs: Runs) -> None:
        self.plan = plan
        self.every = runs
        self._seen = (-1, Judged({}, {}))  # number of rows, and the selection from them

    @property
    def now(self) -> Judged:
        """Runs that are compared, with the rows so far; selected again when there are more."""
        rows = sum(map(len, self.every.values()))
        if rows != self._seen[0]:
            self._seen = (
                rows,
                select_runs(
                    {key: list(run_rows) for key, run_rows in self.every.items()}, self.plan
                ),
            )
        return self._seen[1]


class Compared:
    """Runs and states of a plan as they are compared.

    Args:
        every_state: (run name, seed) to state; empty where models were not kept.
    """

    judge: Judge
    every_state: Mapping[Key, State]

    @property
    def runs(self) -> Runs:
        """Rows that are compared, by (model, seed)."""
        return self.judge.now.runs

    @property
    def every_run(self) -> Runs:
        """Rows of every run, at each learning rate that is tried, by (run name, seed)."""
        return self.judge.every

    @property
    def states(self) -> dict[Key, State]:
        """State of each compared run by (model, seed); empty if models were not stored."""
        names = self.judge.now.names if self.every_state else {}
        return {key: self.every_state[name, key[1]] for key, name in names.items()}
