"""Trainings in worker processes, chunk by chunk: shared fairly between users, stopped at once, none left behind.

A worker holds nothing between two chunks (core.train.chunk): jobs that somebody waits for take turns, chunk by chunk, and
the same training that two ask for is trained once, for both; a job that nobody looks at any more gets none, and a worker that is killed costs the chunk in hand, which runs again.
What has been trained to the end is kept for a while: a class that opens one link trains once.
"""

import os
import pickle
import signal
import statistics
import sys
import threading
import time
import types
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from multiprocessing.context import SpawnContext, SpawnProcess

import torch

from core.settings.device import Machine
from core.settings.ending import at_end
from core.settings.environment import whole_number
from core.settings.memory import Shelf
from core.settings.process import device_name, versions
from core.tasks import task
from core.train import budget, stack
from core.train.run import Row, State, chunk, start
from core.train.settings import Training
from core.workers import pulse
from core.workers.pulse import Pulse

CHUNK = 0.4  # seconds of training before a worker is free for somebody else
FIRST = 0.05  # of the first chunk of a training: its first point is to be seen at once
TICK = 0.5  # seconds between two signs of life of a worker
UNANSWERED = "A worker has not answered for"
NICE = 15  # how far workers stand back for other processes, of 19
RECENT = 30.0  # seconds of the clock from which it is told how fast a job goes
BROKEN = 5  # times in a row that the workers of a job may be killed before it is given up
PATIENCE = 5.0  # seconds after which a job that nobody asked about is taken for abandoned


def worker_count() -> int:
    """How many workers: ABLATION_WORKERS, or one per core up to two; each needs about 250 MB."""
    return whole_number("ABLATION_WORKERS", min(2, os.cpu_count() or 1))


def _begin(started, ticks, parent: int):
    """In a new worker: it says who it is; one thread on a core of its own, where the system allows it, and an end when the parent ends.

    Whoever moves a slider goes first: the server, and a browser on the same machine, take what they need.
    """
    if hasattr(os, "nice"):
        os.nice(whole_number("ABLATION_NICE", NICE, least=0))
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the parent decides
    with started.get_lock():
        number = started[:].index(0)
        started[number] = os.getpid()
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})
    threading.Thread(target=_live_with, args=(parent, ticks, number), daemon=True).start()


def _live_with(parent: int, ticks, number: int):
    """It shows that it lives for as long as its parent does. A parent that is killed cannot tell its workers. (Linux could, but
    ties them to a thread of it, not to itself.)"""
    while os.getppid() == parent:
        ticks[number] += 1
        time.sleep(TICK)
    os._exit(0)


def _ready(seconds: float) -> int:
    """Keeps a worker busy until its fellows have started too. -> its process id"""
    time.sleep(seconds)
    return os.getpid()


def _chunk(packed: bytes, seconds: float) -> bytes:
    """A chunk of one training, or of several stacked, in a worker.

    Bytes, because a pool would send every tensor through a file of its own: 70 ms a trip.
    """
    torch.set_num_threads(1)  # of this thread: what runs calls in threads has others than that in which a worker began
    states = pickle.loads(packed)
    return pickle.dumps([chunk(states[0], seconds)] if len(states) == 1 else stack.chunk(states, seconds))


class _Apart(SpawnProcess):
    """A new process that does not run the script of its parent.

    multiprocessing has each new process run again what is `__main__` at that moment; under Streamlit that is the page
    that somebody looks at, or in its tests a file that is gone by then.
    """

    @staticmethod
    def _Popen(process):
        with _apart:
            script, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process)
            finally:
                sys.modules["__main__"] = script


class _Spawning(SpawnContext):
    Process = _Apart


_apart = threading.Lock()


class WorkersKilled(RuntimeError):
    """A training whose worker processes end again and again before they have done anything."""


