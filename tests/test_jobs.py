"""Trainings in worker processes: same numbers, fair shares, none lost, none left running."""

import multiprocessing.connection
import os
import signal
import subprocess
import sys
import time
import types
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from core.settings.cache import LRUCache
from core.settings.device import Machine
from core.tasks import task
from core.train import budget
from core.train.run import start, train
from core.train.settings import Training
from core.workers import job as jobs
from core.workers.job import Job
from core.workers.pool import ProcessPool, worker_count

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1}


@pytest.fixture(scope="module")
def workers():
    pool = ProcessPool(2)
    pool.warm()
    yield pool
    pool.close()


@pytest.fixture
def quick(monkeypatch):
    """Give workers chunks of a few steps, so that every training takes several."""
    monkeypatch.setattr(jobs, "CHUNK", 0.02)


@pytest.fixture
def single():
    pool = ProcessPool(1)
    yield pool
    pool.close()


def states(seeds=(0, 1), name="copy", **settings) -> dict:
    training = Training(task=name, **{"steps": 40, "batch": 8} | settings)
    config = task[name].config(**SMALL)
    return {("baseline", seed): start(config, training, seed) for seed in seeds}


def endless(seeds=(0,)) -> dict:
    return states(seeds, steps=100_000)


def wait(until, *polled, seconds=60.0):
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it did not come"
        for job in polled:
            job.poll()
        time.sleep(0.02)


