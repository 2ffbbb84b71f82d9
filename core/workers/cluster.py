"""Trainings on a Dask cluster, in the threads of all workers that its scheduler has.

When a worker dies, Dask runs its chunk on another one. Only workers that compute as this process
does are used: rows are identical to the last bit only there.
"""

import functools
import logging
import os
import pickle
import re
import time
import warnings
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from core.settings.device import Machine
from core.settings.ending import at_end
from core.settings.environment import ServerError
from core.settings.process import versions
from core.settings.setting import ConfigError
from core.train.run import State
from core.workers import worker
from core.workers.job import WorkerPool
from core.workers.pool import ProcessPool
from core.workers.worker import Description

T = TypeVar("T")
VARIABLE = "DASK_SCHEDULER_ADDRESS"
ALLOWED = "write the address of a scheduler, such as tcp://10.0.0.1:8786"
CONNECT = 10.0  # seconds in which the scheduler must answer at first
ANSWER = 3.0  # and later on
GRACE = 60.0  # seconds for which it may be gone
LOOK = 1.0  # seconds from one look at the workers to the next
LONGER = 2  # times as long as on this machine a chunk takes: its way there and back takes 40 ms


class ClusterError(ServerError):
    """Cluster that cannot be used; the message says why and what would be right."""


class ClusterLostError(ClusterError):
    """Scheduler that has not answered for too long."""


def create_pool(count: int | None = None) -> WorkerPool:
    """Return the Cluster at DASK_SCHEDULER_ADDRESS, of `count` threads at most, or a ProcessPool.

    Args:
        count: Number of processes, or of threads of the cluster at most. None: worker_count()
            processes, or all threads.

    Raises:
        ClusterError: The address cannot be one.
    """
    address = os.environ.get(VARIABLE, "").strip()
    return Cluster(address, count) if address else ProcessPool(count)


class Cluster(WorkerPool):
    """Workers of a Dask scheduler; they, and for a while the scheduler, may come and go."""

    def __init__(self, address: str, limit: int | None = None):
        if not re.fullmatch(r"[a-z]+://[^\s/]+:\d{1,5}", address):
            raise ClusterError(f"{VARIABLE} is not an address: {ALLOWED}.")
        super().__init__(0)
        self.address = address
        self.most = limit
        self.members: Collection[str] = ()  # addresses of the workers that train
        self._sent: dict[
            Future[Any], Collection[str]
        ] = {}  # chunk -> the workers that may train it
        self._descriptions: dict[str, Future[Description]] = {}  # of the workers that are there
        self._first: Description | None = (
            None  # of the first worker that trained: all others must be like it
        )
        self._needed: set[str] = set()  # devices
        self._client = connect(address, CONNECT)
        self._answered = time.monotonic()
        self._next_look = 0.0
        self._absent = ""
        at_end(self.close)

    def require(self, machine: Machine) -> None:
        """Note the device that a training needs, never raising; workers without it are not used."""
        self._needed.add(machine.device)

    def versions(self) -> dict[str, str]:
        """Return the versions of the workers, or of this process before there are any."""
        return self._first.versions if self._first else versions()

    def device(self, machine: Machine) -> tuple[str, str]:
        """Return the workers' device: (cuda, mps or cpu; name); ConfigError if none has it yet."""
        devices = self._first.devices if self._first else {}
        if machine.device not in devices:
            raise ConfigError(
                "device", f"device is {machine.device}, which the workers do not have."
            )
        return devices[machine.device]

    def train(self, states: list[State], seconds: float) -> Future[bytes]:
        """Submit a chunk of LONGER * seconds; return its future, as WorkerPool.train() does.

        Raises CancelledError at once if there is no worker.
        """
        with self.lock:
            members = self.members
            if not members:
                raise CancelledError("there is no worker")
            future = self._submit(
                members, worker.train_chunk, pickle.dumps(states), LONGER * seconds
            )
            self._sent[future] = members
        return future

    def close(self) -> None:
        """End all jobs, and close the connection to the scheduler."""
        super().close()
        with suppress(Exception):  # it may be gone already
            self._client.close(timeout=ANSWER)

    def refresh_workers(self) -> str:
        """Ask the scheduler unless just asked; return why none trains, or ""; ClusterLostError."""
        if time.monotonic() >= self._next_look:
            self._absent = self._update_members()
            self._next_look = time.monotonic() + LOOK
        return self._absent

    def _update_members(self) -> str:
        """Update the workers; return why none trains, or ""; ClusterLostError if long silent."""
        threads = self._ask_scheduler()
        if threads is None:
            self._descriptions = {}
            self._set_members({}, killed=False)
            if time.monotonic() - self._answered > GRACE:
                silent = f"has not answered for {GRACE:.0f} s. Stored results are safe"
                raise ClusterLostError(
                    f"The Dask scheduler at {self.address} {silent}: run the same command again"
                    " when it is back, or unset the variable to train on this machine.",
                    f"The Dask scheduler {silent}.",
                )
            return "the scheduler does not answer"
        self._answered = time.monotonic()
        for address in self._descriptions.keys() - threads.keys():
            del self._descriptions[address]
        self._set_members(
            {address: n for address, n in threads.items() if self._is_member(address)}, killed=True
        )
        if self.count:
            return ""
        return "no worker is ready" if threads else "there is no worker"

    def _ask_scheduler(self) -> dict[str, int] | None:
        """Return each worker's number of threads by address; None without an answer."""
        try:
            if self._client.status != "running":
                with suppress(Exception):
                    self._client.close(timeout=ANSWER)
                self._client = connect(self.address, ANSWER)
            identity = self._client.scheduler.identity
            workers = self._client.sync(identity, n_workers=-1, callback_timeout=ANSWER)["workers"]
            return {address: worker["nthreads"] for address, worker in workers.items()}
        except Exception:  # whatever a broken connection looks like
            return None

    def _is_member(self, address: str) -> bool:
        """Return whether a worker computes as others do; ask a new one: False until it answers."""
        answer = self._descriptions.get(address)
        if answer is None or answer.cancelled():  # cancelled: with a connection
            with suppress(CancelledError):
                self._descriptions[address] = self._submit([address], worker.describe)
            return False
        if not answer.done():
            return False
        reason = describe_difference(answer, worker.describe(), self._first, self._needed)
        if reason:
            _log_once(f"The worker {address} is skipped: {reason}.")
            return False
        self._first = self._first or answer.result()
        return True

    def _set_members(self, members: dict[str, int], killed: bool) -> None:
        """Let only these workers, {address: threads}, train; chunks of lost ones run again.

        With `killed` each lost chunk counts as a failed attempt of its trainings.
        """
        with self.lock:
            self.members = tuple(members)
            threads = sum(members.values())
            self.count = min(threads, self.most or threads)
            self._sent = {
                future: workers for future, workers in self._sent.items() if future in self.running
            }
            lost = [
                future
                for future, workers in self._sent.items()
                if not set(workers) & members.keys()
            ]
            self.give_up(lost, killed)

    def _submit(
        self, workers: Collection[str], call: Callable[..., T], *arguments: object
    ) -> Future[T]:
        """Run a call on one of these workers; return its future; CancelledError if disconnected."""
        packed = pickle.dumps(Call(call, arguments))
        try:
            executor = self._client.get_executor(pure=False, workers=list(workers))
            future: Future[T] = executor.submit(pickle.loads, packed)
            return future
        except Exception as error:  # the connection has gone; refresh_workers() will say so
            raise CancelledError from error


