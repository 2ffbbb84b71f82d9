"""What is in the store as tables: every run, every row, and what taking a part out costs on each task."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from core.experiments.training.plan import BASELINE
from core.experiments.training.results import RANGE, gap, gaps
from core.export.sheets import write_csv
from core.measure.intervals import Paired, interval
from core.study.database.queries import HIDDEN, Line
from core.study.database.schema import DIVERGED, ENDED, runs
from core.study.database.searched import chosen
from core.study.database.store import Store
from core.study.file.guards import guards, search_of
from core.study.link import parameters, query
from core.study.plan import StudyError, machine_of, read_settings
from core.tasks import task
from core.train import Row
from core.train.match import match
from core.train.search import counted

Name = tuple[str, str]  # of a cell: task, variant

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
    cells: dict[Name, list[Line]] = {}
    for run in store.runs(study, spec=False):
        cells.setdefault((run.task, run.variant), []).append(run)
    return _summary(cells, store.results(study), store.specs(study))


def judged_table(store: Store, study: int) -> pd.DataFrame:
    """What a study is judged by: its summary, or where its learning rates were searched, that of the rates that were chosen.
    guards: what was held equal or searched, in words."""
    source = next((each.source for each in store.studies() if each.id == study), "")
    search = search_of(source)
    table = summary_table(store, study) if search == "none" else searched_table(store, study, search)
    return table.assign(guards=", ".join(guards(source)) or "none")


def searched_table(store: Store, study: int, search: str) -> pd.DataFrame:
    """The same of a study whose file has `search`: a line per task and model, each seed at the rate that was chosen for it
    (core.study.database.searched); rates: which, and how often. search: of the menu (core.train.search), and so of the links, or ""
    where they are of a list that no link has: then a cell opens at the rate that was chosen most often."""
    last, specs = store.results(study), store.specs(study)
    cells: dict[Name, list[Line]] = {}
    rates: list[str] = []
    for key, several in chosen(store.runs(study, spec=False), store.late_losses(study), specs).items():
        many = [rate for _, rate in several if not math.isnan(rate)]
        often = max(several, key=lambda each: many.count(each[1]))[0]
        specs[key] = specs[key if search else (often.task, often.variant)]
        cells[key] = [run for run, _ in several]
        rates.append(counted(many))
    return _summary(cells, last, specs, search or "none").assign(rates=rates)


def _summary(
    cells: Mapping[Name, Sequence[Line]], last: Mapping[int, float], specs: Mapping[Name, str], search: str = "none"
) -> pd.DataFrame:
    """cells: a run per seed; last: run -> accuracy at its end; specs: of one run of each cell."""
    accuracy = {key: {run.seed: last.get(run.id, math.nan) for run in several} for key, several in cells.items()}
    off_by: dict[Name, Paired] = {}
    for name in dict.fromkeys(name for name, _ in cells):
        base = accuracy.get((name, BASELINE), {})
        several = [key for key in cells if key[0] == name and key[1] != BASELINE]
        off_by |= gaps(
            {key: (accuracy[key], {seed: base.get(seed, math.nan) for seed in accuracy[key]}) for key in several}
        )
    return pd.DataFrame(_line(key, runs, specs, accuracy[key], off_by.get(key), search) for key, runs in cells.items())


def link(spec: str, baseline: str | None, seeds: list[int], search: str = "none") -> str:
    """What opens a cell (or one run of it) on the page Training beside its baseline; spec: of any of its runs."""
    own = read_settings(spec)
    first = read_settings(baseline) if baseline else own
    return query(parameters(*own, first, seeds, machine_of(spec), search))


def _line(
    name: Name,
    runs: Sequence[Line],
    specs: Mapping[Name, str],
    own: Mapping[int, float],
    off: Paired | None,
    search: str,
) -> dict[str, Any]:
    """The line of one task and variant; runs: one per seed; own: their accuracy; off: its difference, None for a baseline."""
    spec, baseline = specs[name], specs.get((name[0], BASELINE))
    mean, off = interval(own.values(), RANGE), off or gap({}, {})
    config, training = read_settings(spec)
    learnt = task[training.task]
    sizes = {kind: match[kind](config, training) for kind in ("parameters", "flops")}
    seconds = [run.seconds for run in runs if run.state in ENDED and not run.known]
    return {
        "task": name[0], "of": training.task, "variant": name[1],
        "accuracy": mean.mean, "low": mean.low, "high": mean.high, "seeds": mean.n,
        "diverged": sum(run.state == DIVERGED for run in runs),
        "missing": sum(run.state not in ENDED for run in runs),
        "difference": off.mean, "difference_low": off.low, "difference_high": off.high, "p": off.p,
        "chance": learnt.chance, "best": learnt.best, **sizes,
        "steps": training.steps, "seconds": sum(seconds) / len(seconds) if seconds else math.nan,
        "link": link(spec, baseline, [run.seed for run in runs], search),
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


TABLES = {"runs": run_table, "rows": row_table, "summary": judged_table}


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
