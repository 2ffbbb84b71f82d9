"""Studies on a Dask cluster: equal numbers although processes die, and none left running."""

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch

if not os.environ.get("CI"):  # there its absence is a failure
    pytest.importorskip(
        "distributed", reason="distributed is not installed; pip install -r requirements-dev.txt"
    )

from benchmarks.machines import ROOT, Machines, free_port
from core.settings.device import Machine
from core.settings.process import versions
from core.settings.setting import ConfigError
from core.study import __main__ as command
from core.study.__main__ import Bar
from core.study.database.schema import DONE, QUEUED, RUNNING, STOPPED
from core.study.database.store import Store
from core.study.file import parse
from core.workers import cluster, worker
from core.workers import job as jobs
from core.workers.cluster import Cluster, ClusterError, create_pool, describe_difference
from core.workers.pool import ProcessPool
from tests.test_study_runner import TEXT, check_complete, finish
from tests.waiting import wait

pytestmark = pytest.mark.slow

STUDY = parse(TEXT)
LONG = parse(TEXT.replace("steps = 30", "steps = 400").replace('"copy", ', ""))
GPU = parse(TEXT.replace('"cpu"', '"cuda"'))


@pytest.fixture(autouse=True)
def quick(short_chunks, monkeypatch):
    monkeypatch.setattr(cluster, "LOOK", 0.1)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """Yield a scheduler and two workers for the file; a test that ends one replaces it."""
    cluster_machines = Machines(tmp_path_factory.mktemp("cluster"), 2)
    yield cluster_machines
    cluster_machines.close()


@pytest.fixture(scope="module")
def shared(machines):
    cluster = Cluster(machines.address)
    yield cluster
    cluster.close()


@pytest.fixture
def workers(shared):
    """Return the shared connection, cleared of what earlier tests left in it."""
    shared.kept.clear()
    shared.trainings.clear()
    ready(shared, 2)
    return shared


@pytest.fixture
def own_cluster(tmp_path, monkeypatch):
    """Yield a scheduler with a worker that the test may end, and a connection that notices soon."""
    monkeypatch.setattr(cluster, "ANSWER", 1.0)
    own_machines = Machines(tmp_path, 1)
    workers = Cluster(own_machines.address)
    yield own_machines, workers
    workers.close()
    own_machines.close()


def ready(workers, count):
    wait(lambda: not workers.refresh_workers() and workers.count >= count)


def test_cluster_study_is_stored_bit_for_bit(workers, store):
    reports = finish(store, STUDY, workers)
    check_complete(store, STUDY)
    assert reports[-1].counts == {DONE: 8} and not any(step.absent for step in reports)
    assert {run.tries for run in store.runs(1)} == {1}


def test_runs_in_hand_match_threads_or_limit(machines, workers):
    assert workers.count == 2
    limited = Cluster(machines.address, 1)
    wait(lambda: not limited.refresh_workers() and len(limited.members) == 2)
    assert limited.count == 1
    limited.close()


def test_chunks_use_one_thread():
    torch.set_num_threads(2)
    worker.train_chunk(pickle.dumps([STUDY.runs[0].start()]), 0.0)
    assert torch.get_num_threads() == 1


def test_killed_worker_is_replaced_without_loss(machines, workers, store):
    killed = []

    def kill(progress):
        if progress.share > 0.2 and not killed:
            killed.append(machines.workers.pop())
            machines.kill(killed[0])

    finish(store, LONG, workers, until=kill)
    check_complete(store, LONG)
    assert killed and {run.tries for run in store.runs(1)} == {1}
    machines.workers.append(machines.start_worker())
    ready(workers, 2)


def test_missing_workers_are_reported_and_replaced(machines, workers, store):
    observed = []

    def kill(progress):
        if progress.share > 0.2 and not any(step.absent for step in observed):
            for worker in machines.workers:
                machines.kill(worker)
            machines.workers = []
        if progress.absent and not machines.workers:
            machines.workers = [machines.start_worker()]
        observed.append(progress)

    finish(store, LONG, workers, until=kill)
    check_complete(store, LONG)
    assert any(step.absent == "there is no worker" for step in observed) and not observed[-1].absent
    assert {run.tries for run in store.runs(1)} == {1}
    machines.workers.append(machines.start_worker())
    ready(workers, 2)


