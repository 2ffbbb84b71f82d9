"""Progress: what takes long says now and then how far it is, and whoever watches it may end it then, by raising. And turns: who
waits for somebody else says so."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
def turn(lock: threading.Lock, what: str) -> Iterator[None]:
    """Hold a lock. Who waits for it says so: what it waits for, in words; whoever watches may end that."""
    if not lock.acquire(blocking=False):
        large.let_go()  # who has it may be waiting for that room
        while not lock.acquire(timeout=WAIT):
            tell(None, what)
    try:
        yield
    finally:
        lock.release()


class _Mine(threading.local):
    keeps = False  # whether this thread holds what its runs have made


class Large:
    """Large runs go one at a time. What each has made is as large while its page is drawn: within `held` it counts until then, and
    who comes waits as long as it would be too much together with that, in the order in which they came. Whoever holds something
    waits for nobody who holds nothing, and who has held something for longest for nobody to let go: no two wait for each other."""

    def __init__(self) -> None:
        self._changed, self._running = threading.Condition(), False
        self._held: dict[int, int] = {}  # thread -> bytes; who came first stands first
        self._waiting: dict[int, None] = {}  # threads, in their order
        self._mine = _Mine()

    @contextmanager
    def run(self, needed: int, most: int, what: str) -> Iterator[None]:
        """A run that needs so many bytes, where all together may have `most`. what: it waits for, in words."""
        me = threading.get_ident()
        try:
            while not self._begun(me, needed, most):
                tell(None, what)
        finally:
            with self._changed:
                self._waiting.pop(me, None)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running = False
                if not self._mine.keeps:
                    self._held.pop(me, None)
                self._changed.notify_all()

    def _begun(self, me: int, needed: int, most: int) -> bool:
        def may() -> bool:
            others = sum(held for who, held in self._held.items() if who != me)
            comes_next = me in self._held or next(iter(self._waiting)) == me
            fits = next(iter(self._held), me) == me or others + needed <= most
            return not self._running and comes_next and fits

        with self._changed:
            self._waiting.setdefault(me)
            if not self._changed.wait_for(may, WAIT):
                return False
            self._running = True
            self._held[me] = max(needed, self._held.get(me, 0))
            return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """What large runs in here have made is held to the end."""
        self._mine.keeps = True
        try:
            yield
        finally:
            self._mine.keeps = False
            self.let_go()

    def let_go(self) -> None:
        """What this thread has made counts no longer."""
        with self._changed:
            self._held.pop(threading.get_ident(), None)
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nothing runs, and nobody holds anything."""
        return not (self._running or self._held)


large = Large()  # in this process
