"""Jobs of users, trainings that jobs share, and the queue that assigns chunks to workers.

A worker keeps nothing between two chunks. The chunk of a killed worker runs again from the last
state, and a training that several users ask for is trained once.
"""

import pickle
import threading
import time
import weakref
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

from core.model.config import Config
from core.settings.cache import LRUCache
from core.settings.device import Machine
from core.settings.process import device_name, versions
from core.train import budget, stack
from core.train.run import Row, State
from core.train.settings import Training

Key = tuple[Config, Training, Machine]  # what determines a training

CHUNK = 0.4  # seconds of training until a worker is free for another job
FIRST = 0.05  # seconds of a training's first chunk: its first point appears at once
KILLS = 5  # times in a row that its worker is killed before a training is given up
ROW = 300  # bytes of a row in memory
PATIENCE = 5.0  # seconds without a poll after which a job gets no more chunks


class WorkersKilledError(RuntimeError):
    """Training whose worker is killed again and again."""


class SharedTraining:
    """Training and its rows so far, shared by all jobs that ask for it."""

    def __init__(self, state: State):
        self.state = state
        self.rows: list[Row] = []  # grows in place: charts keep a reference
        self.is_running = False
        self.seconds = 0.0  # of workers, without the first chunk, which also loads and draws
        self.estimated = 0.0  # seconds that these steps would take by core.train.budget
        self.kills = 0  # times in a row that its worker was killed
        self.error: Exception | None = None

    @property
    def share(self) -> float:
        """Share of its steps that are done."""
        return 1.0 if self.state.done else self.state.step / self.state.training.steps

    def add_chunk(self, state: State, rows: list[Row], stacked: int) -> None:
        """Add state and rows of a chunk that `stacked` trainings ran together; note its time."""
        before = self.state
        self.rows += rows
        self.state = state
        self.kills = 0
        if before.step:
            share = (state.step - before.step) / state.training.steps
            self.seconds += (state.seconds - before.seconds) / stacked
            self.estimated += share * budget.estimate_seconds(state.config, state.training)

    def fail(self, error: Exception) -> None:
        """Note why a chunk failed, ending the training; killed workers: after KILLS in a row."""
        if not isinstance(error, BrokenProcessPool):
            self.error = error
            return
        self.kills += 1
        if self.kills == KILLS:
            self.error = WorkersKilledError(
                f"its workers were killed {KILLS} times in a row; is there enough memory?"
            )


class Job:
    """Trainings of one user. It gets workers for as long as it is polled.

    Args:
        workers: The pool that trains.
        states: Name to state before the first step. Names are hashable, such as (variant, seed).
        background: Whether nobody watches: it takes only workers that other jobs do not need.
    """

    def __init__(
        self, workers: "WorkerPool", states: Mapping[Any, State], background: bool = False
    ) -> None:
        self.workers = workers
        self.background = background
        self.stopped = False
        self._polled = time.monotonic()
        with workers.lock:
            self.trainings = {name: workers.share_training(state) for name, state in states.items()}
            self.rows = {name: training.rows for name, training in self.trainings.items()}
            self.known = sum(training.state.done for training in self.trainings.values())
            workers.jobs.append(self)
        workers.assign()

    @property
    def states(self) -> dict[Hashable, State]:
        """Last state of every training (the initial one before it starts), by name."""
        return {name: training.state for name, training in self.trainings.items()}

    @property
    def error(self) -> Exception | None:
        """Reason why one of the trainings failed, or None."""
        return next(
            (training.error for training in self.trainings.values() if training.error), None
        )

    @property
    def done(self) -> bool:
        """Whether nothing more will come: all complete, stopped, or any training failed."""
        is_complete = all(training.state.done for training in self.trainings.values())
        return self.stopped or is_complete or self.error is not None

    @property
    def alive(self) -> bool:
        """Whether it needs workers: it is not done, and was polled recently."""
        return not self.done and time.monotonic() - self._polled < PATIENCE

    @property
    def progress(self) -> float:
        """Share of all steps that are done."""
        steps = [training.state.training.steps for training in self.trainings.values()]
        shares = [training.share for training in self.trainings.values()]
        return sum(share * n for share, n in zip(shares, steps)) / max(1, sum(steps))

    def seconds_left(self) -> float:
        """Estimate the remaining seconds, from its own speed once that is known."""
        seconds = sum(training.seconds for training in self.trainings.values())
        estimated = sum(training.estimated for training in self.trainings.values())
        pace = seconds / estimated if estimated else self.workers.pace
        return budget.estimate_seconds_left(
            list(self.states.values()), self.workers.workers_per_job(), pace
        )

    def poll(self) -> "Job":
        """Keep the job running for PATIENCE seconds and return it; call while a user waits."""
        self._polled = time.monotonic()
        with self.workers.lock:
            if not self.done and self not in self.workers.jobs:
                self.workers.jobs.append(self)
        self.workers.assign()
        return self

    def stop(self) -> None:
        """Stop this job alone; its chunks under way end by themselves and are thrown away."""
        self.stopped = True
        self.workers.remove(self)
        self.workers.assign()

    def resume(self) -> None:
        """Continue training after a stop, and poll; a failed job stays as it is."""
        self.stopped = False
        self.poll()

    def next_chunk(self) -> list[SharedTraining]:
        """Return [the waiting training farthest behind], on a GPU with others that stack; or []."""
        waiting = [
            training
            for training in self.trainings.values()
            if not training.is_running and not training.state.done
        ]
        if self.error or not waiting:
            return []
        first = min(waiting, key=lambda training: training.share)
        if self.workers.device(first.state.machine)[0] == "cpu":  # where stacking gains nothing
            return [first]
        chunk = [first]
        for training in waiting:
            if training not in chunk and stack.can_stack([first.state, training.state]):
                chunk.append(training)
        return chunk


