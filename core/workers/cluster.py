"""Trainings on a Dask cluster: the same jobs, in the threads of all workers that a scheduler has now.

Nothing is trained on a worker before it has said what it computes with: rows are the same to the last bit only where
that is the same. Workers may come and go at any time, and so may, for a while, the scheduler.
"""

import logging
import os
import pickle
import re
import time
import warnings
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import NamedTuple

from core.settings.device import Machine, device, present
from core.settings.errors import ServerError
from core.settings.process import device_name, sources, versions
from core.settings.setting import ConfigError
from core.train.run import State
from core.workers import pulse
from core.workers.pool import UNANSWERED, Workers

VARIABLE = "DASK_SCHEDULER_ADDRESS"
ALLOWED = "write the address of a scheduler, such as tcp://10.0.0.1:8786"
CONNECT = 10.0  # seconds in which the scheduler must answer at first
ANSWER = 3.0  # and later on; nothing is stored meanwhile
LONGER = 2  # times as long as on this machine a chunk takes: a megabyte's way there and back takes 40 ms
LOOK = 1.0  # seconds from one look at the workers to the next
GRACE = 60.0  # seconds for which a scheduler may be gone
KILLED = ("KilledWorker", "NoValidWorkerError", "NoWorkerError")  # Dask has tried a call again, in vain


class ClusterError(ServerError):
    """The cluster cannot be used; the message says why, and what would be right."""


class ClusterLost(ClusterError):
    """The scheduler has been gone for too long."""


def pool(count: int | None = None) -> Workers:
    """Processes of this machine, or the cluster whose address DASK_SCHEDULER_ADDRESS holds. Raises ClusterError.

    count: how many processes; on a cluster, how many of its threads at most.
    """
    address = os.environ.get(VARIABLE, "").strip()
    return Cluster(address, count) if address else Workers(count)


class Origin(NamedTuple):
    """What a process computes with."""

    versions: dict[str, str]
    sources: str
    devices: dict[str, tuple[str, str]]  # each of the menu -> (cuda, mps or cpu; in words), where there is one


def origin() -> Origin:
    found = {name: Machine(name) for name in device if name in ("auto", *present())}
    return Origin(versions(), sources(), {name: (each.place, device_name(each)) for name, each in found.items()})


class Call:
    """A call that is made where its bytes are unpickled: the scheduler, which sees only bytes, need not have this project."""

    def __init__(self, call, given: tuple):
        self.call, self.given = call, given

    def __reduce__(self):
        return self.call, self.given


