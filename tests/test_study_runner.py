"""Studies trained and stored: whatever happens on the way, in the end every run stands there once, to the last bit."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pandas as pd
import pytest
import torch

from core.experiments.training.plan import Arm, Plan, Trial
from core.experiments.training.results import gap, summary
from core.measure.intervals import interval
from core.study import runner, tables
from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING, STOPPED
from core.study.database.store import Store, standing
from core.study.file import parse
from core.study.plan import Run
from core.study.runner import Progress, Runner, Service
from core.train import Row, train
from core.workers import job as jobs
from core.workers.pool import ProcessPool
from tests.databases import database, postgresql  # noqa: F401  (fixtures)

pytestmark = pytest.mark.slow

TEXT = """
name = "small"
tasks = ["copy", "reverse"]
seeds = 2
device = "cpu"
[base]
d_model = 16
n_heads = 2
n_layers = 1
[training]
steps = 30
batch = 8
[variants]
"− attention" = {attention = false}
"""
STUDY = parse(TEXT)
LONG = parse(TEXT.replace("steps = 30", "steps = 250").replace('"copy", ', ""))
_trained = {}


@pytest.fixture(scope="module")
def pool():
    made = ProcessPool(2)
    yield made
    made.close()


@pytest.fixture
def workers(pool):
    """Processes for all tests, which know nothing of what they did for the test before."""
    pool.kept.clear()
    pool.trainings.clear()
    return pool


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Chunks of a few steps, and entries in the store at every look."""
    monkeypatch.setattr(jobs, "CHUNK", 0.05)
    monkeypatch.setattr(runner, "BEAT", 0.1)


def plain(run: Run) -> str:
    """The rows of a run trained in one piece, in this process; NaN compare."""
    if run.hash not in _trained:
        _trained[run.hash] = repr(list(train(run.config, run.training, run.seed, run.machine)))
    return _trained[run.hash]


def check_complete(store, study):
    """Every run of the study has its result, and its rows are those of a training in one piece, each of them once."""
    found, number = {}, store.find(study.name)
    for run, *row in store.rows(number):
        found.setdefault(run, []).append(Row(*row))
    stored = store.runs(number)
    assert [each.hash for each in stored] == [each.hash for each in study.runs]
    for each, run in zip(stored, study.runs):
        rows = found.pop(each.id)
        assert repr(rows) == plain(run)
        assert (each.state, each.step) == (DIVERGED if rows[-1].note else DONE, rows[-1].step)
        assert each.ended and each.device.startswith("CPU (")
    assert not found


def finish(store, study, workers, until=None, seconds=240) -> list[Progress]:
    """Work on a study to its end, or until until(progress)."""
    made, end, seen = Runner(store, [store.enrol(study).study], workers), time.monotonic() + seconds, []
    steps = made.progress()
    for each in steps:
        seen.append(each)
        if until and until(each):
            break
        assert time.monotonic() < end, f"it did not come: {each}"
    steps.close()
    return seen


def test_a_study_is_trained_and_stored_to_the_last_bit(database, workers):  # noqa: F811
    store = Store(database)
    seen = finish(store, STUDY, workers)
    check_complete(store, STUDY)
    assert seen[-1].share == 1 and seen[-1].left == 0 and seen[-1].counts == {DONE: 8}
    shares = [each.share for each in seen]
    assert shares == sorted(shares) and not any(each.trouble for each in seen)
    before = store.runs(1)
    assert len(finish(store, STUDY, workers)) <= 1 and store.runs(1) == before  # and again does nothing
    store.close()


