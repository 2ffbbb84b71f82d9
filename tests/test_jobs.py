"""Trainings in worker processes: the same numbers, shared fairly, stopped at once, none lost with a worker, none left behind."""

import multiprocessing.connection
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections import deque
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from core.model.config import Config
from core.settings.cache import LRUCache
from core.settings.device import Machine
from core.tasks import task
from core.train.run import Row, start, train
from core.train.settings import Training
from core.workers import job as jobs
from core.workers import pace, pool, pulse
from core.workers.job import Job
from core.workers.pool import ProcessPool, worker_count

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1}


@pytest.fixture(scope="module")
def workers():
    made = ProcessPool(2)
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


def still_running(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Which of them have not ended after so long. One that has ended stands in the list of processes until whoever took it over asks
    how: where that is the first process of a container, it may never do so."""
    _, left = psutil.wait_procs(processes, timeout=seconds)
    return [each for each in left if not _ended(each)]


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


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
    assert workers.position(one) == workers.position(two) == 0
    wait(lambda: one.done and two.done, one, two)
    for job in (one, two):
        for (_, seed), rows in job.rows.items():
            state = job.states["baseline", seed]
            assert rows == list(train(state.config, state.training, seed))


def test_jobs_take_turns_chunk_by_chunk_and_none_waits_for_another_to_end(workers, quick):
    given = [Job(workers, endless((seed,))) for seed in (31, 32, 33, 34, 35)]
    assert [workers.position(job) for job in given] == [0] * 5 and workers.beside() == 5
    wait(lambda: all(job.course.seconds > 0.2 for job in given), *given)
    times = [job.course.seconds for job in given]
    assert max(times) < 4 * min(times) and workers.part(given[0]) == 2 / 5
    last = Job(workers, states((36,)))
    wait(lambda: last.done, last, *given)
    assert last.error is None and finished(last, ("baseline", 36))
    for job in given:
        job.stop()


def test_with_one_worker_everybody_gets_a_turn(quick):
    own = ProcessPool(1)
    given = [Job(own, endless((seed,))) for seed in (41, 42, 43)]
    wait(lambda: all(job.progress > 0 for job in given), *given)
    behind = Job(own, endless((44,)), background=True)
    assert [own.position(job) for job in (*given, behind)] == [0, 0, 0, 3]
    seen = [job.trained for job in given]
    wait(lambda: all(job.trained > before for job, before in zip(given, seen)), *given, behind)
    assert behind.trained == 0  # they leave it nothing
    own.close()


@pytest.mark.parametrize("many", [1, 2])
def test_the_same_training_that_two_ask_for_at_the_same_time_is_trained_once(quick, many):
    own, given = ProcessPool(many), states((0, 1), steps=200, batch=18)
    one, two = Job(own, given), Job(own, {("other", state.seed): state for state in given.values()})
    wait(lambda: one.progress > 0.3, one, two)
    assert two.progress > 0  # and both see how it grows
    wait(lambda: one.done and two.done, one, two)
    assert one.trained + two.trained == 400 and all(finished(one, name) for name in given)
    assert list(one.rows.values()) == list(two.rows.values())
    own.close()


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
    own = ProcessPool(1)
    job = Job(own, states((5,), steps=600))
    wait(lambda: job.progress > 0.05, job)
    os.kill(own.submit(os.getpid).result(timeout=30), signal.SIGKILL)
    wait(lambda: job.done, job)
    state = job.states["baseline", 5]
    assert job.error is None and job.rows["baseline", 5] == list(train(state.config, state.training, 5))
    own.close()


def test_a_worker_that_hangs_is_said_and_replaced_and_its_chunk_is_trained_anew(quick, monkeypatch):
    monkeypatch.setattr(pulse, "SAID", 2.0)
    monkeypatch.setattr(pulse, "HUNG", 6.0)
    own = ProcessPool(2)
    given = [Job(own, states((seed,), steps=2000, batch=19)) for seed in (0, 1)]
    wait(lambda: all(job.progress > 0.02 for job in given), *given)
    assert not own.silence and not own.news
    hung = [number for number in own._started[:] if number]
    os.kill(hung[0], signal.SIGSTOP)
    wait(lambda: own.silence, *given)
    assert own.silence.startswith("A worker has not answered for ") and "replaced after 6 s" in own.silence
    wait(lambda: not psutil.pid_exists(hung[0]), *given)
    wait(lambda: all(job.done for job in given), *given, seconds=120)
    assert [words[:29] for words in own.news] == ["A worker has not answered for", "A worker that did not answer "]
    assert not own.silence and all(job.error is None and finished(job, ("baseline", n)) for n, job in enumerate(given))
    own.close()


def _cut_short(number: int):
    """In a worker: its result is half sent when it is stopped, or killed."""

    def half(connection, buf):
        os.write(connection.fileno(), bytes(buf)[: len(buf) // 2])
        os.kill(os.getpid(), number)

    multiprocessing.connection.Connection._send = half


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_worker_that_hangs_or_is_killed_while_it_sends_does_not_hold_up_the_others(quick, monkeypatch, number):
    monkeypatch.setattr(pulse, "SAID", 1.0)
    monkeypatch.setattr(pulse, "HUNG", 3.0)
    own = ProcessPool(2)
    job = Job(own, states((0,), steps=600, batch=17))
    wait(lambda: job.progress > 0.02, job)
    pool = own._pool
    before = list(pool._processes.values())
    half_sent = own.submit(_cut_short, number)
    wait(lambda: job.done, job)
    wait(half_sent.done)
    assert isinstance(half_sent.exception(), BrokenProcessPool)
    assert job.error is None and finished(job, ("baseline", 0))
    wait(lambda: not any(psutil.pid_exists(each.pid) for each in before))
    own.close()


def test_a_worker_that_is_only_slow_or_of_a_parent_that_stood_still_is_not_taken_for_hung(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(pulse.time, "monotonic", lambda: now[0])
    seen = pulse.Pulse()
    assert seen.look({1: 0.0}) == {1: 0.0}
    now[0] = 1000.0  # whoever looks was asleep, and so may the worker have been
    assert seen.look({1: 0.0}) == {1: 1.0}
    for count in range(100):  # one chunk that takes very long
        now[0] += 0.9
        assert max(seen.look({1: float(count // 4)}).values()) < pulse.SAID
    assert seen.look({}) == {}


def test_who_is_silent_is_said_once_until_it_answers_again(monkeypatch):
    now, news = [0.0], deque()
    monkeypatch.setattr(pulse.time, "monotonic", lambda: now[0])
    seen = pulse.Silence(news, "The worker {who}", "The worker {who} is gone", outlook="it is given up")

    def looks(many: int, count: int = 0) -> set:
        for _ in range(many):
            now[0] += 1.0
            hung = seen.look({"a": count, "b": now[0]})
        return hung

    unanswered = "has not answered for 5 s; it is given up after 30 s."
    assert looks(5) == set() and not seen.sentence and not news  # the first look only begins to count
    assert (
        looks(1) == set() and seen.sentence == f"A worker {unanswered}" and list(news) == [f"The worker a {unanswered}"]
    )
    assert looks(24) == set() and len(news) == 1
    assert looks(2) == {"a"} and list(news)[1:] == ["The worker a is gone; what it had in hand is trained anew."]
    assert looks(1, count=1) == set() and not seen.sentence
    looks(5, count=1)
    assert len(news) == 3 and news[2] == news[0]


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
    assert workers.submit(torch.get_num_threads).result(timeout=30) == 1
    if hasattr(os, "sched_getaffinity") and os.cpu_count() > 1:
        assert len(workers.submit(os.sched_getaffinity, 0).result(timeout=30)) == 1


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = (
        "import os, sys, time\nfrom core.workers.pool import ProcessPool\n"
        "if __name__ == '__main__':\n    w = ProcessPool(1)\n    print(w.submit(os.getpid).result(), flush=True)\n    time.sleep(60)\n"
    )
    path = tmp_path / "parent.py"
    path.write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, str(path)], cwd=ROOT, stdout=subprocess.PIPE, env=environment)
    worker = int(parent.stdout.readline())
    process = psutil.Process(worker)
    parent.kill()
    parent.wait()
    assert not still_running([process], 20)


def test_workers_do_not_run_the_script_of_their_parent(monkeypatch, tmp_path):
    """Under Streamlit `__main__` is the page that somebody looks at: an import of it in a worker would run it, and end where it fails."""
    page = types.ModuleType("__main__")
    page.__file__ = str(tmp_path / "page.py")
    Path(page.__file__).write_text("raise SystemExit('a page was run in a worker')")
    monkeypatch.setitem(sys.modules, "__main__", page)
    made = ProcessPool(2)
    try:
        for _ in range(2):  # the second starts when the first is busy
            assert made.submit(_main_file).result(timeout=60) is None
        assert sys.modules["__main__"] is page
    finally:
        made.close()


def _main_file():
    return getattr(sys.modules.get("__mp_main__"), "__file__", None)


@pytest.mark.parametrize("text, count", [("3", 3), ("0", None), ("many", None), ("", None)])
def test_the_number_of_workers_can_be_set(monkeypatch, text, count):
    monkeypatch.setenv("ABLATION_WORKERS", text)
    assert worker_count() == (count or min(2, os.cpu_count()))


# What has been trained once


def finished(job, name):
    """The state of a training that is done, and its rows, as they would be if it had been trained here in one piece."""
    state = job.states[name]
    return job.rows[name] == list(train(state.config, state.training, state.seed))


def test_what_somebody_has_trained_is_there_at_once_for_the_next(workers, quick):
    given = states((0, 1), steps=30, batch=5)
    first = Job(workers, given)
    wait(lambda: first.done, first)
    assert first.known == 0 and first.trained == 60
    second = Job(workers, {("another name", state.seed): state for state in given.values()})
    assert second.done and second.known == 2 and second.progress == 1
    assert second.course.seconds == second.trained == 0 and second.seconds_left() is None
    for (_, seed), rows in second.rows.items():
        assert rows == first.rows["baseline", seed]
        assert second.states["another name", seed] is first.states["baseline", seed]
    second.rows["another name", 0].clear()  # and a visitor's rows are that visitor's own
    assert Job(workers, given).rows["baseline", 0] == first.rows["baseline", 0] != []


def test_only_the_very_same_training_is_taken_over(workers, quick):
    given = states((0,), steps=20, batch=6)
    first = Job(workers, given)
    wait(lambda: first.done, first)
    ((name, state),) = given.items()
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
    assert not any(job.states[name].step for name in others if name != "same")
    wait(lambda: job.done, job)
    assert job.known == 1 and all(finished(job, name) for name in others if name != "machine")


def test_who_waits_is_served_by_what_another_finishes(workers, quick):
    given = states((0, 1), steps=40, batch=7)
    ahead, beside = Job(workers, endless((8,))), Job(workers, given)
    waiting = Job(workers, given)
    wait(lambda: beside.done, ahead, beside, waiting)
    wait(lambda: waiting.done, ahead, waiting)
    assert waiting.trained + beside.trained == 80 and waiting.rows == beside.rows
    ahead.stop()


def test_who_waits_need_not_get_a_worker_for_that(workers, quick):
    ahead = [Job(workers, endless((seed,))) for seed in (21, 22)]
    ((name, state),) = (given := states((0,), steps=25, batch=14)).items()
    waiting = Job(workers, given, background=True)
    assert workers.position(waiting) == 1 and waiting.poll().progress == 0
    rows = tuple(train(state.config, state.training, 0))
    workers.kept.get(jobs.key_of(state), lambda: ((rows, replace(state, step=25)), 1000))
    assert waiting.poll().done and waiting.rows[name] == list(rows) and waiting.trained == 0
    for job in ahead:
        job.stop()


def test_what_another_finishes_first_is_taken_over_in_the_middle(workers, quick):
    given = states((0,), steps=400, batch=9)
    ((name, state),) = given.items()
    job = Job(workers, given)
    wait(lambda: job.states[name].step > 20, job)
    job.stop()
    workers.kept.put(jobs.key_of(state), ((Row(1, 2.0, 0.5, 1.0, 0.1, 0.01),), replace(state, step=400)), 1000)
    job.resume()
    assert job.done and job.known == 1 and len(job.rows[name]) == 1  # all of the rows, not added to those there were


def test_a_run_that_diverged_is_kept_too(workers, quick):
    given = states((0,), learning_rate=11.0, optimiser="sgd", steps=300, warmup=0, name="reverse")
    first = Job(workers, given)
    wait(lambda: first.done, first)
    second = Job(workers, given)
    assert second.done and repr(second.rows) == repr(first.rows) and second.rows["baseline", 0][-1].note


def test_the_cache_of_what_is_finished_is_bounded(workers, quick, monkeypatch):
    one = Job(workers, states((50,), steps=3))
    wait(lambda: one.done, one)
    ((_, state),) = one.states.items()
    size = sum(each.nbytes for each in state.model.values()) + jobs.ROW * 3
    monkeypatch.setattr(workers, "kept", LRUCache(3 * size / 2**20))
    given = states(range(60, 66), steps=3)
    job = Job(workers, given)
    wait(lambda: job.done, job)
    kept = [each for each in given.values() if workers.kept.peek(jobs.key_of(each))]
    assert len(kept) == 3 and workers.kept._bytes <= 3 * size
    known = [workers.finished(jobs.key_of(each)) for each in given.values()]
    assert sorted(state is None for _, state in known) == [False] * 3 + [True] * 3  # the rows of all are still there
    assert [list(rows) for rows, _ in known] == list(job.rows.values())
    again = Job(workers, given)  # what was thrown away is trained again, to the same rows
    wait(lambda: again.done, again)
    assert again.rows == job.rows and again.known < 6
    assert all(each.optimiser is None and each.data is None for each in again.states.values())


# Stopped, and on


def test_who_goes_on_after_a_stop_gets_the_rows_of_who_never_stopped(workers, quick):
    given = states((0, 1), steps=300, batch=10, name="reverse")
    job = Job(workers, given)
    for share in (0.1, 0.3, 0.6):
        wait(lambda share=share: job.progress > share, job)
        job.stop()
        before = {name: (state.step, len(job.rows[name])) for name, state in job.states.items()}
        assert job.done and not job.alive
        time.sleep(0.1)  # the chunk in hand ends, and is thrown away
        assert before == {name: (state.step, len(job.rows[name])) for name, state in job.states.items()}
        job.resume()
        assert not job.done
        assert all(state.step >= before[name][0] for name, state in job.states.items())
    wait(lambda: job.done, job)
    assert job.error is None and job.progress == 1
    assert all(finished(job, name) for name in given)
    assert job.trained == 600  # no step was counted twice


def test_who_goes_on_has_lost_the_place_in_the_line_and_nothing_else(workers, quick):
    first, second, third = (Job(workers, endless((seed,)), background=True) for seed in (11, 12, 13))
    wait(lambda: first.progress > 0 and second.progress > 0, first, second, third)
    first.stop()
    first.resume()
    assert [workers.position(job) for job in (second, third, first)] == [0, 0, 1]
    for job in (first, second, third):
        job.stop()


# Estimates


def test_the_time_left_comes_from_the_steps_that_were_trained_here(workers, quick):
    known = Job(workers, states((0,), steps=1000, batch=2))
    wait(lambda: known.done, known)
    job = Job(workers, states((0, 1), steps=1000, batch=2))
    assert job.known == 1 and job.progress == 0.5
    assert job.seconds_left() is None  # though half is done, nothing is known of how fast
    wait(lambda: job.states["baseline", 1].step > 100, job)
    job.stop()
    state = job.states["baseline", 1]
    assert (
        job.trained == state.step > job.course.steps > 0 and 0 < job.course.seconds < state.seconds
    )  # all but the first chunk
    (begun, before), (ended, after) = job.course.marks[0], job.course.marks[-1]
    assert after == job.course.steps  # with few chunks the workers' own time tells, with more the clock
    by_the_clock = len(job.course.marks) > 2 * workers.count
    each = (ended - begun) / (after - before) if by_the_clock else job.course.seconds / job.course.steps
    assert job.seconds_left() == pytest.approx(each * (1000 - state.step))


def idle_job(count: int, seeds, step: int) -> Job:
    """Two workers' job of which nothing ever comes back, so many steps of each training done."""
    idle = ProcessPool(count)
    idle.submit = lambda *given: Future()
    job = Job(idle, states(seeds, steps=100, batch=3))
    for name, state in job.states.items():
        job.states[name] = replace(state, step=step)
    return job


def test_the_time_left_goes_by_the_clock_of_late():
    job = idle_job(2, (0, 1, 2), 40)
    job.course.seconds, job.course.steps = 12.0, 120  # a tenth of a second for a step, where it ran
    assert job.seconds_left() == pytest.approx(180 * 0.1 / 2)
    job.course.marks.extend((10.0 + n, 10 * n) for n in range(5))  # and of late ten a second come back
    assert job.seconds_left() == pytest.approx(180 / 10)
    job.stop()


def test_a_training_alone_has_one_worker():
    job = idle_job(2, (0, 1), 40)
    job.course.seconds, job.course.steps = 8.0, 80
    one, two = job.states
    assert job.seconds_left() == pytest.approx(60 * 0.1)  # each of the two on a worker of its own
    job.states[one] = replace(job.states[one], step=100)
    assert job.seconds_left() == pytest.approx(60 * 0.1)  # and the other worker cannot help
    job.stop()


def test_the_clock_forgets_what_is_long_ago(monkeypatch):
    course = pace.Course()
    now = iter([0.0, 1.0, 20.0, 35.0, 50.5])
    monkeypatch.setattr(pace, "time", types.SimpleNamespace(monotonic=lambda: next(now)))
    for _ in range(5):
        course.add(0.1, 1)
    assert list(course.marks) == [(35.0, 4), (50.5, 5)]


def test_what_diverged_leaves_nothing_to_be_trained():
    idle = ProcessPool(1)
    idle.submit = lambda *given: Future()  # nothing ever comes back
    job = Job(idle, states((0, 1), steps=100))
    one, two = job.states
    job.course.seconds, job.course.steps = 2.0, 20
    job.states[one] = replace(job.states[one], step=10, diverged=True)
    job.states[two] = replace(job.states[two], step=10)
    assert job.progress == (100 + 10) / 200
    assert job.seconds_left() == pytest.approx(90 * 2.0 / 20)
    job.stop()


# Failures


def test_a_worker_that_is_killed_costs_its_chunks_and_no_job(quick):
    own = ProcessPool(2)
    given = states((0,), steps=400, batch=11), states((1,), steps=400, batch=12)
    both = [Job(own, each) for each in given]
    wait(lambda: all(job.progress > 0.1 for job in both), *both)
    os.kill(own.submit(os.getpid).result(timeout=30), signal.SIGKILL)
    wait(lambda: all(job.done for job in both), *both)
    for job in both:
        ((name, _),) = job.states.items()
        assert job.error is None and finished(job, name) and job.trained == 400
    own.close()


def test_one_that_fails_stops_its_own_job_and_no_other(workers, quick):
    good = Job(workers, states((0,), steps=200, batch=13))
    ((name, state),) = states((1,), batch=13).items()
    weights = {"embed": torch.zeros(3, 3)}
    bad = Job(workers, {name: replace(state, model=weights), "fine": state})
    wait(lambda: bad.done, bad, good)
    assert isinstance(bad.error, RuntimeError) and "embed" in str(bad.error) and not bad.alive
    assert bad not in [job for job in workers.jobs if job.alive]
    wait(lambda: good.done, good)
    assert good.error is None and finished(good, ("baseline", 0))
    bad.resume()
    assert bad.done and bad.error is not None  # it does not start over


def test_workers_that_are_killed_again_and_again_end_their_job():
    class Fatal(ProcessPool):
        def train(self, states, seconds):
            return self.submit(os._exit, 1)

    made = Fatal(1)
    job = Job(made, states((0,)))
    wait(lambda: job.done, job)
    made.close()
    assert isinstance(job.error, jobs.WorkersKilled) and str(jobs.BROKEN) in str(job.error)
    assert job.rows == {("baseline", 0): []}


def test_chunks_that_are_called_off_again_and_again_are_no_killed_workers(workers):
    class Restless(ProcessPool):
        """A connection that is lost with the first chunks, at once."""

        off = 2 * jobs.BROKEN

        def train(self, states, seconds):
            if not self.off:
                return super().train(states, seconds)
            self.off -= 1
            called_off = Future()
            called_off.cancel()
            return called_off

    made = Restless(1)
    try:
        job = Job(made, states((0,), steps=3, batch=21))
        assert made.off == 2 * jobs.BROKEN - 1  # not one after the other, for as long as none comes through
        wait(lambda: job.done, job)
    finally:
        made.close()
    assert not made.off and job.error is None and finished(job, ("baseline", 0))


def test_what_was_trained_in_part_goes_on_for_whoever_starts_it_again(workers, quick):
    given = states((0,), steps=500, batch=15)
    ((name, state),) = given.items()
    left = Job(workers, given)
    wait(lambda: left.states[name].step > 50, left)
    left.stop()
    at = left.states[name].step
    again = Job(workers, given)
    assert again.states[name].step == at and again.rows[name] == left.rows[name] and again.known == 0
    wait(lambda: again.done, again)
    assert again.trained == 500 - at and finished(again, name)


def test_what_is_abandoned_is_kept_in_part(workers, quick, monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE", 0.2)
    given = states((0,), steps=100_000, batch=16)
    ((name, _),) = given.items()
    left = Job(workers, given)
    wait(lambda: left.states[name].step > 20, left)
    wait(lambda: left not in workers.jobs, Job(workers, states((5,), steps=30, batch=16)))  # and nobody asks for it
    assert Job(workers, given).states[name].step > 20
    for job in list(workers.jobs):
        job.stop()


def test_the_pace_is_the_median_of_late_and_the_best_decides():
    of_late = pace.Pace()
    of_late.recent.extend([1.0, 1.2, 9.0, 1.1, 8.0])
    assert of_late.median == pytest.approx(1.15) and of_late.best == 1.0


def test_what_is_put_aside_does_not_take_the_place_of_what_came_further(workers, quick):
    ((name, state),) = (given := states((0,), steps=400, batch=17)).items()
    behind = Job(workers, given)
    wait(lambda: 0 < behind.states[name].step < 400, behind)
    behind.stop()
    for further in (replace(state, step=399), replace(state, step=400), replace(state, step=1, diverged=True)):
        workers.kept.put(jobs.key_of(state), ((), further), 1)
        behind.put_aside()
        assert workers.kept.peek(jobs.key_of(state))[1] is further
    workers.kept.put(jobs.key_of(state), ((), replace(state, step=1)), 1)
    behind.put_aside()
    assert workers.kept.peek(jobs.key_of(state))[1] is behind.states[name]


def test_a_pool_whose_processes_are_killed_may_tell_so_to_what_was_cancelled(workers, monkeypatch):
    """As its thread does where both come at one moment; it would end with a traceback (seen once in ten Ctrl-Cs)."""
    raised, before = [], set(threading.enumerate())
    monkeypatch.setattr(threading, "excepthook", raised.append)
    first, *others = [workers.submit(time.sleep, 0.5) for _ in range(6)]
    assert others[-1].cancel()
    others[-1].set_exception(BrokenProcessPool("gone"))
    for each in set(threading.enumerate()) - before:  # it is told in a thread of its own
        each.join(5)
    assert others[-1].cancelled() and first.result(20) is None and not raised


def test_a_pool_may_hold_its_lock_while_it_tells_that_it_is_broken(workers):
    """As since Python 3.12; whoever is told hands out the next chunk, for which that lock is needed: all would stand still."""
    future, told = pool._quiet(Future()), threading.Event()
    future.add_done_callback(lambda _: told.set() if workers.submit(os.getpid) else None)
    workers.submit(os.getpid).result(30)
    teller = threading.Thread(target=future.set_exception, args=(BrokenProcessPool("gone"),), daemon=True)
    with workers._pool._shutdown_lock:
        teller.start()
        teller.join(5)
        assert not teller.is_alive()
    assert told.wait(5)
