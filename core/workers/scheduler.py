"""What is sent to a Dask scheduler, and what comes back from it."""

import logging
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

from core.settings.errors import ServerError

T = TypeVar("T")
DaskClient = Any  # Dask need not be installed
DaskFuture = Any
VARIABLE = "DASK_SCHEDULER_ADDRESS"
ALLOWED = "write the address of a scheduler, such as tcp://10.0.0.1:8786"
CONNECT = 10.0  # seconds in which the scheduler must answer at first
ANSWER = 3.0  # and later on; nothing is stored meanwhile
KILLED = ("KilledWorker", "NoValidWorkerError", "NoWorkerError")  # Dask has tried a call again, in vain


class ClusterError(ServerError):
    """The cluster cannot be used; the message says why, and what would be right."""


class Call:
    """A call that is made where its bytes are unpickled: the scheduler, which sees only bytes, need not have this project."""

    def __init__(self, call: Callable[..., object], given: tuple[object, ...]) -> None:
        self.call, self.given = call, given

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call, self.given


def connect(address: str, seconds: float) -> DaskClient:
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
        client: DaskClient = Client(address, timeout=seconds, set_as_default=False, name="ablation-lab")  # type: ignore[no-untyped-call]  # Dask's
        return client
    except Exception as error:  # of the network, or of an answer that is no scheduler's
        why = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise ClusterError(
            f"{VARIABLE} is {address}, where no Dask scheduler answers ({why[0].rstrip('.')}): {ALLOWED}.",
            "The cluster that is to train here does not answer.",
        ) from None


def end(client: DaskClient) -> None:
    with suppress(Exception):  # it may be gone already
        client.close(timeout=ANSWER)


def deliver(client: DaskClient, there: DaskFuture, here: Future[Any]) -> None:
    """Hand on what has come of a call. there: Dask's future, which is done.

    A result is asked for by itself and in a thread of its own. There is one thread for all that is done when Dask's
    futures are, and it would wait, for all of them, for a worker that hangs with a result.
    """
    if there.status == "finished":
        Thread(target=_hand_on, args=(here, lambda: _result(client, there)), daemon=True).start()
    elif there.status == "error":
        _hand_on(here, lambda: _raised(client, there))
    else:  # lost with the connection, whose end nobody can ask any more
        here.cancel()


def give_up(calls: list[Future[Any]]) -> None:
    """The workers that had them are gone, or hang: to whoever waits it is as if they had been killed."""
    for here in calls:
        with suppress(InvalidStateError):  # done meanwhile
            here.set_exception(BrokenProcessPool("its workers are gone"))


def _result(client: DaskClient, there: DaskFuture) -> Any:
    """Raises CancelledError where it has been lost."""
    try:
        return client.sync(client.scheduler.gather, keys=[there.key])["data"][there.key]
    except Exception as error:  # the connection has gone, or the worker
        raise CancelledError from error


def _raised(client: DaskClient, there: DaskFuture) -> Any:
    """Raises what the call has raised, and CancelledError where the connection has ended: then it cannot be known."""
    try:
        return there.result()
    except Exception as error:
        if client.status != "running":
            raise CancelledError from error
        raise


def _hand_on(here: Future[T], result: Callable[[], T]) -> None:
    with suppress(InvalidStateError):  # cancelled meanwhile
        try:
            here.set_result(result())
        except CancelledError:
            here.cancel()
        except Exception as error:
            here.set_exception(BrokenProcessPool(str(error)) if type(error).__name__ in KILLED else error)