def still_running(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return the processes still running after a while; a zombie has ended."""
    _, left = psutil.wait_procs(processes, timeout=seconds)
    return [process for process in left if not _has_ended(process)]


def _has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_exact(job, name) -> bool:
    """Return whether the rows equal those of an uninterrupted training in this process."""
    state = job.states[name]
    return job.rows[name] == list(train(state.config, state.training, state.seed))


# The numbers


@pytest.mark.parametrize("count", [1, 2])
def test_rows_equal_single_training_on_any_workers(quick, count):
    pool = ProcessPool(count)
    job = Job(pool, states((0, 1, 2), name="reverse", steps=30))
    wait(lambda: job.done, job)
    assert job.error is None and job.progress == 1 and all(is_exact(job, name) for name in job.rows)
    pool.close()


def test_divergence_is_a_result(workers):
    job = Job(
        workers,
        states(
            (0,), learning_rate=10.0, optimiser="sgd", clip=0.0, steps=300, warmup=0, name="reverse"
        ),
    )
    wait(lambda: job.done, job)
    row = job.rows["baseline", 0][-1]
    assert row.note == f"diverged at step {row.step}" and job.error is None and job.progress == 1


def test_stopped_training_resumes_with_equal_rows(workers, quick):
    states_given = states((0, 1), steps=300, batch=10, name="reverse")
    job = Job(workers, states_given)
    for share in (0.1, 0.5):
        wait(lambda share=share: job.progress > share, job)
        job.stop()
        before = job.progress
        time.sleep(0.2)  # the chunk under way ends, and is thrown away
        assert job.done and not job.alive and job.progress == before and job not in workers.jobs
        job.resume()
    wait(lambda: job.done, job)
    assert job.error is None and all(is_exact(job, name) for name in states_given)


# The queue


def test_jobs_take_turns_by_chunks(workers, quick):
    running = [Job(workers, endless((seed,))) for seed in (31, 32, 33, 34, 35)]
    assert workers.sharing == 5 and workers.workers_per_job() == 2 / 5
    seconds = [job.trainings["baseline", seed] for job, seed in zip(running, (31, 32, 33, 34, 35))]
    wait(lambda: all(training.seconds > 0.2 for training in seconds), *running)
    assert max(training.seconds for training in seconds) < 4 * min(
        training.seconds for training in seconds
    )
    last = Job(workers, states((36,)))
    wait(lambda: last.done, last, *running)
    assert last.error is None and is_exact(last, ("baseline", 36))
    for job in running:
        job.stop()


def test_background_job_gets_spare_workers(single, quick):
    watched = [Job(single, endless((seed,))) for seed in (41, 42)]
    wait(lambda: all(job.progress > 0 for job in watched), *watched)
    behind = Job(single, endless((44,)), background=True)
    progress = [job.progress for job in watched]
    wait(
        lambda: all(job.progress > before for job, before in zip(watched, progress)),
        *watched,
        behind,
    )
    assert behind.progress == 0 and single.sharing == 2
    for job in watched:
        job.stop()
    wait(lambda: behind.progress > 0, behind)


def test_stop_frees_workers_within_a_second(workers):
    job = Job(workers, endless((0, 1)))
    wait(lambda: job.progress > 0, job)
    job.stop()
    before = time.monotonic()
    workers.submit(os.getpid).result(timeout=30)
    assert time.monotonic() - before < 10 * jobs.CHUNK  # on a busy machine; a chunk takes 0.4 s


def test_unpolled_job_pauses_and_resumes(workers, quick, monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE", 0.3)
    job = Job(workers, endless())
    wait(lambda: job.progress > 0, job)
    time.sleep(0.6)
    progress = job.progress
    time.sleep(0.4)
    assert job.progress == progress and not job.alive and not job.done
    wait(lambda: job.progress > progress, job)
    job.stop()


# What users share


@pytest.mark.parametrize("count", [1, 2])
def test_shared_training_runs_once(quick, count, monkeypatch):
    pool = ProcessPool(count)
    states_given = states((0, 1), steps=200, batch=18)
    steps = []
    take = jobs.SharedTraining.add_chunk

    def count_steps(training, state, *extra):
        steps.append(state.step - training.state.step)
        take(training, state, *extra)

    monkeypatch.setattr(jobs.SharedTraining, "add_chunk", count_steps)
    first = Job(pool, states_given)
    two = Job(pool, {("other", state.seed): state for state in states_given.values()})
    wait(lambda: first.progress > 0.3, first, two)
    assert two.progress > 0  # both see how it grows
    wait(lambda: first.done and two.done, first, two)
    assert sum(steps) == 400 and all(is_exact(first, name) for name in states_given)
    assert list(first.rows.values()) == list(two.rows.values())
    third = Job(pool, states_given)
    assert third.done and third.known == 2 and third.rows == first.rows
    pool.close()


def test_only_the_very_same_training_is_shared(workers, quick):
    states_given = states((0,), steps=20, batch=6)
    first = Job(workers, states_given)
    wait(lambda: first.done, first)
    ((name, state),) = states_given.items()
    others = {
        "seed": start(state.config, state.training, 1),
        "model": start(state.config.replace(scale=False), state.training, 0),
        "training": start(state.config, replace(state.training, learning_rate=0.002), 0),
        "rows": start(state.config, replace(state.training, every=7), 0),
        "machine": start(state.config, state.training, 0, Machine(device="cpu", dtype="bfloat16")),
        "same": state,
    }
    job = Job(workers, others)
    assert job.known == 1 and job.states["same"].done
    wait(lambda: job.done, job)
    assert job.known == 1 and all(is_exact(job, name) for name in others if name != "machine")


def train_until(pool, states_given, share):
    """Train up to this share of the steps and stop. Return the states and the rows."""
    job = Job(pool, states_given)
    wait(lambda: job.progress >= share, job)
    job.stop()
    return job.states, {name: list(rows) for name, rows in job.rows.items()}


def test_unfinished_training_resumes_for_anyone(workers, quick):
    states_given = states((0,), steps=500, batch=15)
    before, rows = train_until(workers, states_given, 0.1)
    repeated = Job(workers, states_given)
    assert (
        repeated.states == before
        and 0 < repeated.progress < 1
        and repeated.rows == rows
        and repeated.known == 0
    )
    wait(lambda: repeated.done, repeated)
    assert is_exact(repeated, ("baseline", 0))


def test_cache_is_bounded_and_rows_outlive_models(quick, monkeypatch):
    pool = ProcessPool(2)
    ((_, state),) = train_until(pool, states((50,), steps=3), 1)[0].items()
    assert state.optimiser is None and state.data is None
    size = sum(tensor.nbytes for tensor in state.model.values()) + jobs.ROW * 3
    monkeypatch.setattr(pool, "kept", LRUCache(3 * size / 2**20))
    states_given = states(range(60, 66), steps=3)
    _, rows = train_until(pool, states_given, 1)
    assert pool.kept.bytes <= 3 * size
    with pool.lock:  # the last chunk has been taken
        cached = [pool.find_finished(jobs.key_of(state)) for state in states_given.values()]
    assert [state is None for _, state in cached].count(True) == 3
    assert [list(item) for item, _ in cached] == list(rows.values())
    repeated = Job(pool, states_given)  # what was evicted is trained again, to the same rows
    wait(lambda: repeated.done, repeated)
    assert repeated.rows == rows and repeated.known == 3
    pool.close()


# Estimates


class Idle(ProcessPool):
    """Worker pool that never returns a result."""

    def train(self, states, seconds):
        return Future()


def test_time_left_is_corrected_by_measurement():
    pool = Idle(2)
    job = Job(pool, states((0, 1, 2), steps=100, batch=3))
    estimate = budget.estimate_seconds_left(list(job.states.values()), 2)
    assert job.seconds_left() == pytest.approx(estimate)
    for training in job.trainings.values():
        first = replace(training.state, step=10, seconds=9.0)
        training.add_chunk(first, [], 1)  # also loads and draws: it does not count
        assert not training.seconds
        alone = budget.estimate_seconds(first.config, first.training)
        training.add_chunk(replace(first, step=40, seconds=9.0 + 3 * 0.3 * alone), [], 1)
    assert job.seconds_left() == pytest.approx(3 * 0.6 * estimate)
    before = job.seconds_left()
    others = [Job(pool, endless((seed,))) for seed in (7, 8, 9)]
    assert pool.sharing == 4
    assert job.seconds_left() == pytest.approx(4 * before)
    assert others


def test_diverged_trainings_leave_nothing_to_train():
    job = Job(Idle(1), states((0, 1), steps=100))
    first, two = job.trainings.values()
    first.state = replace(first.state, step=10, diverged=True)
    two.state = replace(two.state, step=10)
    assert job.progress == (100 + 10) / 200
    assert job.seconds_left() == pytest.approx(
        0.9 * budget.estimate_seconds(two.state.config, two.state.training)
    )


# Failures


def test_killed_worker_costs_one_chunk(quick):
    pool = ProcessPool(2)
    both = [Job(pool, states((seed,), steps=400, batch=11 + seed)) for seed in (0, 1)]
    wait(lambda: all(job.progress > 0.1 for job in both), *both)
    os.kill(pool.submit(os.getpid).result(timeout=30), signal.SIGKILL)
    wait(lambda: all(job.done for job in both), *both)
    for seed, job in enumerate(both):
        assert job.error is None and is_exact(job, ("baseline", seed))
    pool.close()


def _die_while_sending():
    """Make a worker send half of its next result and die."""

    def send_half(connection, buffer):
        os.write(connection.fileno(), bytes(buffer)[: len(buffer) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    multiprocessing.connection.Connection._send = send_half


def test_worker_killed_while_sending_does_not_block(quick):
    pool = ProcessPool(2)
    job = Job(pool, states((0,), steps=600, batch=17))
    wait(lambda: job.progress > 0.02, job)
    before = list(pool._executor._processes.values())
    half_sent = pool.submit(_die_while_sending)
    wait(lambda: job.done and half_sent.done(), job)
    assert isinstance(half_sent.exception(), BrokenProcessPool)
    assert job.error is None and is_exact(job, ("baseline", 0))
    assert not still_running(
        [psutil.Process(p.pid) for p in before if psutil.pid_exists(p.pid)], 10
    )
    pool.close()


def test_repeatedly_killed_workers_end_their_job():
    class Fatal(ProcessPool):
        def train(self, states, seconds):
            return self.submit(os._exit, 1)

    pool = Fatal(1)
    job = Job(pool, states((0,)))
    wait(lambda: job.done, job)
    pool.close()
    assert isinstance(job.error, jobs.WorkersKilledError) and str(jobs.KILLS) in str(job.error)
    assert job.rows == {("baseline", 0): []}


def test_failing_training_stops_only_its_job(workers, quick):
    good = Job(workers, states((0,), steps=200, batch=13))
    ((name, state),) = states((1,), batch=13).items()
    fine = start(state.config, state.training, 2)
    bad = Job(workers, {name: replace(state, model={"embed": torch.zeros(3, 3)}), "fine": fine})
    wait(lambda: bad.done, bad, good)
    assert isinstance(bad.error, RuntimeError) and "embed" in str(bad.error) and not bad.alive
    wait(lambda: good.done, good)
    assert good.error is None and is_exact(good, ("baseline", 0)) and bad not in workers.jobs
    bad.resume()
    assert bad.done and bad.error is not None  # it does not start over
    repeated = Job(workers, {name: state})  # but a new job does
    wait(lambda: repeated.done, repeated)
    assert repeated.error is None and is_exact(repeated, name)


# The processes


def test_workers_have_one_thread_and_a_core_each(workers):
    assert workers.submit(torch.get_num_threads).result(timeout=30) == 1
    if hasattr(os, "sched_getaffinity") and os.cpu_count() > 1:
        assert len(workers.submit(os.sched_getaffinity, 0).result(timeout=30)) == 1


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = (
        "import os, sys, time\nfrom core.workers.pool import ProcessPool\nif __name__ =="
        " '__main__':\n    w = ProcessPool(1)\n    print(w.submit(os.getpid).result(),"
        " flush=True)\n    time.sleep(60)\n"
    )
    path = tmp_path / "parent.py"
    path.write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen(
        [sys.executable, str(path)], cwd=ROOT, stdout=subprocess.PIPE, env=environment
    )
    worker = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    assert not still_running([worker], 20)


def test_workers_do_not_run_the_script_of_their_parent(monkeypatch, tmp_path):
    """A worker must not import `__main__`, which is a page under Streamlit: it would run it."""
    page = types.ModuleType("__main__")
    page.__file__ = str(tmp_path / "page.py")
    Path(page.__file__).write_text("raise SystemExit('a page was run in a worker')")
    monkeypatch.setitem(sys.modules, "__main__", page)
    pool = ProcessPool(2)
    for _ in range(2):  # the second worker starts when the first is busy
        assert pool.submit(_main_file).result(timeout=60) is None
    assert sys.modules["__main__"] is page
    pool.close()


def _main_file():
    return getattr(sys.modules.get("__mp_main__"), "__file__", None)


def test_closed_pool_leaves_no_process():
    pool = ProcessPool(2)
    job = Job(pool, endless((0, 1)))
    wait(lambda: job.progress > 0, job)
    processes = [psutil.Process(number) for number in pool._executor._processes]
    pool.close()
    assert not still_running(processes, 10) and job.done
    with pytest.raises(CancelledError):
        pool.submit(int)
    pool.close()


@pytest.mark.parametrize("text, count", [("3", 3), ("0", None), ("many", None), ("", None)])
def test_number_of_workers_can_be_set(monkeypatch, text, count):
    monkeypatch.setenv("ABLATION_WORKERS", text)
    assert worker_count() == (count or min(2, os.cpu_count()))