@functools.lru_cache(maxsize=1000)
def _log_once(message: str) -> None:
    """Log a message as a warning, once per process."""
    logging.warning(message)


class Call(NamedTuple):
    """Call that runs where its bytes are unpickled: the scheduler need not have this project."""

    call: Callable[..., object]
    arguments: tuple[object, ...]

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call, self.arguments


def connect(address: str, seconds: float) -> Any:
    """Return a Dask client and silence Dask's logs; ClusterError without Dask or an answer."""
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(
            f"{VARIABLE} is set, but Dask is not installed: pip install distributed==2026.8.0"
        ) from None
    for name in ("distributed", "tornado"):  # what matters is said by refresh_workers()
        for logger in (
            name,
            *(
                logger_name
                for logger_name in logging.root.manager.loggerDict
                if logger_name.startswith(name + ".")
            ),
        ):
            logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module="distributed")  # other versions, large states
    try:
        make: Any = Client  # Dask has no types
        return make(address, timeout=seconds, set_as_default=False, name="ablation-lab")
    except Exception as error:  # of the network, or of an answer that is no scheduler's
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise ClusterError(
            f"{VARIABLE} is {address}, where no Dask scheduler answers ({reason[0].rstrip('.')}):"
            f" {ALLOWED}.",
            "The training cluster does not answer.",
        ) from None


def describe_difference(
    answer: Future[Description], local: Description, first: Description | None, needed: set[str]
) -> str:
    """Describe why a worker (its answer is done) does not compute as others do; "" if it does.

    `first` is the first worker's description, if any; `needed` has device types such as "cuda".

    The build of torch (2.13.0+cpu) may differ from that of this process, which trains nothing.
    """
    error = answer.exception()
    if isinstance(error, ImportError):
        return (
            f"it cannot import this project ({error}): start it in the repository's folder with"
            " PYTHONPATH=."
        )
    if error:
        return f"it cannot report its versions ({type(error).__name__}: {error})"
    description = answer.result()
    differences = []
    for name in ("torch", "numpy", "python"):
        version = (first or local).versions[name]
        has = description.versions[name]
        if has != version and (first or has.partition("+")[0] != version.partition("+")[0]):
            differences.append(f"{name} {has}, not {version}")
    if description.sources != local.sources:
        differences.append(
            f"other files in core (commit {description.versions['code']}, here"
            f" {local.versions['code']})"
        )
    for name in sorted(needed):
        if name not in description.devices:
            differences.append(f"no {name}")
        elif first and description.devices[name] != first.devices.get(
            name, description.devices[name]
        ):
            differences.append(
                f"{description.devices[name][1]}, not {first.devices[name][1]} like the others"
            )
    return f"it has {'; '.join(differences)}" if differences else ""
