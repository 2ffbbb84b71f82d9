"""What of a plan's runs is compared: of each model and seed the run at the learning rate that was chosen, on the baseline's steps."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.experiments.training.plan import Arm, Plan
from core.experiments.training.results import Runs, at, diverged
from core.tasks import task
from core.train import Row
from core.train.search import choose

Key = tuple[str, int]  # of a model or of one of its runs, and the seed


@dataclass(frozen=True)
class Judged:
    """(model, seed) -> its rows; and under which name that run stands among all runs."""

    runs: Runs
    names: Mapping[Key, str]


def judged(runs: Runs, plan: Plan) -> Judged:
    """Of each model and seed one run. Where rates are searched, that whose rate the other seeds were best at (core.train.search),
    at the newest step that all of the model's runs have come to; before there is one, and with a single seed, that at its own rate.

    The rows of a model that is trained for more or fewer steps than the plan says, because each takes less or more time, stand at the
    baseline's steps: at each of them what was measured last by then.
    """
    if plan.trial.search == "none" and not any(arm.training for arm in plan.arms):
        return Judged(runs, {(arm.name, seed): arm.name for arm in plan.arms for seed in plan.seeds})
    found: dict[Key, list[Row]] = {}
    names: dict[Key, str] = {}
    for arm in plan.arms:
        own = {
            (name, seed): _on_steps(runs[name, seed], (arm.training or plan.training).steps, plan)
            for name in plan.ways(arm)
            for seed in plan.seeds
        }
        for seed, name in _chosen(own, arm, plan).items():
            found[arm.name, seed], names[arm.name, seed] = own[name, seed], name
    return Judged(found, names)


def _chosen(runs: Runs, arm: Arm, plan: Plan) -> dict[int, str]:
    """Seed -> which of a model's runs is judged."""
    ways = plan.ways(arm)
    ends = [rows[-1].step if rows else 0 for rows in runs.values() if not diverged(rows)]
    step = min(ends, default=plan.training.steps)
    if len(ways) == 1 or not step:
        return dict.fromkeys(plan.seeds, arm.name)
    accuracies = {
        name: {
            seed: math.nan if diverged(runs[name, seed]) else at(runs[name, seed], step, "accuracy")
            for seed in plan.seeds
        }
        for name in ways
    }
    by_rate = {ways[name].learning_rate: name for name in ways}
    of = choose({rate: accuracies[name] for rate, name in by_rate.items()}, task[plan.training.task].chance)
    return {seed: by_rate[of[seed]] if seed in of else arm.name for seed in plan.seeds}


def _on_steps(rows: list[Row], steps: int, plan: Plan) -> list[Row]:
    """Of a run of so many steps, at those steps at which the baseline is measured."""
    training, whole = plan.training, [row for row in rows if not row.note]
    if steps == training.steps or not rows:
        return rows
    scale, own = steps / training.steps, [row.step for row in whole]
    due = sorted({1, *range(training.every, training.steps + 1, training.every), training.steps})
    reached = {step: steps if step == training.steps else max(1, step * scale) for step in due}
    placed = [
        whole[bisect_right(own, at_most) - 1]._replace(step=step)
        for step, at_most in reached.items()
        if whole and at_most <= rows[-1].step
    ]
    lost = [row._replace(step=min(training.steps, math.ceil(row.step / scale))) for row in rows if row.note]
    return placed + lost


def rates(plan: Plan, names: Mapping[Key, str]) -> dict[str, str]:
    """Model -> which learning rates were chosen, and on how many seeds; nothing where they are not searched."""
    if plan.trial.search == "none":
        return {}
    return {
        arm.name: counted([plan.ways(arm)[names[arm.name, seed]].learning_rate for seed in plan.seeds])
        for arm in plan.arms
    }


def counted(values: Sequence[float]) -> str:
    """ "0.003 on 2, 0.01 on 1"."""
    return ", ".join(f"{value:g} on {of}" for value, of in sorted(Counter(values).items()))


class Judge:
    """The runs of a plan as they are judged now; worked out anew only when there are more rows."""

    def __init__(self, plan: Plan, runs: Runs) -> None:
        self.plan, self.every, self._seen = plan, runs, (-1, Judged({}, {}))

    @property
    def now(self) -> Judged:
        rows = sum(map(len, self.every.values()))
        if rows != self._seen[0]:
            self._seen = rows, judged({key: list(each) for key, each in self.every.items()}, self.plan)
        return self._seen[1]
