"""A Dask cluster of processes of its own on 127.0.0.1, for tests and benchmarks."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from core.workers.worker import NICE

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Machines:
    """A scheduler and its workers. folder: for what they write."""

    def __init__(self, folder, workers: int = 0):
        self.folder, self.port, self.running = Path(folder), free_port(), []
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker(number) for number in range(workers)]

    def start_scheduler(self) -> subprocess.Popen:
        """In a folder without this project: it needs none."""
        return self._start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            cwd=self.folder,
            PYTHONPATH="",
        )

    def start_worker(self, core: int | None = None, **environment) -> subprocess.Popen:
        """With one thread. core: where it is pinned and stands back as those of core.workers.pool.ProcessPool do, if the system allows it."""
        inputs = "worker", self.address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1"
        started = self._start(*inputs, "--local-directory", str(self.folder), **environment)
        if core is not None and hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(started.pid, {cores[core % len(cores)]})
            os.setpriority(os.PRIO_PROCESS, started.pid, NICE)
        return started

    def _start(self, *args, cwd=ROOT, **environment) -> subprocess.Popen:
        call = [sys.executable, "-m", "dask", *args, "--dashboard-address", "127.0.0.1:0"]
        with_path = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment
        quiet = subprocess.DEVNULL
        self.running.append(
            subprocess.Popen(call, cwd=cwd, env=with_path, stdout=quiet, stderr=quiet)
        )
        return self.running[-1]

    def kill(self, process: subprocess.Popen):
        """As a machine goes that loses its power."""
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self):
        for item in self.running:
            self.kill(item)
