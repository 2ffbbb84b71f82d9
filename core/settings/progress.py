"""Progress of long computations, reported to a watcher while a user waits.

A watcher may end a computation by raising.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Watcher = Callable[[float | None, str], None]  # (share that is done, description)

WAIT = 0.5  # seconds between two messages of a thread that waits

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def report_to(watcher: Watcher) -> Iterator[None]:
    """Call watcher(share or None, description) for each progress report in the context."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def report_progress(share: float | None, description: str) -> None:
    """Report a share (0 to 1) that is done, None if unknown, to the watcher, if there is one."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(share, description)


@contextmanager
def report_as(share: float, description: str) -> Iterator[None]:
    """Replace each progress report made in the context by this share and description."""
    watcher = _watcher.get()
    with report_to(lambda *_: watcher and watcher(share, description)):
        yield


def track(items: Iterable[T], n: int, description: str) -> Iterator[T]:
    """Yield the items and report, after each, the share of n > 0 that is done."""
    for done, item in enumerate(items, 1):
        yield item
        report_progress(done / n, description)


def step_counter(n: int, description: str) -> Callable[[], None]:
    """Return a function to call after each of n steps, which reports the progress."""
    left = track(range(n), n, description)
    next(left)

    def step() -> None:
        next(left, None)

    return step


@contextmanager
def hold_lock(lock: threading.Lock, description: str) -> Iterator[None]:
    """Hold a lock in the context; report the description while waiting for it."""
    while not lock.acquire(timeout=WAIT):
        report_progress(None, description)
    try:
        yield
    finally:
        lock.release()
