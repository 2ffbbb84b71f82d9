"""Trainings on a Dask cluster: the same jobs, in the threads of all workers that a scheduler has now.

Nothing is trained on a worker before it has said what it computes with: rows are the same to the last bit only where
that is the same. Workers may come and go at any time, and so may, for a while, the scheduler.
"""

import os
import pickle
import re
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, TypeVar

from core.settings.device import Machine
from core.settings.ending import at_end
from core.settings.process import versions
from core.settings.setting import ConfigError
from core.train.run import State
from core.workers import scheduler, worker
from core.workers.origin import Origin, origin, unknown, unlike
from core.workers.pool import ProcessPool
from core.workers.protocol import WorkerPool
from core.workers.pulse import Silence
from core.workers.queue import Queue
from core.workers.scheduler import ALLOWED, VARIABLE, ClusterError, DaskFuture

T = TypeVar("T")
LONGER = 2  # times as long as on this machine a chunk takes: a megabyte's way there and back takes 40 ms
LOOK = 1.0  # seconds from one look at the workers to the next
GRACE = 60.0  # seconds for which a scheduler may be gone


class ClusterLost(ClusterError):
    """The scheduler has been gone for too long."""


def pool(count: int | None = None) -> WorkerPool:
    """Processes of this machine, or the cluster whose address DASK_SCHEDULER_ADDRESS holds. Raises ClusterError.

    count: how many processes; on a cluster, how many of its threads at most.
    """
    address = os.environ.get(VARIABLE, "").strip()
    return Cluster(address, count) if address else ProcessPool(count)