def test_only_what_is_missing_is_trained(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    finish(store, STUDY, workers)
    before = {each.hash: (each.tries, each.ended) for each in store.runs(1)}
    more = parse(TEXT.replace("seeds = 2", "seeds = 3"))
    assert store.enrol(more).new == 4
    finish(store, more, workers)
    check_complete(store, more)
    after = {each.hash: (each.tries, each.ended) for each in store.runs(1)}
    assert {key: after[key] for key in before} == before and {tries for tries, _ in after.values()} == {1}


def test_divergence_is_a_result_and_comes_back_as_one(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    hot = parse(TEXT + '"hot" = {learning_rate = 1000.0, optimiser = "sgd", norm = "none", steps = 60}\n')
    finish(store, hot, workers)
    check_complete(store, hot)
    lost = store.runs(1, DIVERGED)
    assert lost and all(each.message.startswith("diverged at step ") for each in lost)
    table = tables.summary_table(store, 1).set_index(["task", "variant"])
    line = table.loc["reverse", "hot"]
    assert line.diverged + line.seeds == 2 and line.missing == 0


def test_two_studies_share_the_workers_fairly(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    big = parse(TEXT.replace('"small"', '"big"').replace("seeds = 2", "seeds = [10, 11, 12, 13, 14, 15]"))
    small = parse(TEXT.replace("seeds = 2", "seeds = [20]"))
    first, second = store.enrol(big).study, store.enrol(small).study
    for _ in Runner(store, [first, second], workers).progress():
        pass
    check_complete(store, big)
    check_complete(store, small)
    ended = sorted((each.ended, study) for study in (first, second) for each in store.runs(study))
    assert max(n for n, (_, study) in enumerate(ended) if study == second) < 16  # of 28: not behind all of the other


# What can happen


def test_a_worker_that_is_killed_costs_nothing(database):  # noqa: F811
    store, own = Store(database), ProcessPool(2)
    killed = []

    def kill(seen):
        if seen.share > 0.1 and not killed:
            killed.append(next(iter(own._executor._processes)))
            os.kill(killed[-1], signal.SIGKILL)

    finish(store, LONG, own, until=kill)
    assert killed
    check_complete(store, LONG)
    assert {each.tries for each in store.runs(1)} == {1}
    own.close()
    store.close()


def test_what_was_stopped_runs_again_from_its_start_when_asked(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    study = parse(TEXT.replace("steps = 30", "steps = 200").replace("seeds = 2", "seeds = [40, 41]"))
    finish(store, study, workers, until=lambda seen: 0.2 < seen.share)
    stopped = {each.hash for each in store.runs(1, STOPPED)}
    assert store.requeue(1) == len(stopped) > 0
    queued = {each.id for each in store.runs(1, QUEUED)}
    assert not queued & {run for run, *_ in store.rows(1)}
    finish(store, study, workers)
    check_complete(store, study)
    assert {each.hash for each in store.runs(1) if each.tries == 2} == stopped


def test_a_run_that_raises_is_failed_with_its_message_and_the_rest_goes_on(tmp_path, workers, monkeypatch):
    store = Store(str(tmp_path / "x.sqlite"))
    study = parse(TEXT.replace("seeds = 2", "seeds = [50, 51]"))
    good = Run.start

    def start(run):
        if run.variant != "baseline" and run.seed == 50:
            if run.task == "copy":
                raise MemoryError("no room for it")  # before it has begun
            return replace(good(run), model={"embed": torch.zeros(3, 3)})  # in the worker
        return good(run)

    monkeypatch.setattr(Run, "start", start)
    seen = finish(store, study, workers)
    assert seen[-1].counts == {DONE: 6, FAILED: 2}
    copy, reverse = store.runs(1, FAILED)
    assert copy.message == "MemoryError: no room for it"
    assert reverse.message.startswith("RuntimeError: ") and "embed" in reverse.message
    assert tables.summary_table(store, 1).missing.sum() == 2
    monkeypatch.undo()
    assert store.requeue(1) == 2
    finish(store, study, workers)
    check_complete(store, study)


# Tables


def test_tables_hold_what_is_stored_and_the_summary_is_that_of_the_training_page(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    study = parse(TEXT.replace("seeds = 2", "seeds = 3").replace("steps = 30", "steps = 80"))
    finish(store, study, workers)
    made = tables.export(store, 1, tmp_path / "csv", "csv") + tables.export(store, 1, tmp_path / "parquet", "parquet")
    csv = {path.stem: pd.read_csv(path, dtype={"message": str, "note": str}) for path in made if path.suffix == ".csv"}
    for table in csv.values():  # CSV has no empty text
        for name in {"message", "note"} & set(table):
            table[name] = table[name].fillna("")
    parquet = {path.stem: pd.read_parquet(path) for path in made if path.suffix == ".parquet"}
    assert set(csv) == set(parquet) == {"runs", "rows", "summary"}
    for name in csv:
        pd.testing.assert_frame_equal(csv[name], parquet[name], check_dtype=False, rtol=0, atol=0)
    rows = csv["rows"].drop(columns="note")
    for run, each in zip(study.runs, csv["runs"].itertuples()):
        mine = rows[rows.run == each.run]
        assert set(map(tuple, mine[["task", "variant", "seed"]].values)) == {(run.task, run.variant, run.seed)}
        assert [Row(*line, "") for line in mine[list(Row._fields[:-1])].itertuples(index=False)] == eval(plain(run))
    for name in ("copy", "reverse"):
        mine = {(run.variant, run.seed): eval(plain(run)) for run in study.runs if run.task == name}
        first = {run.variant: run for run in study.runs if run.task == name and run.seed == 0}
        arms = tuple(Arm(v, first[v].config, n, frozenset([v] * n)) for n, v in enumerate(first))
        wanted = summary(mine, Plan(arms, study.runs[0].training, Trial(seeds=3), study.runs[0].machine))
        found = csv["summary"][csv["summary"].task == name].reset_index(drop=True)
        same = [
            "variant",
            "accuracy",
            "low",
            "high",
            "seeds",
            "diverged",
            "difference",
            "difference_low",
            "difference_high",
            "p",
        ]
        pd.testing.assert_frame_equal(found[same], wanted[same], check_dtype=False)
    whole = {
        run.seed: eval(plain(run))[-1].accuracy
        for run in study.runs
        if (run.task, run.variant) == ("reverse", "baseline")
    }
    without = {
        r.seed: eval(plain(r))[-1].accuracy for r in study.runs if (r.task, r.variant) == ("reverse", "− attention")
    }
    line = csv["summary"].set_index(["task", "variant"]).loc["reverse", "− attention"]
    assert line.difference == gap(without, whole).mean and line.accuracy == interval(without.values()).mean


# The bar


# In the background of a server


OTHER = parse(TEXT.replace('"small"', '"other"').replace("batch = 8", "batch = 9"))


@pytest.fixture
def service(tmp_path, workers):
    store = Store(str(tmp_path / "studies.sqlite"))
    made = Service(store, workers)
    yield made
    for each in store.studies():
        store.delete(each.id)
    wait(lambda: made._runner is None)
    store.close()


def wait(until, seconds=90):
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def begin(service, study) -> int:
    number = service.store.enrol(study).study
    service.start(number)
    return number


def counts(service, number) -> dict:
    return standing(service.store, number).counts


def test_studies_are_trained_side_by_side_and_more_may_come(service):
    one = begin(service, STUDY)
    wait(lambda: counts(service, one).get(DONE))
    other = begin(service, OTHER)
    assert service.has(one) and service.has(other)
    wait(lambda: standing(service.store, one).complete and standing(service.store, other).complete)
    wait(lambda: not service.has(one))
    begin(service, STUDY)  # nothing is left of it
    wait(lambda: not service.has(one))
    check_complete(service.store, STUDY)
    check_complete(service.store, OTHER)
    assert service.trouble == ""


def test_a_stop_in_the_store_stops_it_and_resuming_goes_on(service):
    number = begin(service, STUDY)
    wait(lambda: counts(service, number).get(RUNNING))
    service.store.stop(number)
    found = counts(service, number)
    assert found.get(STOPPED) and not found.get(QUEUED) and not found.get(RUNNING)
    wait(lambda: not service.has(number))
    assert counts(service, number) == found and not service.workers.jobs
    assert service.store.requeue(number) == found[STOPPED]
    service.start(number)
    wait(lambda: standing(service.store, number).complete)
    check_complete(service.store, STUDY)


SERVER = """
import sys, time
from core.workers.pool import ProcessPool
from core.study.runner import Service
from core.study.database.store import Store, standing
if __name__ == "__main__":
    store = Store(sys.argv[1])
    Service(store, ProcessPool(2)).start(store.studies()[0].id)
    time.sleep(600)
"""


def test_a_server_that_is_killed_leaves_a_study_that_can_go_on(service, tmp_path):
    store, script = service.store, tmp_path / "server.py"
    script.write_text(SERVER)
    number = store.enrol(LONG).study
    killed = subprocess.Popen(
        [sys.executable, script, str(tmp_path / "studies.sqlite")], env=os.environ | {"PYTHONPATH": "."}
    )
    wait(lambda: any(run.step for run in store.runs(number, spec=False)))
    killed.kill()
    killed.wait()
    now = standing(store, number)
    assert now.lost == now.counts[RUNNING] > 0 and now.open and not now.running
    store.requeue(number)
    service.start(number)
    wait(lambda: standing(store, number).complete)
    check_complete(store, LONG)
