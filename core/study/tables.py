"""What is in the store as tables: every run, every row, and what taking a part out costs on each task."""

import math
from pathlib import Path

import pandas as pd

from core.experiments.training import BASELINE, RANGE, gap
from core.seeds import interval
from core.study.plan import read_settings
from core.study.schema import DIVERGED, ENDED
from core.study.store import Store
from core.tasks import task
from core.train import Row
from core.train.match import match

UNTOLD = ["owner", "heartbeat"]  # columns that say something only while a run is under way


def run_table(store: Store, study: int) -> pd.DataFrame:
    """One line per run that the study asks for; started and ended in seconds since 1970, seconds of a worker's time."""
    return pd.DataFrame(each._asdict() for each in store.runs(study)).drop(columns=UNTOLD).rename(columns={"id": "run"})


def row_table(store: Store, study: int) -> pd.DataFrame:
    """Every number: run (as in the table of runs), task, variant, seed and the fields of core.train.Row; NaN where a run diverged."""
    table = pd.DataFrame(store.rows(study), columns=["run", *Row._fields])
    names = pd.DataFrame(store.runs(study)).set_index("id")[["task", "variant", "seed"]]
    return table.join(names, on="run")[["run", *names.columns, *Row._fields]]


def summary_table(store: Store, study: int) -> pd.DataFrame:
    """One line per task and variant, from the last row of each run that was trained to the end.

    task (its name in the study), of (the task that it is), variant; accuracy, low, high (95 % interval), seeds (of which
    it is the mean), diverged, missing (not trained yet, or failed); difference to the task's baseline, difference_low,
    difference_high, p (paired t-test on the seeds that both have), as on the Training page; chance, best (of the task);
    parameters, flops (of one sequence, forward), steps, seconds (of a worker, on average). Needs no run to be done.
    """
    found = store.runs(study)
    last = store.results(study)
    cells, accuracy = {}, {}
    for run in found:
        cells.setdefault((run.task, run.variant), []).append(run)
        accuracy[run.task, run.variant, run.seed] = last.get(run.id, math.nan)
    return pd.DataFrame(_line(runs, accuracy) for runs in cells.values())


def _line(runs, accuracy) -> dict:
    """The line of one task and variant; runs: one per seed."""
    first = runs[0]
    own = {run.seed: accuracy[run.task, run.variant, run.seed] for run in runs}
    base = {seed: accuracy.get((first.task, BASELINE, seed), math.nan) for seed in own}
    mean, off = interval(own.values(), RANGE), gap(own, base)
    config, training = read_settings(first.spec)
    learnt = task[training.task]
    sizes = {name: match[name](config, training.length, len(learnt.vocabulary)) for name in ("parameters", "flops")}
    seconds = [run.seconds for run in runs if run.state in ENDED and not run.known]
    compared = (
        off if first.variant != BASELINE else off._replace(mean=math.nan, low=math.nan, high=math.nan, p=math.nan)
    )
    return {
        "task": first.task, "of": training.task, "variant": first.variant,
        "accuracy": mean.mean, "low": mean.low, "high": mean.high, "seeds": mean.n,
        "diverged": sum(run.state == DIVERGED for run in runs),
        "missing": sum(run.state not in ENDED for run in runs),
        "difference": compared.mean, "difference_low": compared.low, "difference_high": compared.high, "p": compared.p,
        "chance": learnt.chance, "best": learnt.best, **sizes,
        "steps": first.steps, "seconds": sum(seconds) / len(seconds) if seconds else math.nan,
    }  # fmt: skip


TABLES = {"runs": run_table, "rows": row_table, "summary": summary_table}


def export(store: Store, study: int, folder, kind: str) -> list[Path]:
    """Write every table into a folder, as "csv" or "parquet" -> the files. Raises OSError."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, table in TABLES.items():
        path, found = folder / f"{name}.{kind}", table(store, study)
        found.to_csv(path, index=False) if kind == "csv" else found.to_parquet(path, index=False)
        made.append(path)
    return made