class Cluster(Queue):
    """The workers of a scheduler. count changes whenever look() is called; jobs that wait go on as soon as it is above 0."""

    def __init__(self, address: str, most: int | None = None) -> None:
        if not re.fullmatch(r"[a-z]+://[^\s/]+:\d{1,5}", address):
            raise ClusterError(f"{VARIABLE} is no address: {ALLOWED}.")
        super().__init__(0)
        self.address, self.most = address, most
        self._members: dict[str, int] = {}  # addresses of workers that train -> threads
        self._asked: dict[str, Future[Origin]] = {}  # address -> of its Origin
        self._found: dict[str, Origin | str] = {}  # address -> its Origin, or why it has none
        self._told: dict[str, str] = {}  # address -> why it is left out, as far as that has been said
        self._silence: Silence[str] = Silence(
            self.news, "The worker {who}", "The worker {who} is left out until it answers"
        )
        self._needed: set[str] = set()  # devices
        self._like: Origin | None = None  # of the first worker that trained; all others must be like it
        self._calls: dict[
            Future[Any], tuple[DaskFuture, set[str]]
        ] = {}  # under way -> (Dask's future, addresses of those that may do it)
        self._client = scheduler.connect(address, scheduler.CONNECT)
        self._answered, self._next, self._absent = time.monotonic(), 0.0, ""
        _all.add(self)

    def require(self, machine: Machine) -> None:
        self._needed.add(machine.device)

    def versions(self) -> dict[str, str]:
        return self._like.versions if self._like else versions()

    def device_of(self, machine: Machine) -> str:
        return self._device(machine)[0]

    def device_name(self, machine: Machine) -> str:
        return self._device(machine)[1]

    def _device(self, machine: Machine) -> tuple[str, str]:
        devices = self._like.devices if self._like else {}
        if machine.device not in devices:
            raise ConfigError("device", f"device is {machine.device}, which the workers do not have.")
        return devices[machine.device]

    def train(self, states: list[State], seconds: float) -> Future[bytes]:
        return self.submit(worker.train_chunk, pickle.dumps(states), LONGER * seconds)

    def submit(self, call: Callable[..., T], *given: object) -> Future[T]:
        """Have a call run by any of the workers. Raises CancelledError while there are none.

        Its future can be cancelled without waiting for the scheduler, unlike those of Dask's own executor: jobs do so
        while they hold the lock for which the thread may wait that talks to the scheduler.
        """
        with self.lock:
            if not self._members:
                raise CancelledError("no worker is there")
            there, here = self._send(list(self._members), call, *given)
            self._calls[here] = there, set(self._members)
        here.add_done_callback(self._forget)
        return here

    def turn(self) -> None:
        self.hand_out()

    def close(self) -> None:
        self.stop_all()
        self._call_off()
        scheduler.end(self._client)

    def _send(self, addresses: list[str], call: Callable[..., T], *given: object) -> tuple[DaskFuture, Future[T]]:
        """-> Dask's future, and one that can be cancelled. Raises CancelledError without a connection."""
        packed, client = pickle.dumps(scheduler.Call(call, given)), self._client
        here: Future[T] = Future()
        try:
            there = client.submit(pickle.loads, packed, pure=False, workers=addresses)
            there.add_done_callback(lambda there: scheduler.deliver(client, there, here))
        except Exception as error:  # the connection has gone; look() will say so
            raise CancelledError from error
        return there, here

    def _forget(self, here: Future[Any]) -> None:
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
        present = self._workers()
        if present is None:
            self._asked, self._found = {}, {}
            self._call_off()
            if time.monotonic() - self._answered > GRACE:
                silent = f"has not answered for {GRACE:.0f} s. What was stored is safe"
                raise ClusterLost(
                    f"The Dask scheduler at {self.address} {silent}: "
                    "give the same command again when it is back, or without the variable to train on this machine.",
                    f"The Dask scheduler {silent}.",
                )
            return "the scheduler does not answer"
        self._answered = time.monotonic()
        threads = {address: each["nthreads"] for address, each in present.items()}
        self._ask(threads)
        # When the scheduler last heard of each, by its own clock: it is only looked at whether that changes.
        hung = self._silence.look({address: each["last_seen"] for address, each in present.items()})
        self.silence = self._silence.sentence
        self._admit({address: threads[address] for address in self._found.keys() - hung if not self._left_out(address)})
        self._take_from(hung)
        return "" if self.count else "no worker is ready" if threads else "no worker is there"

    def _take_from(self, hung: set[str]) -> None:
        """What they have in hand is to be done again, by others: the scheduler would wait for minutes."""
        if not hung:
            return
        with suppress(Exception):  # the connection has gone; the next look sees it
            keys = set()
            for call in (
                self._client.scheduler.processing,
                self._client.scheduler.has_what,
            ):  # what it does, and has done
                held = self._client.sync(call, workers=list(hung), callback_timeout=scheduler.ANSWER)
                keys |= {key for several in held.values() for key in several}
            with self.lock:
                lost = [here for here, (there, _) in self._calls.items() if there.key in keys]
            scheduler.give_up(lost)

    def _workers(self) -> dict[str, dict[str, Any]] | None:
        """Address -> what the scheduler knows of each worker; None where it does not answer."""
        try:
            if self._client.status != "running":
                scheduler.end(self._client)
                self._client = scheduler.connect(self.address, scheduler.ANSWER)
            known = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=scheduler.ANSWER)
            return dict(known["workers"])
        except Exception:  # whatever a broken connection looks like
            return None

    def _ask(self, there: dict[str, int]) -> None:
        """Ask those who are new what they are, forget those who are gone, and take down the answers."""
        for kept in (self._asked, self._found, self._told):
            for address in kept.keys() - there.keys():
                del kept[address]
        for address in there.keys() - self._asked.keys():
            with suppress(CancelledError):
                _, self._asked[address] = self._send([address], origin)
        for address, answer in list(self._asked.items()):
            if answer.cancelled():  # with a connection; asked again
                del self._asked[address]
            elif answer.done() and address not in self._found:
                error = answer.exception()
                self._found[address] = unknown(error) if error else answer.result()

    def _left_out(self, address: str) -> str:
        """Why nothing is trained on a worker, or ""; said once."""
        found = self._found[address]
        why = found if isinstance(found, str) else unlike(found, origin(), self._like, self._needed)
        if why and self._told.get(address) != why:
            self._told[address] = why
            self.news.append(f"The worker {address} is left out: {why}.")
        self._like = self._like or (None if why or isinstance(found, str) else found)
        return why

    def _admit(self, members: dict[str, int]) -> None:
        """From now on these train; what only others could have done is to be done again."""
        with self.lock:
            self._members = members
            self.count = min(sum(members.values()), self.most or sum(members.values()))
            lost = [here for here, (_, addresses) in self._calls.items() if not addresses & members.keys()]
        scheduler.give_up(lost)

    def _call_off(self) -> None:
        """Nobody is there to ask, which says nothing of the workers: what they may have in hand is to be done again."""
        with self.lock:
            self._members, self.count = {}, 0
            calls = list(self._calls)
        for here in calls:
            here.cancel()


_all: "weakref.WeakSet[Cluster]" = weakref.WeakSet()


def _close_all() -> None:
    """Nothing is left under way on a cluster when this process ends."""
    for cluster in list(_all):
        cluster.close()


at_end(_close_all)
