"""Clean-up of a process before Python waits for its threads."""

import threading
import time
from collections.abc import Callable, Iterable

# Exit functions run in reverse order. As it is imported here, this one waits for its pools after
# our clean-up.
from concurrent.futures import process  # noqa: F401

LONGEST = 2.0  # seconds that threads are waited for
_is_over = threading.Event()
_calls: list[Callable[[], object]] = []
_threads: list[threading.Thread] = []
_others: list[Callable[[], Iterable[threading.Thread]]] = []


def at_end(call: Callable[[], object]) -> None:
    """Register a function to be called when the process ends.

    atexit comes too late: before it, Python waits for pools, whose workers may still load torch.
    """
    _calls.append(call)


def wait_at_end(find_threads: Callable[[], Iterable[threading.Thread]]) -> None:
    """Register a function whose threads are waited for when the process ends, 2 s in all.

    A thread that loads a library or computes while Python takes itself apart may crash the process.
    """
    _others.append(find_threads)


def run_later(seconds: float, *calls: Callable[[], object]) -> None:
    """Run calls in a daemon thread after so many seconds, in order, unless the process ends."""

    def work() -> None:
        if _is_over.wait(seconds):
            return
        for call in calls:
            if not _is_over.is_set():
                call()

    thread = threading.Thread(target=work, daemon=True)
    _threads.append(thread)
    thread.start()


def run_exit_calls() -> None:
    """Run the calls registered by at_end now; they run only once, so not at the end again."""
    if not _is_over.is_set():
        _is_over.set()
        for call in _calls:
            call()


def _end() -> None:
    """Run the exit calls, then wait for the registered threads, at most 2 s in all."""
    run_exit_calls()
    end = time.monotonic() + LONGEST
    for thread in [*_threads, *(thread for find_threads in _others for thread in find_threads())]:
        thread.join(max(0.0, end - time.monotonic()))


threading._register_atexit(_end)  # type: ignore[attr-defined]  # nothing public comes early enough
