"""Several trainings of one user: what has come of them so far, and which chunk is next."""

import pickle
import time
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial

from core.train import stack
from core.train.run import Row, State
from core.workers.pace import Course
from core.workers.protocol import Key, WorkerPool

CHUNK = 0.4  # seconds of training before a worker is free for somebody else
FIRST = 0.05  # of the first chunk of a training: its first point is to be seen at once
BROKEN = 5  # times in a row that the workers of a job may be killed before it is given up
ROW = 300  # bytes that a row takes in memory
PATIENCE = 5.0  # seconds after which a job that nobody asked about is taken for abandoned


class WorkersKilled(RuntimeError):
    """A training whose worker processes end again and again before they have done anything."""


class Job:
    """Several trainings of one user: {name: State before the first chunk}. Goes on for as long as somebody asks.

    background: it takes what workers the others leave it; nobody is looking at it.
    rows: {name: the rows so far}; states: {name: the last State}. Names are anything hashable, such as (variant, seed).
    """

    def __init__(self, workers: WorkerPool, states: dict[Hashable, State], background: bool = False) -> None:
        self.workers, self.states, self.background = workers, dict(states), background
        self.rows: dict[Hashable, list[Row]] = {name: [] for name in states}
        self.stopped = False
        self.error: Exception | None = None
        self.trained = 0  # steps so far
        self.course = Course()  # how fast that went
        self.known = 0  # trainings that somebody had done already
        self._broken = 0  # times that its workers were killed, since the last chunk that came back
        self._keys = {name: key_of(state) for name, state in states.items()}
        self._flying: dict[tuple[Hashable, ...], Future[bytes]] = {}  # names that are trained together -> their chunk
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

        The last training to end has one worker to itself. Not from progress, which leaps where a training diverges or is
        taken over from somebody else.
        """
        steps = [state.training.steps - state.step for state in self.states.values() if not state.done]
        if not self.course.steps:
            return None
        part = self.workers.part(self)
        return self.course.step_seconds(self.workers.count, part) * max(sum(steps), part * max(steps, default=0))

    def poll(self) -> "Job":
        """To be called again and again by whoever waits for it: keeps it alive, and brings back what was abandoned."""
        self._asked = time.monotonic()
        with self.workers.lock:
            if not self.done and self not in self.workers.jobs:
                self.course.pause()
                self.workers.queue(self)
        self.workers.turn()
        return self

    def stop(self) -> None:
        """No more chunks; those under way end within CHUNK seconds and are thrown away."""
        with self.workers.lock:
            self.stopped = True
            flying, self._flying = self._flying, {}
            for future in flying.values():
                future.cancel()
            self.workers.jobs = [each for each in self.workers.jobs if each is not self]
            self.put_aside()
        self.workers.turn()

    def resume(self) -> None:
        """Go on where it was stopped."""
        self.stopped = False
        self.poll()

    def _adopt(self) -> None:
        """Take over what was trained meanwhile, here or for somebody else: to the end, or at the start as far as it came."""
        for name, state in self.states.items():
            kept = None if state.done else self.workers.kept.peek(self._keys[name])
            if kept and (kept[1].done or state.step == 0 < kept[1].step):
                self._take(name, *kept)

    def _take(self, name: Hashable, rows: Iterable[Row], state: State) -> None:
        self.rows[name], self.states[name] = list(rows), state
        self._flying = {names: chunk for names, chunk in self._flying.items() if name not in names}
        self.known += state.done

    def share_in(self, key: Key, rows: list[Row], state: State) -> None:
        """Somebody else has trained what this job trains, too, and has come further. Called under the lock."""
        for name, own_key in self._keys.items():
            if own_key == key and not self.states[name].done and (state.done or state.step > self.states[name].step):
                self._take(name, rows, state)

    def under_way(self) -> set[Key]:
        return {self._keys[name] for names in self._flying for name in names}

    def put_aside(self) -> None:
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
            future.add_done_callback(partial(self._landed, names))
        return bool(self._flying) or not share

    def _together(self, waiting: Sequence[Hashable]) -> tuple[Hashable, ...]:
        """Who goes next: the one that lies farthest behind; on a GPU with all that can be stacked with it."""
        first = min(waiting, key=lambda each: self.states[each].step / self.states[each].training.steps)
        if self.workers.device_of(self.states[first].machine) == "cpu":  # where stacking gains nothing
            return (first,)
        others = [
            n
            for n in waiting
            if self._keys[n] != self._keys[first] and stack.can_stack([self.states[first], self.states[n]])
        ]
        return (first, *others)

    def _landed(self, names: tuple[Hashable, ...], future: Future[bytes]) -> None:
        with self.workers.lock:
            if self._flying.get(names) is not future:
                return  # stopped meanwhile
            del self._flying[names]
            again = True
            try:
                before, results = [self.states[name] for name in names], pickle.loads(future.result())
                for name, (state, rows) in zip(names, results):
                    self.states[name] = state
                    self.rows[name] += rows
                    if state.done:
                        self._keep(name)
                    for other in self.workers.jobs:
                        if other is not self:
                            other.share_in(self._keys[name], self.rows[name], self.states[name])
                self.trained += (trained := sum(state.step - was.step for was, (state, _) in zip(before, results)))
                if before[0].step:  # the first chunk also loads and draws
                    self.course.add(results[0][0].seconds - before[0].seconds, trained)
                self.workers.pace.learn(before, [state for state, _ in results])
                self._broken = 0
            except CancelledError:  # a connection was lost, and no worker: the next to ask has its chunk run again
                again = False
            except BrokenProcessPool:  # a worker was killed: its chunk runs again
                self._broken += 1
                if self._broken == BROKEN:
                    self.error = WorkersKilled(
                        f"its workers were killed {BROKEN} times in a row; is there enough memory?"
                    )
            except Exception as error:
                self.error = error
            self.workers.rotate(self)
        if again:  # or what is cancelled at once would be submitted at once, for ever
            self.workers.turn()

    def _keep(self, name: Hashable) -> None:
        """Put what is trained to the end where others find it; only its model is needed from now on."""
        self.states[name] = replace(self.states[name], optimiser=None, data=None, dropout=None)
        self._put(name)
        rows = tuple(self.rows[name])
        self.workers.rows.put(self._keys[name], rows, ROW * len(rows))

    def _put(self, name: Hashable) -> None:
        state, rows = self.states[name], tuple(self.rows[name])
        models = 1 if state.optimiser is None else 3  # Adam keeps two numbers for each weight
        size = models * sum(tensor.nbytes for tensor in (state.model or {}).values()) + ROW * len(rows)
        self.workers.kept.put(self._keys[name], (rows, state), size)


def key_of(state: State) -> Key:
    """What determines a training: the same for all who ask for it."""
    return state.config, state.training, state.machine
