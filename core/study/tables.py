"""What is in the store as tables: every run, every row, and what taking a part out costs on each task."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from core.experiments.training.plan import BASELINE
from core.experiments.training.results import RANGE, gap, gaps
from core.export.sheets import write_csv
from core.measure.intervals import Paired, interval
from core.study.database.queries import HIDDEN, Line
from core.study.database.schema import DIVERGED, ENDED, runs
from core.study.database.store import Store
from core.study.link import parameters, query
from core.study.plan import StudyError, machine_of, read_settings
from core.study.summary import lines
from core.tasks import task
from core.train import Row
from core.train.match import match

Name = tuple[str, str]  # of a cell: task, variant
Accuracy = dict[tuple[str, str, int], float]  # (task, variant, seed) -> in the last row

COLUMNS = [column.name for column in runs.c if column.name not in HIDDEN]  # of Store.runs, where there are none too
UNTOLD = ["owner", "heartbeat"]  # columns that say something only while a run is under way


def run_table(store: Store, study: int) -> pd.DataFrame:
    """One line per run that the study asks for; started and ended in seconds since 1970, seconds of a worker's time."""
    return pd.DataFrame(store.runs(study), columns=COLUMNS).drop(columns=UNTOLD).rename(columns={"id": "run"})


def row_table(store: Store, study: int) -> pd.DataFrame:
    """Every number: run (as in the table of runs), task, variant, seed and the fields of core.train.Row; NaN where a run diverged."""
    table = pd.DataFrame(store.rows(study), columns=["run", *Row._fields])
    columns = [name for name in COLUMNS if name != "spec"]
    names = pd.DataFrame(store.runs(study, spec=False), columns=columns).set_index("id")[["task", "variant", "seed"]]
    return table.join(names, on="run")[["run", *names.columns, *Row._fields]]


def summary_table(store: Store, study: int) -> pd.DataFrame:
    """One line per task and variant, from the last row of each run that was trained to the end.

    task (its name in the study), of (the task that it is), variant; accuracy, low, high (95 % interval), seeds (of which
    it is the mean), diverged, missing (not trained yet, or failed); difference to the task's baseline, difference_low,
    difference_high, p (paired t-test on the seeds that both have, corrected for all variants of the task, Holm), as on
    the Training page; chance, best (of the task);
    parameters, flops (of one sequence, forward), steps, seconds (of a worker, on average); link: what opens the cell on
    the page Training. Needs no run to be done.
    """
    last, specs = store.results(study), store.specs(study)
    cells: dict[Name, list[Line]] = {}
    accuracy: Accuracy = {}
    for run in store.runs(study, spec=False):
        cells.setdefault((run.task, run.variant), []).append(run)
        accuracy[run.task, run.variant, run.seed] = last.get(run.id, math.nan)
    off_by: dict[Name, Paired] = {}
    for name in dict.fromkeys(name for name, _ in cells):
        several = [key for key in cells if key[0] == name and key[1] != BASELINE]
        off_by |= gaps({key: _pair(cells[key], accuracy) for key in several})
    return pd.DataFrame(_line(runs, specs, accuracy, off_by.get(key)) for key, runs in cells.items())


def _pair(runs: Sequence[Line], accuracy: Accuracy) -> tuple[dict[int, float], dict[int, float]]:
    """Seed -> accuracy of one task and variant, and of its baseline."""
    own = {run.seed: accuracy[run.task, run.variant, run.seed] for run in runs}
    return own, {seed: accuracy.get((runs[0].task, BASELINE, seed), math.nan) for seed in own}


def link(spec: str, baseline: str | None, seeds: list[int]) -> str:
    """What opens a cell (or one run of it) on the page Training beside its baseline; spec: of any of its runs."""
    own = read_settings(spec)
    first = read_settings(baseline) if baseline else own
    return query(parameters(*own, first, seeds, machine_of(spec)))


def _line(runs: Sequence[Line], specs: dict[Name, str], accuracy: Accuracy, off: Paired | None) -> dict[str, Any]:
    """The line of one task and variant; runs: one per seed; off: its difference, None for a baseline."""
    first = runs[0]
    spec, baseline = specs[first.task, first.variant], specs.get((first.task, BASELINE))
    own, _ = _pair(runs, accuracy)
    mean, off = interval(own.values(), RANGE), off or gap({}, {})
    config, training = read_settings(spec)
    learnt = task[training.task]
    sizes = {name: match[name](config, training.length, len(learnt.vocabulary)) for name in ("parameters", "flops")}
    seconds = [run.seconds for run in runs if run.state in ENDED and not run.known]
    return {
        "task": first.task, "of": training.task, "variant": first.variant,
        "accuracy": mean.mean, "low": mean.low, "high": mean.high, "seeds": mean.n,
        "diverged": sum(run.state == DIVERGED for run in runs),
        "missing": sum(run.state not in ENDED for run in runs),
        "difference": off.mean, "difference_low": off.low, "difference_high": off.high, "p": off.p,
        "chance": learnt.chance, "best": learnt.best, **sizes,
        "steps": first.steps, "seconds": sum(seconds) / len(seconds) if seconds else math.nan,
        "link": link(spec, baseline, [run.seed for run in runs]),
    }  # fmt: skip