class WorkerPool:
    """Workers that many jobs share: processes of this machine (ProcessPool), or a Cluster.

    A free worker gets a chunk of the first job that has one; then that job goes to the end of the
    queue. Jobs in the background come after all others, and one after another.
    """

    count: int  # workers at the moment

    def __init__(self, count: int):
        self.count = count
        self.jobs: list[Job] = []
        self.lock = threading.RLock()
        self.has_trained = False  # whether any worker has brought back a chunk
        self.kept = LRUCache(megabytes=32)  # Key -> SharedTraining: finished, or as far as it came
        self.rows = LRUCache(megabytes=16)  # Key -> rows: they stay when the models are evicted
        self.running: dict[Future[bytes], list[SharedTraining]] = {}
        self.trainings: weakref.WeakValueDictionary[Key, SharedTraining] = (
            weakref.WeakValueDictionary()
        )
        self._paces: deque[float] = deque(maxlen=25)  # of the latest chunks
        # Futures that are done are handled in a thread of our own: their callbacks run in threads
        # of the executor, which may hold its locks meanwhile.
        self._landed: SimpleQueue[Future[bytes] | None] = SimpleQueue()
        self._receiver: threading.Thread | None = None

    # What a pool may do in its own way

    def train(self, states: list[State], seconds: float) -> Future[bytes]:
        """Submit a chunk; return the future of its pickled [(state, new rows), …]; for subclasses.

        Raises CancelledError without workers.
        """
        raise NotImplementedError

    def refresh_workers(self) -> str:
        """Update which workers exist (call it regularly); return why none can train, or "".

        A pool on this machine has a fixed number of workers: nothing to update, and always "".
        """
        return ""

    def warm(self) -> None:
        """Start all workers now, in pools that would start them later; here: do nothing."""

    def require(self, machine: Machine) -> None:
        """Note that trainings need this machine; ConfigError if it will never exist."""
        machine.check_here()

    def versions(self) -> dict[str, str]:
        """Return the versions that train: torch, numpy, python, code."""
        return versions()

    def device(self, machine: Machine) -> tuple[str, str]:
        """Return the device that trains: (cuda, mps or cpu; its name); ConfigError without it."""
        machine.check_here()
        return machine.torch_device, device_name(machine)

    def close(self) -> None:
        """Stop all jobs and assign no more; subclasses end their workers, or leave them."""
        with self.lock:
            self.count = 0
            for job in self.jobs[:]:
                job.stop()
            self.running.clear()
        self._landed.put(None)

    # Trainings

    def share_training(self, state: State) -> SharedTraining:
        """Return a state's shared training, created if new or failed; call under the lock."""
        key = key_of(state)
        self.kept.peek(key)  # marks it as used, so that it stays longer
        training = self.trainings.get(key)
        if training is None or training.error:
            training = self.trainings[key] = SharedTraining(state)
        return training

    def is_known(self, state: State) -> bool:
        """Return whether this training was trained to the end and is still in memory."""
        training = self.trainings.get(key_of(state))
        return training is not None and training.state.done

    def find_finished(self, key: Key) -> tuple[Sequence[Row], State | None] | None:
        """Return a finished training's rows and last state (None: evicted); else None."""
        self.kept.peek(key)
        training = self.trainings.get(key)
        if training and training.state.done:
            return training.rows, training.state
        rows: Sequence[Row] | None = self.rows.peek(key)
        return (rows, None) if rows else None

    def _cache_training(self, training: SharedTraining) -> None:
        """Cache a training unless failed or not begun; of a finished one keep the model alone."""
        state = training.state
        if not state.step or training.error:
            return
        if state.done:  # from now on only its model is needed
            state = training.state = replace(state, optimiser=None, data=None, dropout=None)
            self.rows.store(key_of(state), training.rows, ROW * len(training.rows))
        copies = 3 if state.optimiser else 1  # Adam keeps two numbers for each weight
        weights = sum(tensor.nbytes for tensor in (state.model or {}).values())
        self.kept.store(key_of(state), training, copies * weights + ROW * len(training.rows))

    # Speed

    @property
    def pace(self) -> float:
        """Ratio of measured seconds to those that core.train.budget estimates; 1 at first.

        The smallest ratio among the recent chunks: so it does not depend on other load.
        """
        return min(self._paces, default=1.0)

    def workers_per_job(self) -> float:
        """Return the number of workers (may be below 1) that a watched job has on average."""
        return max(1, self.count) / max(1, self.sharing)

    @property
    def sharing(self) -> int:
        """Number of watched jobs that share the workers; 0 if none is watched."""
        with self.lock:
            return sum(job.alive and not job.background for job in self.jobs)

    # The queue

    def assign(self) -> None:
        """Drop finished and unpolled jobs; give every free worker a chunk while there is one."""
        with self.lock:
            for job in self.jobs[:]:
                if not job.alive:
                    self.remove(job)
            while len(self.running) < self.count:
                self.jobs.sort(key=lambda job: job.background)
                first = next((job for job in self.jobs if job.next_chunk()), None)
                if first is None or not self._start(first.next_chunk()):
                    return
                if not first.background:
                    self.jobs.remove(first)
                    self.jobs.append(first)

    def remove(self, job: Job) -> None:
        """Assign no more workers to a job, and cache its trainings."""
        with self.lock:
            self.jobs = [other for other in self.jobs if other is not job]
            for training in job.trainings.values():
                self._cache_training(training)

    def _start(self, chunk: list[SharedTraining]) -> bool:
        """Submit a chunk to a worker; return False where there is no worker."""
        states = [training.state for training in chunk]
        try:
            future = self.train(states, CHUNK if states[0].step else FIRST)
        except CancelledError:
            return False
        for training in chunk:
            training.is_running = True
        self.running[future] = chunk
        if self._receiver is None:
            self._receiver = threading.Thread(target=self._receive, name="workers", daemon=True)
            self._receiver.start()
        future.add_done_callback(self._landed.put)
        return True

    def _receive(self) -> None:
        """Take finished chunks from the queue and assign new ones (a thread)."""
        for future in iter(self._landed.get, None):
            with self.lock:
                self._take_result(future)
            if (
                not future.cancelled()
            ):  # assigning would submit it again, to be cancelled again, without end
                self.assign()

    def _take_result(self, future: Future[bytes]) -> None:
        """Take a worker's result, or note why it failed; call it under the lock."""
        chunk = self.running.pop(future, [])
        for training in chunk:
            training.is_running = False
        try:
            results = pickle.loads(future.result())
        except CancelledError:  # a connection was lost: the chunk runs again at the next poll
            return
        except Exception as error:
            for training in chunk:
                training.fail(error)
            return
        trainings = [
            training for job in self.jobs if job.alive for training in job.trainings.values()
        ]
        for training, (state, rows) in zip(chunk, results):
            if training not in trainings:  # stopped meanwhile
                continue
            self.has_trained = True
            training.add_chunk(state, rows, len(chunk))
            if training.estimated:
                self._paces.append(training.seconds / training.estimated)
            if state.done:
                self._cache_training(training)

    def give_up(self, futures: Sequence[Future[bytes]], killed: bool) -> None:
        """Let chunks run again that will not return; `killed` counts as a kill of a worker."""
        with self.lock:
            for future in futures:
                for training in self.running.pop(future, []):
                    training.is_running = False
                    if killed:
                        training.fail(BrokenProcessPool())


def key_of(state: State) -> Key:
    """Return the settings that determine a training: config, training, machine."""
    return state.config, state.training, state.machine