def test_worker_without_project_is_excluded_by_name(machines, workers, store, tmp_path, caplog):
    strange = machines._start(
        "worker",
        machines.address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--host",
        "127.0.0.1",
        "--local-directory",
        str(tmp_path),
        cwd=tmp_path,
        PYTHONPATH="",
    )
    wait(lambda: workers.refresh_workers() or caplog.messages)
    assert caplog.messages[0].startswith("The worker tcp://127.0.0.1:")
    assert "is skipped: it cannot import this project" in caplog.messages[0]
    finish(store, STUDY, workers)
    check_complete(store, STUDY)
    assert workers.count == 2 and len(caplog.messages) == 1
    machines.kill(strange)


def test_runs_wait_for_worker_with_their_device(machines, store, caplog):
    connection = Cluster(machines.address)
    connection.require(GPU.runs[0].machine)
    reports = finish(store, GPU, connection, until=lambda progress: len(caplog.messages) == 2)
    assert reports[-1].absent == "no worker is ready" and reports[-1].counts == {QUEUED: 8}
    assert all(words.endswith("is skipped: it has no cuda.") for words in caplog.messages)
    connection.close()


# The command


def started(folder, address, *args, **environment):
    call = [sys.executable, "-m", "core.study", *args]
    with_path = (
        os.environ | {"PYTHONPATH": str(ROOT), "DASK_SCHEDULER_ADDRESS": address} | environment
    )
    pipe = subprocess.PIPE
    return subprocess.Popen(
        call, cwd=folder, env=with_path, text=True, stdout=pipe, stderr=pipe, encoding="utf-8"
    )


def _steps(path) -> int:
    """Return a study's step in another process's store; 0 while there is no store."""
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
            return store.execute("SELECT max(step) FROM runs").fetchone()[0] or 0
    except sqlite3.OperationalError:
        return 0


def test_ctrl_c_stores_results_and_clears_cluster(machines, workers, tmp_path):
    (tmp_path / "long.toml").write_text(LONG.source.replace("steps = 400", "steps = 20_000"))
    first = started(tmp_path, machines.address, "run", "long.toml", "--database", "x.sqlite")
    wait(lambda: _steps(tmp_path / "x.sqlite"), process=first)
    first.send_signal(signal.SIGINT)
    out, errors = first.communicate(timeout=30)
    assert first.returncode == 128 + signal.SIGINT and "stopped" in out, errors
    assert "Traceback" not in errors and "distributed" not in errors, errors
    wait(lambda: not any(workers._client.processing().values()))


def test_lost_scheduler_ends_in_words_and_local_run_completes(tmp_path, monkeypatch, capsys):
    (tmp_path / "long.toml").write_text(LONG.source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "GRACE", 1.0)
    monkeypatch.setattr(cluster, "ANSWER", 1.0)
    own_machines = Machines(tmp_path, 1)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", own_machines.address)
    draw = Bar.draw

    def kill(bar, progress):
        draw(bar, progress)
        if progress.counts.get(DONE) and own_machines.scheduler.poll() is None:
            own_machines.kill(own_machines.scheduler)

    monkeypatch.setattr(Bar, "draw", kill)
    try:
        assert command.main(["run", "long.toml", "--database", "x.sqlite"]) == command.NO_STORE
    finally:
        own_machines.close()
    errors = capsys.readouterr().err
    silence = f"The Dask scheduler at {own_machines.address} has not answered for 1 s."
    assert f"{silence} Stored results are safe" in errors
    assert "Traceback" not in errors and "distributed" not in errors
    store = Store("x.sqlite")
    before = {run.hash: run.ended for run in store.runs(1, DONE)}
    assert before and store.runs(1, STOPPED) and not store.runs(1, RUNNING)
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS")
    assert (
        command.main(["resume", LONG.name, "--database", "x.sqlite", "--workers", "2"])
        == command.COMPLETE
    )
    check_complete(store, LONG)
    assert before.items() <= {run.hash: run.ended for run in store.runs(1)}.items()
    store.close()


def test_returning_scheduler_is_found(own_cluster, store):
    own_machines, workers = own_cluster
    observed = []

    def replace_all(progress):
        observed.append(progress)
        if (
            progress.share > 0.2
            and own_machines.scheduler.poll() is None
            and len(own_machines.running) == 2
        ):
            own_machines.close()
        if progress.absent == "the scheduler does not answer" and len(own_machines.running) == 2:
            own_machines.start_scheduler()
            own_machines.start_worker()

    finish(store, LONG, workers, until=replace_all)
    check_complete(store, LONG)
    assert any(step.absent == "the scheduler does not answer" for step in observed)
    assert {run.tries for run in store.runs(1)} == {1}