class Cluster(Workers):
    """The workers of a scheduler. count changes whenever look() is called; jobs that wait go on as soon as it is above 0."""

    def __init__(self, address: str, most: int | None = None):
        super().__init__(1)
        if not re.fullmatch(r"[a-z]+://[^\s/]+:\d{1,5}", address):
            raise ClusterError(f"{VARIABLE} is no address: {ALLOWED}.")
        self.address, self.most, self.count = address, most, 0
        self._members: dict[str, int] = {}  # addresses of workers that train -> threads
        self._asked: dict = {}  # address -> Dask's future of its Origin
        self._found: dict[str, Origin | str] = {}  # address -> its Origin, or why it has none
        self._told: dict[str, str] = {}  # address -> why it is left out, as far as that has been said
        self._stages: dict[str, int] = {}  # address -> 1: it has been said to be silent; 2: it is left out for that
        self._needed: set[str] = set()  # devices
        self._like: Origin | None = None  # of the first worker that trained; all others must be like it
        self._calls: dict[Future, tuple] = {}  # under way -> (Dask's future, addresses of those that may do it)
        self._client = connect(address, CONNECT)
        self._answered, self._next, self._absent = time.monotonic(), 0.0, ""

    # What a pool of processes does otherwise

    def require(self, machine: Machine):
        self._needed.add(machine.device)

    def versions(self) -> dict[str, str]:
        return self._like.versions if self._like else versions()

    def place_of(self, machine: Machine) -> str:
        return self._device(machine)[0]

    def device_name(self, machine: Machine) -> str:
        return self._device(machine)[1]

    def _device(self, machine: Machine) -> tuple[str, str]:
        found = self._like.devices if self._like else {}
        if machine.device not in found:
            raise ConfigError("device", f"device is {machine.device}, which the workers do not have.")
        return found[machine.device]

    def train(self, states: list[State], seconds: float) -> Future:
        return super().train(states, LONGER * seconds)

    def submit(self, call, *given) -> Future:
        """Have a call run by any of the workers. Raises CancelledError while there are none.

        Its future can be cancelled without waiting for the scheduler, unlike those of Dask's own executor: jobs do so
        while they hold the lock for which the thread may wait that talks to the scheduler.
        """
        with self.lock:
            if not self._members:
                raise CancelledError("no worker is there")
            there, here = self._send(list(self._members), call, *given), Future()
            self._calls[here] = there, set(self._members)
        here.add_done_callback(self._forget)
        there.add_done_callback(lambda there: _deliver(there, here))
        return here

    def close(self):
        super().close()
        self._admit({})
        _end(self._client)

    def _send(self, addresses: list[str], call, *given):
        """-> Dask's future. Raises CancelledError without a connection."""
        packed = pickle.dumps(Call(call, given))
        try:
            return self._client.submit(pickle.loads, packed, pure=False, workers=addresses)
        except Exception as error:  # the connection has gone; look() will say so
            raise CancelledError from error

    def _forget(self, here: Future):
        """A call has ended or is no longer wanted: Dask may throw away what belongs to it."""
        with self.lock:
            there, _ = self._calls.pop(here, (None, None))
        if there:
            there.release()

    # Who is there

    def look(self) -> str:
        """Raises ClusterLost."""
        if time.monotonic() >= self._next:
            self._absent = self._see()
            self._next = time.monotonic() + LOOK
        return self._absent

    def _see(self) -> str:
        found = self._workers()
        if found is None:
            self._asked, self._found = {}, {}
            self._admit({})
            if time.monotonic() - self._answered > GRACE:
                silent = f"has not answered for {GRACE:.0f} s. What was stored is safe"
                raise ClusterLost(
                    f"The Dask scheduler at {self.address} {silent}: "
                    "give the same command again when it is back, or without the variable to train on this machine.",
                    f"The Dask scheduler {silent}.",
                )
            return "the scheduler does not answer"
        self._answered = time.monotonic()
        threads = {address: each["nthreads"] for address, each in found.items()}
        self._ask(threads)
        hung = self._hung({address: each["last_seen"] for address, each in found.items()})
        self._admit({address: threads[address] for address in self._found.keys() - hung if not self._left_out(address)})
        self._take_from(hung)
        return "" if self.count else "no worker is ready" if threads else "no worker is there"

    def _hung(self, seen: dict[str, float]) -> set[str]:
        """Addresses of those that have been silent for too long; who begins to be is said once. seen: when the scheduler last
        heard of each, by its own clock: it is only looked at whether that changes."""
        silent = self._pulse.look(seen)
        longest = max(silent.values(), default=0.0)
        self.silence = f"{UNANSWERED} {longest:.0f} s." if longest >= pulse.SAID else ""
        for address, seconds in silent.items():
            stage = (seconds >= pulse.SAID) + (seconds >= pulse.HUNG)
            if stage > self._stages.get(address, 0):
                self.news.append(
                    f"The worker {address} has not answered for {seconds:.0f} s."
                    if stage == 1
                    else f"The worker {address} is left out until it answers; what it had in hand is trained anew."
                )
            self._stages[address] = stage
        return {address for address, seconds in silent.items() if seconds >= pulse.HUNG}

    def _take_from(self, hung: set[str]):
        """What they have in hand is to be done again, by others: the scheduler would wait for minutes."""
        if not hung:
            return
        with suppress(Exception):  # the connection has gone; the next look sees it
            call = self._client.scheduler.processing
            held = self._client.sync(call, workers=list(hung), callback_timeout=ANSWER)
            keys = {key for several in held.values() for key in several}
            with self.lock:
                lost = [here for here, (there, _) in self._calls.items() if there.key in keys]
            for here in lost:
                here.cancel()

    def _workers(self) -> dict[str, dict] | None:
        """Address -> what the scheduler knows of each worker; None where it does not answer."""
        try:
            if self._client.status != "running":
                _end(self._client)
                self._client = connect(self.address, ANSWER)
            known = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER)
            return dict(known["workers"])
        except Exception:  # whatever a broken connection looks like
            return None

    def _ask(self, there):
        """Ask those who are new what they are, forget those who are gone, and take down the answers."""
        for kept in (self._asked, self._found, self._told):
            for address in kept.keys() - there.keys():
                del kept[address]
        for address in there.keys() - self._asked.keys():
            with suppress(CancelledError):
                self._asked[address] = self._send([address], origin)
        for address, answer in list(self._asked.items()):
            if answer.status == "cancelled":  # with a connection; asked again
                del self._asked[address]
            elif answer.status != "pending" and address not in self._found:
                error = answer.exception()
                self._found[address] = _in_words(error) if error else answer.result()

    def _left_out(self, address: str) -> str:
        """Why nothing is trained on a worker, or ""; said once."""
        found = self._found[address]
        why = found if isinstance(found, str) else unlike(found, origin(), self._like, self._needed)
        if why and self._told.get(address) != why:
            self._told[address] = why
            self.news.append(f"The worker {address} is left out: {why}.")
        self._like = self._like or (None if why else found)
        return why

    def _admit(self, members: dict[str, int]):
        """From now on these train; what only others could have done is to be done again."""
        with self.lock:
            self._members = members
            self.count = min(sum(members.values()), self.most or sum(members.values()))
            lost = [here for here, (_, addresses) in self._calls.items() if not addresses & members.keys()]
        for here in lost:
            here.cancel()


