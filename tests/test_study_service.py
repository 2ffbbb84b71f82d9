"""Studies in the background of a server: side by side, behind its visitors, stopped through the store, going on after a kill."""

import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from core.study import runner
from core.study.database.schema import DONE, QUEUED, RUNNING, STOPPED
from core.study.database.standing import standing
from core.study.database.store import Store
from core.study.file import parse
from core.study.service import Service
from core.workers import job as jobs
from core.workers.job import Job
from tests.test_study_runner import LONG, STUDY, TEXT, check_complete, pool, workers  # noqa: F401

pytestmark = pytest.mark.thorough

OTHER = parse(TEXT.replace('"small"', '"other"').replace("batch = 8", "batch = 9"))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(jobs, "CHUNK", 0.05)
    monkeypatch.setattr(runner, "BEAT", 0.1)


@pytest.fixture
def service(tmp_path, workers):  # noqa: F811
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


def test_resuming_at_once_after_a_stop_trains_nothing_twice(service):
    number = begin(service, STUDY)
    wait(lambda: counts(service, number).get(DONE))
    for _ in range(3):
        service.store.stop(number)
        service.store.requeue(number)
        service.start(number)
    wait(lambda: standing(service.store, number).complete)
    check_complete(service.store, STUDY)


def test_deleting_a_study_stops_it_and_the_others_go_on(service):
    gone, stays = begin(service, LONG), begin(service, OTHER)
    wait(lambda: counts(service, gone).get(RUNNING))
    service.store.delete(gone)
    wait(lambda: standing(service.store, stays).complete)
    check_complete(service.store, OTHER)
    assert [each.id for each in service.store.studies()] == [stays] and service.trouble == ""


def test_a_visitor_goes_before_the_studies(service):
    number = begin(service, LONG)
    wait(lambda: counts(service, number).get(RUNNING, 0) >= 2)
    state = OTHER.runs[0].start()
    job = Job(service.workers, {"mine": state})
    assert job.workers.position(job) == 0 and job.workers.jobs[0] is job
    wait(lambda: job.poll().done)
    assert job.error is None and not standing(service.store, number).complete


def test_no_more_runs_than_there_are_workers_are_said_to_be_running(service):
    number = begin(service, LONG)
    wait(lambda: any(run.step for run in service.store.runs(number, spec=False)))
    now = standing(service.store, number)
    said = {state: int(many) for many, state in re.findall(r"(\d+) (\w+)", now.words().split(": ")[1])}
    assert 1 <= said[RUNNING] <= service.workers.count < now.counts[RUNNING]
    assert sum(said.values()) == now.many == len(LONG.runs)
    earlier = replace(
        now, counts={"queued": len(LONG.runs) - 1, RUNNING: 1}, ahead=3
    )  # taken between two looks at the store
    assert earlier.words().endswith(f": {len(LONG.runs):,} queued")


def test_a_store_that_fails_ends_it_with_a_reason(service, monkeypatch):
    def broken(*_):
        raise runner.StoreError("The store /data/studies.sqlite is gone.", "The store is gone.")

    monkeypatch.setattr(service.store, "claim", broken)
    number = begin(service, STUDY)
    wait(lambda: not service.has(number))
    assert service.trouble == "The store is gone."
    monkeypatch.undo()
    service.start(number)
    wait(lambda: standing(service.store, number).complete)
    assert service.trouble == ""


SERVER = """
import sys, time
from core.workers.pool import ProcessPool
from core.study.service import Service
from core.study.database.store import Store
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
