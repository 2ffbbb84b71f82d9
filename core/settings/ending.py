"""What is done when this process ends, before Python waits for its threads and takes itself apart."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import process  # noqa: F401  (what is registered last is called first: before its pools are waited for)

LONGEST = 2.0  # seconds that threads are waited for
_over = threading.Event()
_calls: list[Callable[[], object]] = []
_threads: list[threading.Thread] = []
_others: list[Callable[[], Iterable[threading.Thread]]] = []


def at_end(call: Callable[[], object]) -> None:
    """Have something called then.

    atexit comes too late: before it, Python waits for pools of processes, which wait for workers that have yet to load torch.
    """
    _calls.append(call)


def wait_for(found: Callable[[], Iterable[threading.Thread]]) -> None:
    """Have those threads waited for that are found then.

    A thread that still loads a library, or computes, while Python takes itself apart, may end the process with a fault.
    """
    _others.append(found)


def later(seconds: float, *calls: Callable[[], object]) -> None:
    """Make some calls in a thread of their own, after so many seconds, one after the other, unless the process ends before."""

    def work() -> None:
        if _over.wait(seconds):
            return
        for call in calls:
            if not _over.is_set():
                call()

    _threads.append(threading.Thread(target=work, daemon=True))
    _threads[-1].start()


def begin() -> None:
    """Make the calls now, once: for who knows that this process ends, and perhaps before Python has time to take itself apart."""
    if not _over.is_set():
        _over.set()
        for call in _calls:
            call()


def _end() -> None:
    begin()
    end = time.monotonic() + LONGEST
    for each in [*_threads, *(thread for found in _others for thread in found())]:
        each.join(max(0.0, end - time.monotonic()))


threading._register_atexit(_end)  # type: ignore[attr-defined]  # not public, and nothing public comes early enough
