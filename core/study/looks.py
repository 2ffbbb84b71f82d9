"""Looks of a study: more seeds are trained only where a comparison is undecided.

A study with seeds = "5, 10, 20" trains 5 seeds of every model, then 10 of the models that are
undecided and of their baselines, then 20 (core.measure.verdicts.compare_in_looks).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.experiments.training.plan import BASELINE
from core.measure.verdicts import UNDECIDED, Looked
from core.settings.wording import count
from core.study.database.store import Enrolled, Store
from core.study.file import looks_of, parse
from core.study.plan import Run, Study, StudyError, is_null, pair_seed, without_rate
from core.study.tables import Name, find_source, look_at_tasks
from core.train.budget import format_duration


def enrol_needed(store: Store, study: Study) -> Enrolled:
    """Store a study with the runs of its first look and of later looks needed now; see enrol."""
    if not study.later:
        return store.enrol(study)
    known = store.hashes(study.name)
    stored = [run for run in study.later if run.hash in known]
    enrolled = store.enrol(replace(study, runs=(*study.runs, *stored)))
    needed = list_needed_runs(study, look_at_tasks(store, enrolled.study))
    again = store.enrol(replace(study, runs=tuple(needed)))
    return replace(again, new=again.new + enrolled.new)


def list_needed_runs(study: Study, looked: Mapping[str, Looked]) -> list[Run]:
    """Return the runs of a study's first look, and those of later looks that are needed.

    Null arms and searched rates count with the model they belong to.

    Args:
        study: The study.
        looked: Task -> the differences so far.
    """
    seeds: dict[Name, int] = {}
    for task_name, task_look in looked.items():
        for key, n in task_look.seeds.items():
            seeds[key] = n
            base = (task_name, BASELINE)
            seeds[base] = max(n, seeds.get(base, 0))
    return [
        run
        for run in (*study.runs, *study.later)
        if pair_seed(run.variant, run.seed)
        < max(study.looks[0], seeds.get((run.task, _model_of(run)), 0))
    ]


def _model_of(run: Run) -> str:
    """Return the name of a run's model, without the learning rate of a search."""
    return without_rate(run.variant, run.training.learning_rate)


def add_next_look(store: Store, study_id: int) -> bool:
    """Add and queue runs that a study's next look needs now; False if none, or unreadable."""
    source = find_source(store, study_id)
    if not looks_of(source):
        return False
    try:
        return enrol_needed(store, parse(source)).new > 0
    except StudyError:
        return False


@dataclass(frozen=True)
class LookStanding:
    """State of a study's looks: which one it is at, and what the next one would train."""

    look: int  # from 1
    looks: tuple[int, ...]
    compared: int
    undecided: int
    runs: int  # of the next look, if no more comparisons are decided
    seconds: float  # that they take on one core

    def describe(self, workers: int = 1) -> str:
        """Describe the looks in sentences, and what the next one costs in runs and time."""
        seeds = f"Look {self.look} of {len(self.looks)} ({self.looks[self.look - 1]} seeds)"
        decided = (
            f"{self.compared - self.undecided} of {count(self.compared, 'comparison')} decided"
        )
        if not self.undecided:
            return f"{seeds}: {decided}; no more seeds are needed."
        if not self.runs:
            return f"{seeds}: {decided}; this is the last look."
        takes = format_duration(self.seconds / max(1, workers))
        return (
            f"{seeds}: {decided} so far. For the others the next look trains"
            f" {count(self.runs, 'run')}, about {takes}."
        )


def find_look(store: Store, study_id: int) -> LookStanding | None:
    """Return a study's LookStanding; None for a single look of all seeds, or if unreadable."""
    source = find_source(store, study_id)
    if not looks_of(source):
        return None
    try:
        study = parse(source)
    except StudyError:
        return None
    looked = look_at_tasks(store, study_id)
    gaps = {
        key: gap
        for task_look in looked.values()
        for key, gap in task_look.differences.items()
        if not is_null(key[1])
    }
    undecided = [key for key, gap in gaps.items() if gap.verdict == UNDECIDED]
    most = max((n for task_look in looked.values() for n in task_look.seeds.values()), default=0)
    number = max(1, study.looks.index(most) + 1 if most in study.looks else 1)
    stored = store.hashes(study.name)
    present = {run.hash for run in study.later if run.hash in stored}
    following = study.looks[number] if number < len(study.looks) else study.looks[-1]
    models = {(name, model) for name, model in undecided}
    models |= {(name, BASELINE) for name, _ in undecided}
    next_runs = [
        run
        for run in study.later
        if run.seed < following and run.hash not in present and (run.task, _model_of(run)) in models
    ]
    seconds = store.pace() * sum(run.expected for run in next_runs)
    return LookStanding(number, study.looks, len(gaps), len(undecided), len(next_runs), seconds)
