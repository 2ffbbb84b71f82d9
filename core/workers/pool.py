"""Worker processes of this machine, from the first training to the end of this process.

The chunk of a killed process runs again: job.py.
"""

import os
import pickle
import sys
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Any, TypeVar

from core.settings.ending import at_end
from core.settings.environment import read_whole_number
from core.settings.memory import machine_mb
from core.train.run import State
from core.workers import worker
from core.workers.job import WorkerPool

T = TypeVar("T")

SERVER_MB = 500  # the app with every page opened (python -m benchmarks.small_container)
WORKER_MB = 250  # a worker process with a training of a usual size


def worker_count() -> int:
    """Return ABLATION_WORKERS, else (or if invalid) 1 or 2 as cores and memory allow."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    fitting = (machine_mb() - SERVER_MB) // WORKER_MB
    return read_whole_number("ABLATION_WORKERS", max(1, min(2, cores, fitting)))


class ProcessPool(WorkerPool):
    """Pool of spawned processes (concurrent.futures); one that breaks is replaced."""

    def __init__(self, count: int | None = None):
        super().__init__(count or worker_count())
        self._workers = self.count
        self._executor: Any = None  # ProcessPoolExecutor, whose processes nothing public ends
        self._is_closed = False
        at_end(self.close)

    def warm(self) -> None:
        """Start all worker processes now."""
        for _ in range(self.count):
            self.submit(time.sleep, 0.1)

    def train(self, states: list[State], seconds: float) -> Future[bytes]:
        """Submit a chunk to a worker process; return its future; CancelledError after close()."""
        return self.submit(worker.train_chunk, pickle.dumps(states), seconds)

    def submit(self, call: Callable[..., T], *arguments: object) -> Future[T]:
        """Run a call in a worker; return its future; CancelledError, at once, after close()."""
        with self.lock:
            if self._is_closed:
                raise CancelledError("the workers have been ended")
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    self._workers, get_context("spawn"), worker.set_up_worker
                )
            try:
                with _without_script():
                    future: Future[T] = self._executor.submit(call, *arguments)
                    return future
            except BrokenProcessPool:
                self._executor = None
                return self.submit(call, *arguments)
            except RuntimeError as error:  # Python is about to end
                raise CancelledError from error

    def assign(self) -> None:
        """Replace the processes if one was killed, then assign chunks to free workers."""
        with self.lock:
            processes = list(self._executor._processes.values()) if self._executor else []
            # The executor notices by itself, except where one was killed while it sent a result.
            if wait([process.sentinel for process in processes], timeout=0):
                self._kill()
        super().assign()

    def close(self) -> None:
        """Kill all workers; one that still loads torch would delay the end otherwise."""
        with self.lock:
            self._is_closed = True
            self._kill()
        super().close()

    def _kill(self) -> None:
        """Kill the processes, and let the executor fail their chunks."""
        executor = self._executor
        self._executor = None
        if executor is None:
            return
        for process in list((executor._processes or {}).values()):
            process.kill()
        executor._result_queue._writer.close()  # or it would wait for the rest of a result
        thread = executor._executor_manager_thread
        if thread:
            thread.join(1.0)  # or Python would wake it while it ends


@contextmanager
def _without_script() -> Iterator[None]:
    """Let processes spawned inside not run this process's script, under Streamlit a page."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
