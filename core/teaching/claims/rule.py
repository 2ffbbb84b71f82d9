"""Claims of papers: on what they are measured, the rule by which they are judged, and the words.

What is measured, and the smallest effect that counts, stand in a claim's definition before it is
run: one number per seed. Intervals of all claims hold together (Bonferroni): the chance that any
of them misses is at most 5 %.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import pandas as pd

from core.experiments.training.plan import BASELINE
from core.experiments.training.sentences import decimals_of, points
from core.export.sheets import read_csv, write_csv
from core.measure.intervals import LEVEL, Interval, Within, interval
from core.settings.menu import Menu
from core.settings.wording import count, fixed
from core.study.curves import CurveFiles, Curves, read_curves
from core.study.file import read
from core.study.plan import Study, StudyError
from core.study.shipped import ALONE, curves_of, shipped, study_of, table_of
from core.tasks import task
from core.train import Row

Values = Mapping[int, float]  # seed -> number
Link = tuple[str, Mapping[str, str]]  # key of a page, parameters of the experiment there

REPLICATES, DOES_NOT, UNDECIDED = "replicates here", "does not replicate here", "undecided"
REASONS = {  # (verdict, whether the claim is that there is no such effect) -> reason
    (REPLICATES, False): "the whole interval is above {smallest}",
    (DOES_NOT, False): "the whole interval is below {smallest}",
    (UNDECIDED, False): "the interval holds {smallest}",
    (REPLICATES, True): "the whole interval is within ±{smallest}",
    (DOES_NOT, True): "the whole interval is outside ±{smallest}",
    (UNDECIDED, True): "the interval is neither within ±{smallest} nor outside",
}
FILE = table_of("claims")
COLUMNS = ("claim", "seed", "value")


def find_study(name: str) -> str:
    """Return the key of a study's files by its name: "attention", "claims/warm_up"."""
    keys = (key for key in (*shipped, *ALONE) if key.rpartition("/")[2] == name)
    return next(keys, name)


@lru_cache
def study(name: str) -> Study:
    """Read a shipped study. Raises StudyError, OSError."""
    return read(study_of(find_study(name)))


@lru_cache
def shipped_curves(name: str) -> CurveFiles:
    """Return the curves of a study: its own file, then those that hold runs which both have.

    Raises StudyError, OSError.
    """
    own = find_study(name)
    others = [key for key in (*shipped, *ALONE) if key != own]
    return CurveFiles(tuple(_read_curves(key) for key in (own, *others)))


@lru_cache
def _read_curves(key: str) -> Curves:
    return read_curves(curves_of(key))


@dataclass(frozen=True)
class Evidence:
    """Curves of studies. find: name of a study -> its curves; those that ship by default."""

    find: Callable[[str], CurveFiles | Curves] = shipped_curves

    def curves(self, name: str, learnt: str, variant: str = BASELINE) -> dict[int, Sequence[Row]]:
        """Return seed -> rows of a task and a variant, by their names in the study.

        Raises StudyError for what is not there.
        """
        runs = [run for run in study(name).runs if (run.task, run.variant) == (learnt, variant)]
        found = {run.seed: self.find(name).rows(run) for run in runs}
        if not found or None in found.values():
            raise StudyError([f"{name}: {learnt}, {variant} is not there, or not trained on every seed."])
        return {seed: rows for seed, rows in found.items() if rows}

    def accuracy(self, name: str, learnt: str, variant: str = BASELINE) -> dict[int, float]:
        """Return seed -> final accuracy; that of guessing for a training that diverged."""
        tasks = {run.task: task[run.training.task] for run in study(name).runs}
        curves = self.curves(name, learnt, variant)
        return {seed: tasks[learnt].chance if rows[-1].note else rows[-1].accuracy for seed, rows in curves.items()}

    def gain(self, name: str, learnt: str, one: str, other: str = BASELINE) -> dict[int, float]:
        """Return seed -> accuracy of one variant minus that of the other."""
        return subtract(self.accuracy(name, learnt, one), self.accuracy(name, learnt, other))


def subtract(one: Values, other: Values) -> dict[int, float]:
    """Subtract seed by seed."""
    return {seed: one[seed] - other[seed] for seed in one}


class Claim(Protocol):
    """Entry of the menu: a function that returns one number per seed.

    Attributes:
        paper: authors, year, title, and section.
        here: the experiment at this size.
        number: what is measured.
        smallest: the smallest effect that counts.
        alike: whether the claim is that there is no effect of that size.
        points: whether the number is a difference of accuracies, shown in percentage points.
        within: the range of possible values.
        live: the link that opens the experiment.
    """

    paper: str
    here: str
    number: str
    smallest: float
    alike: bool
    points: bool
    within: Within
    live: Link

    def __call__(self, evidence: Evidence, /) -> Values: ...


