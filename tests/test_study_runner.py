"""Studies trained and stored: despite interruptions every run is stored once, exactly."""

import time
from dataclasses import replace

import pytest
import torch

from core.study import tables
from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING, STOPPED
from core.study.database.store import Store, progress_of
from core.study.file import parse
from core.study.plan import Run
from core.study.runner import Progress, Runner, Service
from core.train import Row, train
from core.workers.pool import ProcessPool
from tests.databases import database, postgresql  # noqa: F401  (fixtures)
from tests.waiting import wait

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_chunks")]

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
    process_pool = ProcessPool(2)
    yield process_pool
    process_pool.close()


@pytest.fixture
def workers(pool):
    """Return the shared processes, cleared of what earlier tests left."""
    pool.kept.clear()
    pool.trainings.clear()
    return pool


def plain(run: Run) -> str:
    """Return a run's rows, trained in one piece in this process; NaN compares equal."""
    if run.hash not in _trained:
        _trained[run.hash] = repr(list(train(run.config, run.training, run.seed, run.machine)))
    return _trained[run.hash]


def check_complete(store, study):
    """Assert that every run has its result and the rows of an uninterrupted training, each once."""
    actual = {}
    number = store.find(study.name)
    for run, *row in store.rows(number):
        actual.setdefault(run, []).append(Row(*row))
    stored = store.runs(number)
    assert [item.hash for item in stored] == [item.hash for item in study.runs]
    for entry, run in zip(stored, study.runs):
        rows = actual.pop(entry.id)
        assert repr(rows) == plain(run)
        assert (entry.state, entry.step) == (DIVERGED if rows[-1].note else DONE, rows[-1].step)
        assert entry.ended and entry.device.startswith("CPU (")
    assert not actual


def finish(store, study, workers, until=None, seconds=240) -> list[Progress]:
    """Work on a study until it ends or until(progress) holds."""
    runner = Runner(store, [store.enrol(study).study], workers)
    end = time.monotonic() + seconds
    observed = []
    steps = runner.train()
    for step in steps:
        observed.append(step)
        if until and until(step):
            break
        assert time.monotonic() < end, f"it did not come: {step}"
    steps.close()
    return observed


def test_study_is_trained_and_stored_bit_for_bit(database, workers):  # noqa: F811
    store = Store(database)
    reports = finish(store, STUDY, workers)
    check_complete(store, STUDY)
    assert reports[-1].share == 1 and reports[-1].left == 0 and reports[-1].counts == {DONE: 8}
    shares = [step.share for step in reports]
    assert shares == sorted(shares) and not any(step.trouble for step in reports)
    before = store.runs(1)
    assert (
        len(finish(store, STUDY, workers)) <= 1 and store.runs(1) == before
    )  # and again does nothing
    store.close()


def test_only_what_is_missing_is_trained(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    finish(store, STUDY, workers)
    before = {run.hash: (run.tries, run.ended) for run in store.runs(1)}
    extra = parse(TEXT.replace("seeds = 2", "seeds = 3"))
    assert store.enrol(extra).new == 4
    finish(store, extra, workers)
    check_complete(store, extra)
    after = {run.hash: (run.tries, run.ended) for run in store.runs(1)}
    assert {key: after[key] for key in before} == before and {
        tries for tries, _ in after.values()
    } == {1}


def test_divergence_is_a_result_and_comes_back_as_one(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    hot = parse(
        TEXT + '"hot" = {learning_rate = 1000.0, optimiser = "sgd", norm = "none", steps = 60}\n'
    )
    finish(store, hot, workers)
    check_complete(store, hot)
    lost = store.runs(1, DIVERGED)
    assert lost and all(item.message.startswith("diverged at step ") for item in lost)
    table = tables.summary_table(store, 1).set_index(["task", "variant"])
    line = table.loc["reverse", "hot"]
    assert line.diverged + line.seeds == 2 and line.missing == 0


def test_studies_share_workers_fairly(tmp_path, workers):
    store = Store(str(tmp_path / "x.sqlite"))
    big = parse(
        TEXT.replace('"small"', '"big"').replace("seeds = 2", "seeds = [10, 11, 12, 13, 14, 15]")
    )
    small = parse(TEXT.replace("seeds = 2", "seeds = [20]"))
    first = store.enrol(big).study
    second = store.enrol(small).study
    for _ in Runner(store, [first, second], workers).train():
        pass
    check_complete(store, big)
    check_complete(store, small)
    ended = sorted((run.ended, study) for study in (first, second) for run in store.runs(study))
    assert (
        max(n for n, (_, study) in enumerate(ended) if study == second) < 16
    )  # of 28: not behind all of the other


def test_failing_run_keeps_message_and_others_continue(tmp_path, workers, monkeypatch):
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
    reports = finish(store, study, workers)
    assert reports[-1].counts == {DONE: 6, FAILED: 2}
    copy, reverse = store.runs(1, FAILED)
    assert copy.message == "MemoryError: no room for it"
    assert reverse.message.startswith("RuntimeError: ") and "embed" in reverse.message
    assert tables.summary_table(store, 1).missing.sum() == 2
    monkeypatch.undo()
    assert store.requeue(1) == 2
    finish(store, study, workers)
    check_complete(store, study)


# In the background of a server


OTHER = parse(TEXT.replace('"small"', '"other"').replace("batch = 8", "batch = 9"))


@pytest.fixture
def service(tmp_path, workers):
    store = Store(str(tmp_path / "studies.sqlite"))
    service_made = Service(store, workers)
    yield service_made
    for study in store.studies():
        store.delete(study.id)
    wait(lambda: service_made._runner is None)
    store.close()


def start_study(service, study) -> int:
    number = service.store.enrol(study).study
    service.start(number)
    return number


def counts(service, number) -> dict:
    return progress_of(service.store, number).counts


def test_studies_train_side_by_side_and_more_may_join(service):
    number = start_study(service, STUDY)
    wait(lambda: counts(service, number).get(DONE))
    other = start_study(service, OTHER)
    assert service.has(number) and service.has(other)
    wait(
        lambda: (
            progress_of(service.store, number).complete
            and progress_of(service.store, other).complete
        )
    )
    wait(lambda: not service.has(number))
    start_study(service, STUDY)  # nothing is left of it
    wait(lambda: not service.has(number))
    check_complete(service.store, STUDY)
    check_complete(service.store, OTHER)
    assert service.trouble == ""


def test_stop_in_store_stops_and_resume_continues(service):
    number = start_study(service, STUDY)
    wait(lambda: counts(service, number).get(RUNNING))
    service.store.stop(number)
    actual = counts(service, number)
    assert actual.get(STOPPED) and not actual.get(QUEUED) and not actual.get(RUNNING)
    wait(lambda: not service.has(number))
    assert counts(service, number) == actual and not service.workers.jobs
    assert service.store.requeue(number) == actual[STOPPED]
    service.start(number)
    wait(lambda: progress_of(service.store, number).complete)
    check_complete(service.store, STUDY)
