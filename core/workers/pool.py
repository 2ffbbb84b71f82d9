"""A pool of worker processes on this machine: shared fairly between users, stopped at once, none left behind.

A worker holds nothing between two chunks (core.train.chunk): jobs that somebody waits for take turns, chunk by chunk, and
the same training that two ask for is trained once, for both; a job that nobody looks at any more gets none, and a worker that is killed costs the chunk in hand, which runs again.
What has been trained to the end is kept for a while: a class that opens one link trains once.
"""

import os
import pickle
import sys
import threading
import types
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from ctypes import Array, c_double
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any, TypeVar

from core.settings.device import Machine
from core.settings.ending import at_end
from core.settings.environment import whole_number
from core.settings.memory import machine_mb
from core.settings.process import device_name, versions
from core.train.run import State
from core.workers import worker
from core.workers.pulse import Silence
from core.workers.queue import Queue

T = TypeVar("T")


SERVER_MB = 500  # the app with every page opened (python -m benchmarks.small_container)
WORKER_MB = 250  # a worker process with a training of a usual size


def worker_count() -> int:
    """Return ABLATION_WORKERS, or one worker per core up to two, as far as the container's memory allows."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    fitting = (machine_mb() - SERVER_MB) // WORKER_MB
    return whole_number("ABLATION_WORKERS", max(1, min(2, cores, fitting)))


class _Apart(SpawnProcess):
    """A new process that does not run the script of its parent.

    multiprocessing has each new process run again what is `__main__` at that moment; under Streamlit that is the page
    that somebody looks at, or in its tests a file that is gone by then.
    """

    @staticmethod
    def _Popen(process: BaseProcess) -> Any:  # a Popen, another one on each system
        with _apart:
            script, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process)
            finally:
                sys.modules["__main__"] = script


class _Spawning(SpawnContext):
    Process = _Apart


_apart = threading.Lock()


class ProcessPool(Queue):
    """Spawned processes, and the jobs that share them."""

    def __init__(self, count: int | None = None) -> None:
        super().__init__(count or worker_count())
        self._pool: ProcessPoolExecutor | None = None
        # In memory that the workers share: the numbers of those processes that have begun,
        self._started: SynchronizedArray[int] | None = None
        self._ticks: Array[c_double] | None = None  # and what each counts while it lives, however long its chunk takes
        self._silence = self._nobody_silent()
        self._closed = False
        self._ended: ProcessPoolExecutor | None = None
        _all.add(self)

    def warm(self) -> None:
        """Start all workers now, so that no measurement waits for torch to load."""
        with suppress(CancelledError):  # this process ends before it has begun
            for _ in range(self.count):
                self.submit(worker.ready, 0.1)

    def require(self, machine: Machine) -> None:
        machine.check_here()

    def look(self) -> str:
        with self.lock:
            self._watch()
        return ""

    def turn(self) -> None:
        with self.lock:
            self._watch()
            self.hand_out()

    def _watch(self) -> None:
        """Say of a worker that hangs that it does, and replace it after a while: with its pool, which ends where one is gone."""
        if not self._pool or self._started is None or self._ticks is None:
            return
        begun = [number for number in self._started.get_obj() if number]
        if self._silence.look(dict(zip(begun, self._ticks))):  # type: ignore[arg-type]  # numbers, not cells for them
            self._kill()
            _give_up_results(self._pool._result_queue)
            self._silence = self._nobody_silent()
        self.silence = self._silence.sentence

    def _nobody_silent(self) -> Silence[int]:
        return Silence(
            self.news, "A worker", "A worker that did not answer has been replaced", outlook="it is replaced"
        )

    def versions(self) -> dict[str, str]:
        return versions()

    def device_of(self, machine: Machine) -> str:
        return machine.torch_device

    def device_name(self, machine: Machine) -> str:
        return device_name(machine)

    def train(self, states: list[State], seconds: float) -> Future[bytes]:
        return self.submit(worker.train_chunk, pickle.dumps(states), seconds)

    def submit(self, call: Callable[..., T], *given: object) -> Future[T]:
        """Run a call in a worker; a pool that broke is replaced first. Raises CancelledError where no more is done."""
        with self.lock:
            if self._closed:
                raise CancelledError("the workers have been ended")
            if self._pool is None:
                context = _Spawning()
                self._started = context.Array("i", self.count)
                self._ticks = context.Array("d", self.count, lock=False)
                shared = self._started, self._ticks, os.getpid()
                self._pool = ProcessPoolExecutor(self.count, context, worker.begin, shared)
            try:
                if self._pool._broken:  # its own lock may be held until the last of its processes is gone
                    raise BrokenProcessPool
                return _quiet(self._pool.submit(call, *given))
            except BrokenProcessPool:
                self._pool = None
                return self.submit(call, *given)
            except RuntimeError as error:  # Python has ended all pools, because it is about to end itself
                raise CancelledError from error

    def close(self) -> None:
        """End all workers now, and for good. They are killed: they hold nothing, and one that has yet to load torch, or hangs,
        would be waited for.
        """
        with self.lock:
            self._closed = True
            self.stop_all()
            if self._pool:
                self._kill()
                self._pool.shutdown(wait=False, cancel_futures=True)
            # Kept: its processes would complain if what they share with it went before them.
            self._ended, self._pool = self._pool or self._ended, None

    def _kill(self) -> None:
        """All processes of the pool: where one is gone, the pool ends the others anyway, but waits for those that hang."""
        if self._pool:
            for each in list((self._pool._processes or {}).values()):
                each.kill()


def _quiet(future: Future[T]) -> Future[T]:
    """A pool whose processes are gone tells every future so: in a thread of its own, for since Python 3.12 it holds its lock
    meanwhile, and whoever is told hands out the next chunk. To a future that was cancelled just before, it would end with a traceback.
    """

    def tell(error: BaseException | None) -> None:
        with suppress(InvalidStateError):
            Future.set_exception(future, error)

    def set_exception(error: BaseException | None) -> None:
        if isinstance(error, BrokenProcessPool):
            threading.Thread(target=tell, args=(error,), daemon=True).start()
        else:
            tell(error)

    future.set_exception = set_exception  # type: ignore[method-assign, assignment]
    return future


def _give_up_results(queue: Any) -> None:
    """Of processes that are gone: one that is half sent would be waited for as long as anybody could send the rest, and this
    process itself could."""
    queue._writer.close()


_all: "weakref.WeakSet[ProcessPool]" = weakref.WeakSet()


def _close_all() -> None:
    """Else Python would wait until each worker has loaded torch, and has then heard that it may go."""
    for each in list(_all):
        pool = each._pool
        manager: Any  # a thread, of which typeshed says that it is something else
        manager, queue = (pool._executor_manager_thread, pool._result_queue) if pool else (None, None)
        each.close()
        if manager:
            manager.join(1.0)  # or Python would wake it while it closes what it is woken with
            if manager.is_alive():
                _give_up_results(queue)


at_end(_close_all)
