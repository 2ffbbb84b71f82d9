"""Runs of the store as the comparison that the page "Training" shows: the same curves, tables and sentences."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from core.experiments.training.plan import BASELINE, Arm, Plan, Trial
from core.settings.device import Machine
from core.study.curves import MADE, Made
from core.study.database.queries import Line
from core.study.database.schema import ENDED
from core.study.database.store import Store
from core.study.file.guards import without_rate
from core.study.plan import TRAINING, Run, read_run, read_settings
from core.train import Row, Training


@dataclass(frozen=True)
class StoredPlan(Plan):
    """A plan whose seeds need not follow each other."""

    chosen: tuple[int, ...] = ()

    @property
    def seeds(self) -> list[int]:
        return list(self.chosen)


@dataclass(frozen=True)
class Stored:
    """What was trained, with {(variant, seed): rows}; notes: what of it is left out, and why."""

    plan: StoredPlan
    runs: dict[tuple[str, int], list[Row]]
    notes: tuple[str, ...] = ()
    origin = "From the store"

    @property
    def every_run(self) -> dict[tuple[str, int], list[Row]]:
        return self.runs


def stored(store: Store, study: int, task: str, variants: list[str]) -> Stored | None:
    """The baseline of a task and some variants, on the seeds of which all have rows; None where there are none yet.

    A variant that is trained for another number of steps, or on sequences of another length, is left out. Raises ConfigError for
    settings that this version does not have.
    """
    wanted = [BASELINE, *variants]
    lines = {
        (run.variant, run.seed): run
        for run in store.runs(study, spec=False)
        if run.task == task and run.variant in wanted and run.step
    }
    rows: dict[int | None, list[Row]] = {}
    for run, *row in store.rows(study, [run.id for run in lines.values()]):
        rows.setdefault(run, []).append(Row(*row))
    specs, has_rows = store.specs(study), {variant for variant, _ in lines}
    arms: list[Arm] = []
    trainings: list[Training] = []
    notes = []
    for place, name in enumerate(wanted):
        if name not in has_rows and not place:
            return None  # nothing to compare with
        if name not in has_rows:
            notes.append(f"{name} has no numbers yet.")
            continue
        config, training = read_settings(specs[task, name])
        if arms and (training.steps, training.length) != (trainings[0].steps, trainings[0].length):
            notes.append(
                f"{name} is left out here: it is trained for {training.steps:,} steps on length {training.length}."
            )
            continue
        arms.append(Arm(name, config, place, frozenset([name] if place else [])))
        trainings.append(training)
    there = [seed for name, seed in lines if name == BASELINE]
    seeds = tuple(sorted(seed for seed in there if all(rows.get(_id(lines, arm.name, seed)) for arm in arms)))
    if not seeds:
        return None
    runs = {(arm.name, seed): rows[lines[arm.name, seed].id] for arm in arms for seed in seeds}
    plan = StoredPlan(tuple(arms), trainings[0], Trial(seeds=min(len(seeds), 30)), Machine(), seeds)
    return Stored(plan, runs, tuple(notes))


def cell(store: Store, study: int, task: str, variant: str) -> list[tuple[Run, list[Row], Made]]:
    """Every run of a cell and of its baseline that has its result, at every learning rate: with its rows, and what made them.

    Raises ConfigError for settings that this version does not have, or a device that no machine has.
    """
    known = store.specs(study)
    near = {name: read_run(*name, known[name]) for name in known if name[0] == task and _may_be(name[1], variant)}
    specs = {
        name: run
        for name, run in near.items()
        if {run.variant, without_rate(run.variant, run.training.learning_rate)} & {BASELINE, variant}
    }
    lines = [run for run in store.runs(study, *ENDED, spec=False) if (run.task, run.variant) in specs]
    rows: dict[int | None, list[Row]] = {}
    for run, *row in store.rows(study, [line.id for line in lines]):
        rows.setdefault(run, []).append(Row(*row))
    found = []
    for line in (line for line in lines if line.id in rows):
        first = specs[line.task, line.variant]
        run = replace(first, config=first.config.replace(seed=line.seed))
        found.append((run, rows[line.id], made_of([line])))
    return found


def _may_be(name: str, variant: str) -> bool:
    """Whether a run's name can be that of a variant or of its baseline, or of one of them at a learning rate."""
    return name in (BASELINE, variant) or name.startswith((f"{variant}, ", TRAINING["learning_rate"].short))


def made_of(lines: Collection[Line]) -> Made:
    """What trained these runs."""
    there = [tuple(sorted({getattr(line, name) for line in lines} - {""})) for name in MADE]
    return dict(zip(MADE, there))


def _id(lines: Mapping[tuple[str, int], Line], name: str, seed: int) -> int | None:
    return lines[name, seed].id if (name, seed) in lines else None