class Workers:
    """A pool of spawned processes, and the jobs that share it: as many at a time as there are workers, then in turn."""

    def __init__(self, count: int | None = None):
        self.count = count or worker_count()
        self.jobs: list[Job] = []  # in the order in which they get workers
        self.lock = threading.RLock()
        self.paces: deque[float] = deque([1.0], maxlen=25)  # of the last chunks; see pace
        self.kept = Shelf(32 << 20)  # (config, training, machine) -> rows, State: finished, or as far as it came
        self.news: deque[str] = deque()  # sentences for whoever waits, to be taken out when they are shown
        self.ready = False  # whether anything has been trained here for long enough to tell how fast it goes
        self._pool: ProcessPoolExecutor | None = None
        self._started = None  # in memory that the workers share: the numbers of those processes that have begun
        self._ticks = None  # likewise, what each counts while it lives, however long its chunk takes
        self._pulse, self._told = Pulse(), set()  # who is silent; of whom that has been said
        self.silence = ""  # what is to be said of a worker that hangs, or nothing
        self._closed = False
        self._ended: ProcessPoolExecutor | None = None
        _all.add(self)

    @property
    def pace(self) -> float:
        """Seconds that trainings take here per second that core.train.budget expects: the median of late."""
        return statistics.median(self.paces)

    @property
    def best_pace(self) -> float:
        """The least of late: what may be refused should not depend on who else is at work in this minute."""
        return min(self.paces)

    @property
    def pace_span(self) -> tuple[float, float]:
        """The best and the worst of late, without a tenth at either end: what may be promised goes from one to the other."""
        found = sorted(self.paces)
        out = len(found) // 10
        return found[out], found[-1 - out]

    def known(self, states) -> int:
        """How many of these trainings somebody has done already."""
        found = (self.kept.peek(_key(state)) for state in states)
        return sum(bool(each) and each[1].done for each in found)

    def warm(self):
        """Start all workers now, so that the first user does not wait for torch to load; and see how fast they are."""
        probe = start(task["copy"].config(), Training(task="copy"), 0)
        with suppress(CancelledError):  # this process ends before it has begun
            for _ in range(self.count):
                self.submit(_ready, 0.1)
                self.train([probe], 0.1).add_done_callback(self._probed)

    def require(self, machine: Machine):
        """Take note that trainings will need this machine. Raises ConfigError where it will never be had."""
        machine.check_here()

    def look(self) -> str:
        """See who is there to train -> why nobody is, in a few words, or "". To be called now and then."""
        with self.lock:
            self._watch()
        return ""

    def _watch(self):
        """Say of a worker that hangs that it does, and replace it after a while: with its pool, which ends where one is gone."""
        if not self._pool:
            return
        begun = [number for number in self._started.get_obj() if number]
        silent = self._pulse.look(dict(zip(begun, self._ticks)))
        if self._note(silent):
            self._kill()

    def _note(self, silent: dict) -> list:
        """Tell who is silent -> those that have been for too long"""
        longest = max(silent.values(), default=0.0)
        self.silence = (
            "" if longest < pulse.SAID else f"{UNANSWERED} {longest:.0f} s; it is replaced after {pulse.HUNG:.0f} s."
        )
        self._told &= {who for who, seconds in silent.items() if seconds >= pulse.SAID}
        for who in [who for who, seconds in silent.items() if seconds >= pulse.SAID and who not in self._told]:
            self._told.add(who)
            self.news.append(self.silence)
        hung = [who for who, seconds in silent.items() if seconds >= pulse.HUNG]
        if hung:
            self.silence, self._pulse, self._told = "", Pulse(), set()
            self.news.append("A worker that did not answer has been replaced; what it had in hand is trained anew.")
        return hung

    def versions(self) -> dict[str, str]:
        """What trains here: torch, numpy, python, code."""
        return versions()

    def place_of(self, machine: Machine) -> str:
        """The device on which it would be trained: cuda, mps or cpu."""
        return machine.place

    def device_name(self, machine: Machine) -> str:
        """That device in words."""
        return device_name(machine)

    def train(self, states: list[State], seconds: float) -> Future:
        """Train for about so long in a worker -> future of pickled [(State, rows), …]"""
        return self.submit(_chunk, pickle.dumps(states), seconds)

    def _probed(self, future: Future):
        """A worker has trained for the first time, which takes longer: again, and now it counts."""
        if not future.cancelled() and not future.exception():
            state, _ = pickle.loads(future.result())[0]
            again = lambda future: self.learn([state], [pickle.loads(future.result())[0][0]])  # noqa: E731
            with suppress(CancelledError):
                self.train([state], 0.1).add_done_callback(again)

    def learn(self, before: list[State], after: list[State]):
        """Take note of how long a chunk took, measured where it ran."""
        self.ready = self.ready or bool(before[0].step) or any(state.done for state in after)
        if not before[0].step:  # the first one also loads and draws
            return
        shares = [(now.step - was.step) / was.training.steps for was, now in zip(before, after)]
        expected = sum(share * budget.seconds(was.config, was.training) for share, was in zip(shares, before))
        if expected:
            self.paces.append((after[0].seconds - before[0].seconds) / expected)

    def submit(self, call: Callable, *given) -> Future:
        """Run a call in a worker; a pool that broke is replaced first. Raises CancelledError where no more is done."""
        with self.lock:
            if self._closed:
                raise CancelledError("the workers have been ended")
            if self._pool is None:
                context = _Spawning()
                self._started = context.Array("i", self.count)
                self._ticks = context.Array("d", self.count, lock=False)
                shared = self._started, self._ticks, os.getpid()
                self._pool = ProcessPoolExecutor(self.count, context, _begin, shared)
            try:
                return self._pool.submit(call, *given)
            except BrokenProcessPool:
                self._pool = None
                return self.submit(call, *given)
            except RuntimeError as error:  # Python has ended all pools, because it is about to end itself
                raise CancelledError from error

    def queue(self, job: "Job"):
        """To the end of the queue; before those in the background if it is none of them. Called under the lock."""
        self.jobs.append(job)
        self.jobs.sort(key=lambda each: each.background)

    def place(self, job: "Job") -> int:
        """How many jobs go before this one gets a worker; 0 while it has its share: those that are looked at take turns."""
        with self.lock:
            if not job.background and self.count:
                return 0
            living = [each for each in self.jobs if each is job or each.alive]
            return max(0, living.index(job) - self.count + 1) if job in living else 0

    def beside(self) -> int:
        """How many jobs that are looked at take turns, where there are more than workers; else 0."""
        with self.lock:
            many = sum(each.alive and not each.background for each in self.jobs)
            return many if many > self.count else 0

    def part(self, job: "Job") -> float:
        """How many workers a job has on average, as things are."""
        many = 0 if job.background else self.beside()
        return self.count / many if many else max(1, self.share(job))

    def rotate(self, job: "Job"):
        """It has had its chunk: the next one is another's turn. Those in the background are trained one after the other."""
        if not job.background and job in self.jobs:
            self.jobs.remove(job)
            self.queue(job)

    def under_way(self) -> set:
        """What is being trained now, for whichever job."""
        return {key for job in self.jobs for key in job.under_way()}

    def share(self, job: "Job", idle: int = 0) -> int:
        """How many chunks of a job may be under way now. idle: how many before it have nothing to train at the moment."""
        with self.lock:
            self._leave()
            if job not in self.jobs[: self.count + idle]:
                return 0
            return max(1, self.count // min(self.count, len(self.jobs))) if self.count else 0

    def _leave(self):
        """Those that nobody asks about any more."""
        for each in self.jobs:
            if not each.alive:
                each.put_aside()
        self.jobs = [each for each in self.jobs if each.alive]

    def turn(self):
        """Give every job that is due its chunks; who has nothing to train now, as another does it, leaves its turn to the next."""
        with self.lock:
            self._watch()
            self._leave()
            idle = 0
            for job in list(self.jobs):
                idle += not job.fill(idle)

    def close(self):
        """End all workers now, and for good. They are killed: they hold nothing, and one that has yet to load torch, or hangs,
        would be waited for.
        """
        with self.lock:
            self._closed = True
            for job in list(self.jobs):
                job.stop()
            if self._pool:
                self._kill()
                self._pool.shutdown(wait=False, cancel_futures=True)
            # Kept: its processes would complain if what they share with it went before them.
            self._ended, self._pool = self._pool or self._ended, None

    def _kill(self):
        """All processes of the pool: where one is gone, the pool ends the others anyway, but waits for those that hang.

        A result that is half sent would be waited for as long as anybody could send the rest, and this process itself could.
        """
        for each in list((self._pool._processes or {}).values()):
            each.kill()
        self._pool._result_queue._writer.close()


_all: "weakref.WeakSet[Workers]" = weakref.WeakSet()


def _close_all():
    """Else Python would wait until each worker has loaded torch, and has then heard that it may go."""
    for each in list(_all):
        manager = each._pool and each._pool._executor_manager_thread
        each.close()
        if manager:
            manager.join(1.0)  # or Python would wake it while it closes what it is woken with


at_end(_close_all)


class Job:
    """Several trainings of one user: {name: State before the first chunk}. Goes on for as long as somebody asks.

    background: it takes what workers the others leave it; nobody is looking at it.
    rows: {name: the rows so far}; states: {name: the last State}. Names are anything hashable, such as (variant, seed).
    """

    def __init__(self, workers: Workers, states: dict[Hashable, State], background: bool = False):
        self.workers, self.states, self.background = workers, dict(states), background
        self.rows: dict[Hashable, list[Row]] = {name: [] for name in states}
        self.stopped, self.error = False, None
        self.trained = 0  # steps so far
        self.busy = 0.0  # seconds of workers' time, without that of first chunks
        self.timed = 0  # steps in that time
        self.known = 0  # trainings that somebody had done already
        self._course: deque[tuple[float, int]] = deque()  # when chunks came back, and the steps timed by then, of late
        self._broken = 0  # times that its workers were killed, since the last chunk that came back
        self._keys = {name: _key(state) for name, state in states.items()}
        self._flying: dict[tuple, Future] = {}  # names that are trained together -> their chunk
        self._asked = time.monotonic()
        with workers.lock:
            workers.queue(self)
            self._adopt()
        workers.turn()

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return self.stopped or self.error is not None or all(state.done for state in self.states.values())

    @property
    def alive(self) -> bool:
        """Whether it still wants workers: not done, and somebody has asked lately."""
        return not self.done and time.monotonic() - self._asked < PATIENCE

    @property
    def progress(self) -> float:
        """The share of all steps that are done, 0 to 1."""
        total = sum(state.training.steps for state in self.states.values())
        return sum(state.training.steps if state.done else state.step for state in self.states.values()) / max(1, total)

    def seconds_left(self) -> float | None:
        """An estimate from what a step took so far; None before the second chunk.

        By the clock of late, once there is some: that holds the way of a chunk to a worker and back, and whoever else is at
        work on this machine. Until then from the workers' own time, with the present share of them. The last training to end
        has one worker to itself. Not from progress, which leaps where a training diverges or is taken over from somebody else.
        """
        steps = [state.training.steps - state.step for state in self.states.values() if not state.done]
        if not self.timed:
            return None
        part = self.workers.part(self)
        each = self._by_the_clock() or self.busy / self.timed / part  # seconds from one step of all to the next
        return each * max(sum(steps), part * max(steps, default=0))

    def _by_the_clock(self) -> float | None:
        """Seconds from one step to the next, over the last RECENT seconds; None where too little has come back."""
        course = self._course
        if len(course) < 2 * self.workers.count + 1 or course[-1][1] == course[0][1]:
            return None
        return (course[-1][0] - course[0][0]) / (course[-1][1] - course[0][1])

    def poll(self) -> "Job":
        """To be called again and again by whoever waits for it: keeps it alive, and brings back what was abandoned."""
        self._asked = time.monotonic()
        with self.workers.lock:
            if not self.done and self not in self.workers.jobs:
                self._course.clear()  # while it stood still, no step was slow
                self.workers.queue(self)
        self.workers.turn()
        return self

    def stop(self):
        """No more chunks; those under way end within CHUNK seconds and are thrown away."""
        with self.workers.lock:
            self.stopped = True
            flying, self._flying = self._flying, {}
            for future in flying.values():
                future.cancel()
            self.workers.jobs = [each for each in self.workers.jobs if each is not self]
            self.put_aside()
        self.workers.turn()

    def resume(self):
        """Go on where it was stopped."""
        self.stopped = False
        self.poll()

    def _adopt(self):
        """Take over what was trained meanwhile, here or for somebody else: to the end, or at the start as far as it came."""
        for name, state in self.states.items():
            found = None if state.done else self.workers.kept.peek(self._keys[name])
            if found and (found[1].done or state.step == 0 < found[1].step):
                self._take(name, *found)

    def _take(self, name, rows, state: State):
        self.rows[name], self.states[name] = list(rows), state
        self._flying = {names: chunk for names, chunk in self._flying.items() if name not in names}
        self.known += state.done

    def share_in(self, key, rows: list[Row], state: State):
        """Somebody else has trained what this job trains, too, and has come further. Called under the lock."""
        for name, mine in self._keys.items():
            if mine == key and not self.states[name].done and (state.done or state.step > self.states[name].step):
                self._take(name, rows, state)

    def under_way(self) -> set:
        return {self._keys[name] for names in self._flying for name in names}

    def put_aside(self):
        """Keep what is trained in part, for whoever starts the same again: after a reload it goes on from there."""
        for name, state in self.states.items():
            further = self.workers.kept.peek(self._keys[name])
            if state.step and not state.done and not (further and (further[1].done or further[1].step > state.step)):
                self._put(name)

    def fill(self, idle: int = 0) -> bool:
        """Submit chunks of those trainings that lie farthest behind, up to the job's share, but none that somebody trains
        already -> whether anything of it is under way, or waits for its turn. Called under the lock.
        """
        self._adopt()
        share = self.workers.share(self, idle)
        for _ in range(share - len(self._flying)):
            flying = self.workers.under_way()
            waiting = [n for n, state in self.states.items() if not state.done and self._keys[n] not in flying]
            if not waiting or self.done:
                break
            names = self._together(waiting)
            states = [self.states[name] for name in names]
            try:
                future = self.workers.train(states, CHUNK if states[0].step else FIRST)
            except CancelledError:
                break
            self._flying[names] = future
            future.add_done_callback(lambda future, names=names: self._landed(names, future))
        return bool(self._flying) or not share

    def _together(self, waiting) -> tuple:
        """Who goes next: the one that lies farthest behind; on a GPU with all that can be stacked with it."""
        first = min(waiting, key=lambda each: self.states[each].step / self.states[each].training.steps)
        if self.workers.place_of(self.states[first].machine) == "cpu":  # where stacking gains nothing
            return (first,)
        others = [
            n
            for n in waiting
            if self._keys[n] != self._keys[first] and stack.can_stack([self.states[first], self.states[n]])
        ]
        return (first, *others)

    def _landed(self, names, future: Future):
        with self.workers.lock:
            if self._flying.get(names) is not future:
                return  # stopped meanwhile
            del self._flying[names]
            try:
                before, found = [self.states[name] for name in names], pickle.loads(future.result())
                for name, (state, rows) in zip(names, found):
                    self.states[name] = state
                    self.rows[name] += rows
                    if state.done:
                        self._keep(name)
                    for other in self.workers.jobs:
                        if other is not self:
                            other.share_in(self._keys[name], self.rows[name], self.states[name])
                self.trained += (trained := sum(state.step - was.step for was, (state, _) in zip(before, found)))
                if before[0].step:  # the first chunk also loads and draws
                    self.busy += found[0][0].seconds - before[0].seconds  # where it ran, without waiting for its turn
                    self.timed += trained
                    self._mark()
                self.workers.learn(before, [state for state, _ in found])
                self._broken = 0
            except (BrokenProcessPool, CancelledError):  # a worker was killed: its chunk runs again
                self._broken += 1
                if self._broken == BROKEN:
                    self.error = WorkersKilled(
                        f"its workers were killed {BROKEN} times in a row; is there enough memory?"
                    )
            except Exception as error:
                self.error = error
            self.workers.rotate(self)
        self.workers.turn()

    def _mark(self):
        """Take note of how far it is now."""
        self._course.append((time.monotonic(), self.timed))
        while self._course[-1][0] - self._course[0][0] > RECENT:
            self._course.popleft()

    def _keep(self, name):
        """Put what is trained to the end where others find it; only its model is needed from now on."""
        self.states[name] = replace(self.states[name], optimiser=None, data=None, dropout=None)
        self._put(name)

    def _put(self, name):
        state, rows = self.states[name], tuple(self.rows[name])
        models = 1 if state.optimiser is None else 3  # Adam keeps two numbers for each weight
        size = models * sum(tensor.nbytes for tensor in (state.model or {}).values()) + 200 * len(rows)
        self.workers.kept.put(self._keys[name], (rows, state), size)


def _key(state: State):
    return state.config, state.training, state.machine
