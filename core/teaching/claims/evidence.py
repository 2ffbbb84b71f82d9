"""What claims are measured on: the curves of studies, by the studies' names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.experiments.training.plan import BASELINE
from core.study.curves import CurveFiles, Curves, read_curves
from core.study.file import read
from core.study.plan import Study, StudyError
from core.study.shipped import ALONE, curves_of, shipped, study_of
from core.tasks import task
from core.train import Row


def place_of(name: str) -> str:
    """Of a study, as its files are found by it: "attention", "claims/warm_up"."""
    return next((place for place in (*shipped, *ALONE) if place.rpartition("/")[2] == name), name)


@lru_cache
def study(name: str) -> Study:
    """Raises StudyError, OSError."""
    return read(study_of(place_of(name)))


@lru_cache
def shipped_curves(name: str) -> CurveFiles:
    """Return the curves of a study: its own file, then those of the other studies, which hold the runs that both have.

    Raises StudyError, OSError.
    """
    own = place_of(name)
    others = [other for other in (*shipped, *ALONE) if other != own]
    return CurveFiles(tuple(_read(place) for place in (own, *others)))


@lru_cache
def _read(place: str) -> Curves:
    return read_curves(curves_of(place))


@dataclass(frozen=True)
class Evidence:
    """of: what has the curves of a study, by its name; those that ship unless others are given."""

    of: Callable[[str], CurveFiles | Curves] = shipped_curves

    def curves(self, name: str, learnt: str, variant: str = BASELINE) -> dict[int, Sequence[Row]]:
        """Seed -> rows, of a task and a variant by their names in the study. Raises StudyError for what is not there."""
        runs = [run for run in study(name).runs if (run.task, run.variant) == (learnt, variant)]
        found = {run.seed: self.of(name).rows(run) for run in runs}
        if not found or None in found.values():
            raise StudyError([f"{name}: {learnt}, {variant} is not there, or not trained on every seed."])
        return {seed: rows for seed, rows in found.items() if rows}

    def accuracy(self, name: str, learnt: str, variant: str = BASELINE) -> dict[int, float]:
        """Seed -> accuracy at the end; what guessing gets right, of a training that diverged: it has learnt nothing."""
        of = {run.task: task[run.training.task] for run in study(name).runs}
        curves = self.curves(name, learnt, variant)
        return {seed: of[learnt].chance if rows[-1].note else rows[-1].accuracy for seed, rows in curves.items()}

    def gain(self, name: str, learnt: str, one: str, other: str = BASELINE) -> dict[int, float]:
        """Seed -> accuracy of one variant minus that of the other."""
        return minus(self.accuracy(name, learnt, one), self.accuracy(name, learnt, other))


def minus(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    """Seed by seed."""
    return {seed: one[seed] - other[seed] for seed in one}
