"""Trainings in worker processes: the same numbers, shared fairly, stopped at once, none lost with a worker, none left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from core import jobs
from core.config import Config
from core.jobs import Job, Workers, worker_count
from core.tasks import task
from core.train.run import start, train
from core.train.settings import Training

ROOT = Path(__file__).parent.parent
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1}


@pytest.fixture(scope="module")
def workers():
    made = Workers(2)
    made.warm()
    yield made
    made.close()


@pytest.fixture
def quick(monkeypatch):
    """Workers are handed chunks of a few steps, so that every training takes several."""
    monkeypatch.setattr(jobs, "CHUNK", 0.02)


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


def test_the_rows_are_those_of_a_training_in_one_piece(workers, quick):
    given = states((0, 1, 2), name="reverse", steps=30)
    job = Job(workers, given)
    wait(lambda: job.done, job)
    assert job.error is None and job.progress == 1
    for (name, seed), rows in job.rows.items():
        state = given[name, seed]
        assert rows == list(train(state.config, state.training, seed))


def test_all_trainings_of_a_job_grow_together(workers, quick):
    job = Job(workers, states((0, 1, 2, 3), steps=2000))
    wait(lambda: job.progress > 0.2, job)
    shares = [state.step / state.training.steps for state in job.states.values()]
    assert max(shares) - min(shares) < 0.3
    job.stop()


def test_two_users_share_the_workers_and_get_their_own_numbers(workers, quick):
    one, two = Job(workers, states((0, 1), steps=60)), Job(workers, states((7,), steps=60, batch=4))
    assert workers.place(one) == workers.place(two) == 0
    wait(lambda: one.done and two.done, one, two)
    for job in (one, two):
        for (_, seed), rows in job.rows.items():
            state = job.states["baseline", seed]
            assert rows == list(train(state.config, state.training, seed))


def test_who_comes_third_waits_and_is_told_the_place(workers, quick):
    first, second = Job(workers, endless()), Job(workers, endless((1,)))
    third, fourth = Job(workers, states((3,))), Job(workers, endless((4,)))
    assert [workers.place(job) for job in (first, second, third, fourth)] == [0, 0, 1, 2]
    wait(lambda: first.progress > 0 and second.progress > 0, first, second, third, fourth)
    assert third.progress == 0
    first.stop()
    assert [workers.place(job) for job in (second, third, fourth)] == [0, 0, 1]
    wait(lambda: third.done, second, third, fourth)
    for job in (second, fourth):
        job.stop()


def test_stop_frees_the_workers_within_a_second(workers):
    job = Job(workers, endless((0, 1)))
    wait(lambda: job.progress > 0, job)
    job.stop()
    before = time.monotonic()
    workers.submit(os.getpid).result(timeout=30)
    assert time.monotonic() - before < 10 * jobs.CHUNK  # on a loaded machine; a chunk is 0.4 s
    seen = job.progress
    time.sleep(0.2)
    assert job.done and job.progress == seen and job not in workers.jobs


def test_a_job_that_nobody_asks_about_leaves_its_workers_and_goes_on_when_asked_again(workers, quick, monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE", 0.3)
    job = Job(workers, endless())
    wait(lambda: job.progress > 0, job)
    time.sleep(0.6)
    seen = job.progress
    time.sleep(0.4)
    assert job.progress == seen and not job.alive and not job.done
    wait(lambda: job.progress > seen, job)
    job.stop()


def test_a_worker_that_is_killed_costs_nothing_but_time(quick):
    own = Workers(1)
    job = Job(own, states((5,), steps=600))
    wait(lambda: job.progress > 0.05, job)
    os.kill(own.submit(os.getpid).result(timeout=30), signal.SIGKILL)
    wait(lambda: job.done, job)
    state = job.states["baseline", 5]
    assert job.error is None and job.rows["baseline", 5] == list(train(state.config, state.training, 5))
    own.close()


def test_a_training_that_fails_is_reported_and_stops_its_job(workers):
    broken = states((0,))
    (name, state), *_ = broken.items()
    job = Job(workers, {name: state.__class__(Config(n_heads=2, d_model=16), state.training, state.machine, model={})})
    wait(lambda: job.done, job)
    assert isinstance(job.error, RuntimeError)
    good = Job(workers, states((1,)))  # and nobody else is any the worse
    wait(lambda: good.done, good)
    assert good.error is None


def test_divergence_is_a_result(workers):
    job = Job(workers, states((0,), learning_rate=10.0, optimiser="sgd", clip=0.0, steps=300, warmup=0, name="reverse"))
    wait(lambda: job.done, job)
    row = job.rows["baseline", 0][-1]
    assert row.note == f"diverged at step {row.step}" and job.error is None


def test_workers_have_one_thread_and_a_core_each(workers):
    import torch

    assert workers.submit(torch.get_num_threads).result(timeout=30) == 1
    if hasattr(os, "sched_getaffinity") and os.cpu_count() > 1:
        assert len(workers.submit(os.sched_getaffinity, 0).result(timeout=30)) == 1


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = (
        "import os, sys, time\nfrom core.jobs import Workers\n"
        "if __name__ == '__main__':\n    w = Workers(1)\n    print(w.submit(os.getpid).result(), flush=True)\n    time.sleep(60)\n"
    )
    path = tmp_path / "parent.py"
    path.write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, str(path)], cwd=ROOT, stdout=subprocess.PIPE, env=environment)
    worker = int(parent.stdout.readline())
    assert psutil.pid_exists(worker)
    parent.kill()
    parent.wait()
    wait(lambda: not psutil.pid_exists(worker), seconds=20)


@pytest.mark.parametrize("text, count", [("3", 3), ("0", None), ("many", None), ("", None)])
def test_the_number_of_workers_can_be_set(monkeypatch, text, count):
    monkeypatch.setenv("ABLATION_WORKERS", text)
    assert worker_count() == (count or min(2, os.cpu_count()))