@pytest.mark.parametrize("lost", [False, True])
def test_only_workers_that_are_gone_count_as_killed(workers, monkeypatch, lost):
    """A training is given up if its workers keep dying, but not if the scheduler died."""
    futures = []

    def train(states, seconds):
        futures.append(Future())
        workers._sent[futures[-1]] = workers.members
        return futures[-1]

    monkeypatch.setattr(workers, "train", train)
    job = jobs.Job(workers, {"a": LONG.runs[0].start()})
    for _ in range(jobs.KILLS):
        ready(workers, 2)
        assert job.poll().trainings["a"].is_running
        workers._set_members({}, killed=lost)
        assert not workers.running and not workers.count
    assert isinstance(job.error, jobs.WorkersKilledError) == lost and (lost or job.error is None)
    job.stop()
    ready(workers, 2)


# Without a cluster


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "tcp://", "tcp://host", "not an address", "tcp://host:port"]
)
def test_bad_addresses_are_refused_in_words(tmp_path, monkeypatch, capsys, address):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(TEXT)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address)
    assert command.main(["run", "small.toml", "--database", "x.sqlite"]) == command.MISTAKE
    errors = capsys.readouterr().err
    assert errors == f"DASK_SCHEDULER_ADDRESS is not an address: {cluster.ALLOWED}.\n"
    assert not Path("x.sqlite").exists()


@pytest.mark.parametrize("scheme", ["tcp", "http", "strange"])
def test_unreachable_scheduler_is_reported_in_words(monkeypatch, scheme):
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address := f"{scheme}://127.0.0.1:{free_port()}")
    with pytest.raises(
        ClusterError,
        match=rf"is {address}, where no Dask scheduler answers \(.*\): write the address",
    ) as caught:
        create_pool()
    assert (
        caught.value.public_message == "The training cluster does not answer."
    )  # visitors learn no address


def test_missing_dask_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:8786")
    with pytest.raises(ClusterError, match="pip install distributed=="):
        create_pool()
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS")
    local = create_pool(3)
    assert type(local) is ProcessPool and local.count == 3


def changed(actual, **versions):
    return actual._replace(versions=actual.versions | versions)


def test_workers_must_be_alike_and_the_difference_is_named():
    def unlike(actual, local, first, needed):
        answer = Future()
        answer.set_result(actual)
        return describe_difference(answer, local, first, needed)

    local = changed(worker.describe(), torch="2.13.0+cpu")
    assert unlike(local, local, None, {"cpu"}) == unlike(local, local, local, {"cpu"}) == ""
    other = changed(local, torch="2.13.0+cu130", code="unknown")  # this process trains nothing
    assert unlike(other, local, None, {"cpu"}) == "" and unlike(other, local, other, {"cpu"}) == ""
    assert unlike(other, local, local, {"cpu"}) == "it has torch 2.13.0+cu130, not 2.13.0+cpu"
    old = changed(local, torch="2.12.0+cpu", numpy="1.0", python="3.9.1")
    words = (
        f"it has torch 2.12.0+cpu, not 2.13.0+cpu; numpy 1.0, not {local.versions['numpy']}; python"
        " 3.9.1, not"
    )
    assert unlike(old, local, None, set()).startswith(words)
    edited = changed(local, code="abc")._replace(sources="0")
    assert (
        unlike(edited, local, None, set())
        == f"it has other files in core (commit abc, here {local.versions['code']})"
    )
    weak = local._replace(devices={"cpu": ("cpu", "CPU (x86_64, DEFAULT)")})
    assert unlike(weak, local, local, {"cpu"}).startswith("it has CPU (x86_64, DEFAULT), not CPU (")
    assert (
        unlike(weak, local, local, {"cuda"}) == "it has no cuda"
        and unlike(weak, local, local, set()) == ""
    )


def test_store_records_training_machine(monkeypatch):
    monkeypatch.setattr(cluster, "connect", lambda *_: None)
    connection = Cluster("tcp://127.0.0.1:1")
    assert connection.versions() == versions()
    remote = changed(worker.describe(), torch="2.13.0+cu130")
    connection._first = remote._replace(
        devices={"cuda": ("cuda", "NVIDIA H200"), "auto": ("cuda", "NVIDIA H200")}
    )
    assert connection.versions()["torch"] == "2.13.0+cu130"
    for machine in (Machine.anywhere("cuda"), Machine()):
        assert connection.device(machine) == ("cuda", "NVIDIA H200")
    with pytest.raises(ConfigError, match="device is mps, which the workers do not have"):
        connection.device(Machine.anywhere("mps"))
