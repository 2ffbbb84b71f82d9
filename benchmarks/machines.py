"""Local Dask cluster of separate processes on 127.0.0.1, for tests and benchmarks."""

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
    """Return a free TCP port on 127.0.0.1."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Machines:
    """A Dask scheduler and its workers, as processes.

    Args:
        folder: Folder for their files.
        workers: Number of workers to start.
    """

    def __init__(self, folder, workers: int = 0):
        self.folder = Path(folder)
        self.port = free_port()
        self.running = []
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker(number) for number in range(workers)]

    def start_scheduler(self) -> subprocess.Popen:
        """Start the scheduler in a folder without this project, which it does not need."""
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
        """Start a worker with one thread. Return its process.

        Args:
            core: CPU core to pin it to, with the priority of core.workers.pool.ProcessPool's
                workers, if the system allows it; None for no pinning.
            **environment: Environment variables.
        """
        inputs = "worker", self.address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1"
        started = self._start(*inputs, "--local-directory", str(self.folder), **environment)
        if core is not None and hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(started.pid, {cores[core % len(cores)]})
            os.setpriority(os.PRIO_PROCESS, started.pid, NICE)
        return started

    def _start(self, *args, cwd=ROOT, **environment) -> subprocess.Popen:
        """Start a Dask process with these arguments and environment variables."""
        call = [sys.executable, "-m", "dask", *args, "--dashboard-address", "127.0.0.1:0"]
        with_path = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment
        quiet = subprocess.DEVNULL
        self.running.append(
            subprocess.Popen(call, cwd=cwd, env=with_path, stdout=quiet, stderr=quiet)
        )
        return self.running[-1]

    def kill(self, process: subprocess.Popen):
        """Kill a process with SIGKILL, as if its machine had lost power."""
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self):
        """Kill all processes."""
        for item in self.running:
            self.kill(item)