claim: Menu[Claim] = Menu("Claims", alike=False, points=True, within=(-1.0, 1.0))


@dataclass(frozen=True)
class Judged:
    """Result of a claim: mean over seeds with its interval, and the verdict that follows."""

    interval: Interval
    verdict: str


def judged(values: Values, of: Claim) -> Judged:
    """Judge a claim by its numbers."""
    found = interval(values.values(), of.within, 1 - (1 - LEVEL) / len(claim))
    return Judged(found, verdict(found, of.smallest, of.alike))


def verdict(found: Interval, smallest: float, alike: bool) -> str:
    """Return the verdict: decided only if the whole interval lies on one side.

    An effect replicates above the smallest that counts and does not below it. The absence of an
    effect (alike) replicates within ± the smallest and does not outside.
    """
    if not found.low <= found.high:  # NaN
        return UNDECIDED
    if alike:
        replicates = -smallest < found.low and found.high < smallest
        does_not = found.low > smallest or found.high < -smallest
    else:
        replicates = found.low > smallest
        does_not = found.high < smallest
    if replicates:
        return REPLICATES
    return DOES_NOT if does_not else UNDECIDED


def format_value(value: float, of: Claim, decimals: int | None = None) -> str:
    """Format a value in the claim's unit, without the unit."""
    if math.isnan(value):
        return "no number"
    return points(value, decimals) if of.points else fixed(value, 2)


def format_smallest(of: Claim) -> str:
    """Format the smallest effect that counts: "30.0 points", "0.50"."""
    return format_value(of.smallest, of) + (" points" if of.points else "")


def format_result(result: Judged, of: Claim) -> str:
    """Format mean and interval: "62.1 points (51.0 to 73.2)"."""
    mean, low, high, _ = result.interval
    decimals = decimals_of((mean, low, high))
    if math.isnan(low):
        span = "no interval"
    else:
        span = f"{format_value(low, of, decimals)} to {format_value(high, of, decimals)}"
    return f"{format_value(mean, of, decimals)}{' points' if of.points else ''} ({span})"


def describe(result: Judged, of: Claim) -> str:
    """Describe a result: "62.1 points (51.0 to 73.2), 10 seeds: replicates here, the …"."""
    if math.isnan(result.interval.low):
        reason = "there is no interval"
    else:
        reason = REASONS[result.verdict, of.alike].format(smallest=format_smallest(of))
    seeds = count(result.interval.n, "seed")
    return f"{format_result(result, of)}, {seeds}: {result.verdict}, {reason}."


def tally(results: Iterable[Judged]) -> str:
    """Count verdicts: "18 claims: 9 replicate here, 3 do not, 6 are undecided."."""
    counts = Counter(result.verdict for result in results)
    yes, no, undecided = counts[REPLICATES], counts[DOES_NOT], counts[UNDECIDED]
    return (
        f"{count(yes + no + undecided, 'claim')}: "
        f"{yes} {'replicates' if yes == 1 else 'replicate'} here, "
        f"{no} {'does' if no == 1 else 'do'} not, "
        f"{undecided} {'is' if undecided == 1 else 'are'} undecided."
    )


def write_values(path: Path, values: Mapping[str, Values]) -> None:
    """Write claim -> seed -> number. Raises OSError."""
    rows = [(name, seed, value) for name, by_seed in values.items() for seed, value in by_seed.items()]
    write_csv(pd.DataFrame(rows, columns=list(COLUMNS)), path)


def read_values(path: Path = FILE, complete: bool = True) -> dict[str, dict[int, float]]:
    """Read claim -> seed -> number. Raises StudyError, OSError.

    Args:
        complete: whether a claim without numbers is an error.
    """
    try:
        table = read_csv(path, ("claim",))
        values: dict[str, dict[int, float]] = {name: {} for name in claim}
        for name, seed, value in table[list(COLUMNS)].itertuples(index=False):
            values[name][int(seed)] = float(value)
    except (ValueError, KeyError, TypeError, MemoryError):
        problem = f"{path.name} is no table of claims: make claims makes it again."
        raise StudyError([problem]) from None
    missing = [name for name, by_seed in values.items() if not by_seed]
    if complete and missing:
        raise StudyError([f"{path.name} has nothing on {missing[0]}: make claims makes it again."])
    return values