def comparison(store: Store, one: int, other: int) -> pd.DataFrame:
    """What two studies say about tasks and variants of the same names.

    On the seeds that both have: task, variant, settings ("same" where all runs of both are the same trainings, else "differ");
    accuracy (of the first), other_accuracy; difference (first − other); low, high (95 % interval), p (paired t-test, corrected for
    all cells, Holm), seeds.
    """
    sides = []
    for study in (one, other):
        last = store.results(study)
        cells: dict[Name, dict[int, tuple[float, str]]] = {}
        for run in store.runs(study, spec=False):
            cells.setdefault((run.task, run.variant), {})[run.seed] = last.get(run.id, math.nan), run.hash
        sides.append(cells)
    facts: dict[Name, tuple[Any, ...]] = {}
    pairs: dict[Name, tuple[dict[int, float], dict[int, float]]] = {}
    for name, line in sides[0].items():
        theirs = sides[1].get(name)
        if theirs is None:
            continue
        values = [{seed: value for seed, (value, _) in side.items()} for side in (line, theirs)]
        both = values[0].keys() & values[1].keys()
        same = bool(both) and all(line[seed][1] == theirs[seed][1] for seed in both)
        ended = [seed for seed in both if not math.isnan(values[0][seed] - values[1][seed])]
        first, second = ({seed: side[seed] for seed in ended} for side in values)
        pairs[name] = first, second
        means = [interval(side.values(), RANGE).mean for side in (first, second)]
        facts[name] = (*name, "same" if same else "differ", *means)
    rows = [(*facts[name], *off[:3], off.p, off.n) for name, off in gaps(pairs).items()]
    names = ["task", "variant", "settings", "accuracy", "other_accuracy", "difference", "low", "high", "p", "seeds"]
    return pd.DataFrame(rows, columns=names)


CLOSE = 0.01  # of an accuracy: closer than that is the same where all seeds agreed and there is no interval


@dataclass(frozen=True)
class Agreement:
    """Of a summary with an earlier one. cells: how many are in both; same: how many of them to the last digit; off: sentences
    on those that differ; empty: how many have no value in either; new, gone: names of those only in this one, only in that."""

    cells: int
    same: int
    off: list[str]
    empty: int = 0
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether they have the same cells, and none differs."""
        return not (self.off or self.new or self.gone)


def agreement(now: pd.DataFrame, before: pd.DataFrame) -> Agreement:
    """Whether every cell's accuracy, and difference, lies in the interval that it had before, widened by CLOSE."""
    cells = {(line.task, line.variant): line for line in lines(before)}
    same, empty, many = 0, 0, 0
    off, new = [], []
    for line in lines(now):
        name = f"{line.task}, {line.variant}"
        old = cells.pop((line.task, line.variant), None)
        if old is None:
            new.append(name)
            continue
        many += 1
        moved = [_moved(line, old, *columns) for columns in COMPARED]
        words = [each for _, each in moved if each]
        if words:
            off.append(f"{name}: {'; '.join(words)}.")
        elif math.isnan(line.accuracy) and not (line.diverged or old.diverged):
            empty += 1
        else:
            same += all(equal for equal, _ in moved) and line.diverged == old.diverged
    return Agreement(many, same, off, empty, tuple(new), tuple(f"{task}, {variant}" for task, variant in cells))


COMPARED = [("accuracy", "low", "high"), ("difference", "difference_low", "difference_high")]


def _moved(line: Any, old: Any, column: str, lowest: str, highest: str) -> tuple[bool, str]:
    """-> (whether a value is the same to the last digit, how it differs by more than it may)"""
    value, mean, low, high = getattr(line, column), *(getattr(old, name) for name in (column, lowest, highest))
    if math.isnan(value) or math.isnan(mean):
        if math.isnan(value) and math.isnan(mean):
            return True, ""
        return False, f"{column} {_shown(value)} now, {_shown(mean)} before"
    known = not math.isnan(low)
    low, high = (low, high) if known else (mean, mean)
    if low - CLOSE <= value <= high + CLOSE:
        return value == mean, ""
    return False, f"{column} {value:.3f} now, {mean:.3f}{f' [{low:.3f}, {high:.3f}]' * known} before"


def _shown(value: float) -> str:
    return "has no value" if math.isnan(value) else f"{value:.3f}"


TABLES = {"runs": run_table, "rows": row_table, "summary": summary_table}


FILE = "study.toml"  # of the study, beside its tables: says whose they are


def export(store: Store, study: int, folder: str | Path, kind: str) -> list[Path]:
    """Write every table, and the study's file, into a folder, as "csv" or "parquet" -> the files. Raises OSError, and StudyError for
    a folder with the tables of another study."""
    folder, given = Path(folder), next(each for each in store.studies() if each.id == study)
    folder.mkdir(parents=True, exist_ok=True)
    _check_free(folder, given.name)
    paths = [folder / FILE]
    paths[0].write_text(given.source, encoding="utf-8")
    for name, table in TABLES.items():
        path, rows = folder / f"{name}.{kind}", table(store, study)
        write_csv(rows, path) if kind == "csv" else rows.to_parquet(path, index=False)
        paths.append(path)
    return paths


def _check_free(folder: Path, name: str) -> None:
    """Raises StudyError where a folder holds the tables of another study, or of nobody knows which."""
    there = [each for each in folder.iterdir() if each.stem in TABLES and each.suffix in (".csv", ".parquet")]
    if not there:
        return
    try:
        whose = tomllib.loads((folder / FILE).read_text(encoding="utf-8")).get("name")
    except (OSError, ValueError):
        whose = None
    if whose != name:
        words = f"those of “{whose}”" if isinstance(whose, str) else "nobody knows whose"
        raise StudyError([f"{folder} has tables already, {words}: name another folder for “{name}”, or remove them."])
