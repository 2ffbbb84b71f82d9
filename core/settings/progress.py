"""Progress: what takes long says now and then how far it is, and whoever watches it may end it then, by raising."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

WAIT = 0.5  # seconds between two signs of somebody who waits

Told = Callable[[float | None, str], None]  # (share that is done, of what)

_watcher: ContextVar[Told | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(by: Told) -> Iterator[None]:
    """Whatever runs in here tells `by` how far it is."""
    before = _watcher.set(by)
    try:
        yield
    finally:
        _watcher.reset(before)


def tell(share: float | None, what: str) -> None:
    """Say which share is done of what, in words; None: it is not known."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(share, what)


@contextmanager
def told_as(share: float, what: str) -> Iterator[None]:
    """Whatever runs in here is part of something larger: that is what is told of it."""
    watcher = _watcher.get()
    with watched(lambda *_: watcher and watcher(share, what)):
        yield


@contextmanager
def turn(lock: Lock, what: str) -> Iterator[None]:
    """Hold a lock. Who waits for it says so: what it waits for, in words; whoever watches may end that."""
    while not lock.acquire(timeout=WAIT):
        tell(None, what)
    try:
        yield
    finally:
        lock.release()
