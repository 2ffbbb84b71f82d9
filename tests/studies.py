"""Stores filled with synthetic results, so that tables need no training."""

import math

from core.study.database.schema import DIVERGED, DONE, FAILED, RUNNING, STATES, STOPPED
from core.study.database.store import Report, Store
from core.study.file import parse
from core.study.plan import Study
from core.train import Row

TEXT = """
name = "made up"
question = "What would it cost?"
tasks = ["copy", "reverse"]
seeds = 3
device = "cpu"
[base]
d_model = 16
n_heads = 2
n_layers = 1
[training]
steps = 40
batch = 8
every = 20
[variants]
"− norm" = {norm = "none"}
"1 head" = {n_heads = 1}
"""
OWNER = "another machine|1|made-up"


def study(name: str = "made up", old: str = "", new: str = "", text: str = TEXT) -> Study:
    return parse(text.replace('"made up"', f'"{name}"').replace(old, new))


def late_loss(run) -> float:
    """Return a synthetic late loss, different for each run; it selects among finished runs."""
    return int(run.hash[:4], 16) / 65536


def rows_of(run, outcome) -> list[Row]:
    """Return rows at step 1, in the middle, and at the end if the run reached it."""
    end = run.training.steps
    begun = [
        Row(1, 3.0, 0.1, 1.0, 0.01, 0.003),
        Row(end // 2, 1.5, 0.3 + run.seed / 1e5, 1.0, 0.01, 0.003),
    ]
    if isinstance(outcome, str):
        return begun
    if math.isnan(outcome):
        lost_row = Row(
            end // 2 + 1,
            math.inf,
            math.nan,
            math.inf,
            math.nan,
            0.003,
            f"diverged at step {end // 2 + 1}",
        )
        return [*begun, lost_row]
    return [*begun, Row(end, late_loss(run), outcome, 1.0, 0.01, 0.003)]


def fill(store: Store, study: Study, outcome) -> int:
    """Store a study as if it had been trained, without earlier outcomes. Return its number.

    Args:
        outcome: run -> an accuracy, NaN if it diverged, or a state: the run then stands in it, half
            trained (queued: not begun).
    """
    number = store.enrol(study).study
    store.requeue(number, STATES)
    outcomes = {run.hash: (run, outcome(run)) for run in study.runs}
    run_ids = {run.hash: run.id for run in store.runs(number, spec=False)}
    store.claim(number, OWNER, len(run_ids))
    waiting = [key for key, (_, actual) in outcomes.items() if actual == "queued"]
    store.store_reports(OWNER, [Report(run_ids[key], STOPPED) for key in waiting])
    store.requeue(number, (STOPPED,))
    store.store_reports(
        OWNER,
        [
            _report(run_ids[key], run, actual)
            for key, (run, actual) in outcomes.items()
            if actual != "queued"
        ],
    )
    return number


def _report(number: int, run, outcome) -> Report:
    rows = rows_of(run, outcome)
    if isinstance(outcome, str):
        state = outcome
        message = "MemoryError: <b>no *room*</b>" if outcome == FAILED else ""
    else:
        state, message = (DIVERGED, rows[-1].note) if math.isnan(outcome) else (DONE, "")
    seconds = 0.0 if state == RUNNING else 1.0 + run.seed
    return Report(number, state, rows, rows[-1].step, seconds, message, device="CPU (made up)")