def unlike(found: Origin, here: Origin, first: Origin | None, needed) -> str:
    """In what a worker differs from this process, or from the first worker, so that it would give other rows; or "".

    The build of torch (2.13.0+cpu) need not be that of this process, which trains nothing.
    """
    ours = here.versions | {"torch": first.versions["torch"] if first else here.versions["torch"]}
    part = (lambda text: text) if first else (lambda text: text.partition("+")[0])
    told = [f"{name} {found.versions[name]} and not {ours[name]}" for name in ("torch", "numpy", "python")
            if part(found.versions[name]) != part(ours[name])]  # fmt: skip
    if found.sources != here.sources:
        told.append(f"other files in core (commit {found.versions['code']}, here {here.versions['code']})")
    told += [f"no {name}" for name in sorted(needed - found.devices.keys())]
    for name in sorted(needed & found.devices.keys()) if first else ():
        if name in first.devices and found.devices[name] != first.devices[name]:
            told.append(f"{found.devices[name][1]} and not {first.devices[name][1]} as the others")
    return f"it has {', '.join(told)}" if told else ""


def connect(address: str, seconds: float):
    """A client of the scheduler, as quiet as the rest of this program. Raises ClusterError."""
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(f"{VARIABLE} is set, and a cluster needs Dask: pip install distributed==2026.8.0") from None
    for name in ("distributed", "tornado"):  # what matters is said by look()
        for each in (name, *(known for known in logging.root.manager.loggerDict if known.startswith(name + "."))):
            logging.getLogger(each).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module="distributed")  # other versions, large states
    try:
        return Client(address, timeout=seconds, set_as_default=False, name="ablation-lab")
    except Exception as error:  # of the network, or of an answer that is no scheduler's
        why = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise ClusterError(
            f"{VARIABLE} is {address}, where no Dask scheduler answers ({why[0].rstrip('.')}): {ALLOWED}.",
            "The cluster that is to train here does not answer.",
        ) from None


def _end(client):
    with suppress(Exception):  # it may be gone already
        client.close(timeout=ANSWER)


def _deliver(there, here: Future):
    """Hand on what has come of a call."""
    with suppress(InvalidStateError):  # cancelled meanwhile
        try:
            here.set_result(there.result())
        except CancelledError:
            here.cancel()
        except Exception as error:
            here.set_exception(BrokenProcessPool(str(error)) if type(error).__name__ in KILLED else error)


def _in_words(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"it cannot import this project ({error}): start it in the repository's folder with PYTHONPATH=."
    return f"it cannot say what it computes with ({type(error).__name__}: {error})"
