"""What is kept instead of made again: the results of late, within so many megabytes, and what there is once in a process."""

import functools
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar, TypeVarTuple, cast, overload

from core.settings.progress import turn

Given = TypeVarTuple("Given")  # the arguments: by their places, never by their names
Result = TypeVar("Result")


class Cached(Protocol[*Given, Result]):
    """A function whose results are kept."""

    cache: "LRUCache"
    __wrapped__: Callable[[*Given], Result]

    def __call__(self, *given: *Given) -> Result: ...


class Once(Protocol[*Given, Result]):
    """A function that makes what there is once in a process."""

    clear: Callable[[], None]
    __wrapped__: Callable[[*Given], Result]

    def __call__(self, *given: *Given) -> Result: ...


class Lazily(Generic[Result]):
    """Decorator `lazily`: functools.cached_property without its lock.

    Before Python 3.12 that is one lock for all objects of a class: while something long is computed for one visitor, all the
    others wait. Here two threads that ask one object at the same time may both compute.
    """

    def __init__(self, make: Callable[[Any], Result]) -> None:
        self.make, self.name, self.__doc__ = make, make.__name__, make.__doc__

    @overload
    def __get__(self, of: None, kind: type) -> Self: ...

    @overload
    def __get__(self, of: object, kind: type | None = None) -> Result: ...

    def __get__(self, of: object | None, kind: type | None = None) -> Self | Result:
        if of is None:
            return self
        made = of.__dict__[self.name] = self.make(of)  # found there from now on, before this is asked
        return made


lazily = Lazily


class _Turn:
    """Whoever wants what is kept under a key, and what the first of them has made."""

    def __init__(self) -> None:
        self.lock, self.people = threading.Lock(), 0
        self.result: tuple[Any, int] | None = None


class Together:
    """How many megabytes several caches may have. Where that is too little, they are emptied, first the one not used for longest."""

    def __init__(self, megabytes: float):
        self.max_bytes = int(megabytes * 2**20)
        self._caches: weakref.WeakSet[LRUCache] = weakref.WeakSet()
        self._lock = threading.Lock()

    def add(self, cache: "LRUCache") -> None:
        with self._lock:
            self._caches.add(cache)

    def make_room(self, latest: "LRUCache") -> None:
        """For what has just been put into one of them, which loses nothing."""
        with self._lock:
            caches = sorted(self._caches, key=lambda each: each.used)
            for other in (each for each in caches if each is not latest):
                while sum(each.bytes for each in caches) > self.max_bytes and other.drop():
                    pass


class LRUCache:
    """The most recently used results, as many as there is room for. Safe to use from several threads.

    alone: how many megabytes one may have that leaves no room for any other; together: with which other caches it shares.
    """

    def __init__(self, megabytes: float, alone: float = 0, together: Together | None = None):
        self.max_bytes = int(megabytes * 2**20)
        self.max_alone = max(self.max_bytes, int(alone * 2**20))
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._turns: dict[Hashable, _Turn] = {}
        self._lock = threading.Lock()
        self._together, self.used = together, 0.0  # when it was used last: time.monotonic()
        if together:
            together.add(self)

    @property
    def bytes(self) -> int:
        return self._bytes

    def drop(self) -> bool:
        """Throw out what was used the longest ago -> whether there was anything."""
        with self._lock:
            if not self._kept:
                return False
            self._bytes -= self._kept.popitem(last=False)[1][1]
            return True

    def peek(self, key: Hashable) -> Any:
        """What is kept under the key, or None. Looked at is used: it is thrown out later."""
        with self._lock:
            if key not in self._kept:
                return None
            self.used = time.monotonic()
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value in place of what was kept under the key; one for which there is no room is not kept."""
        with self._lock:
            if key in self._kept:
                self._bytes -= self._kept.pop(key)[1]
            if size <= self.max_alone:
                self._kept[key] = (value, size)
                self._bytes += size
                self.used = time.monotonic()
            while self._bytes > self.max_bytes and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][1]
        if self._together:
            self._together.make_room(self)

    def get(self, key: Hashable, make: Callable[[], tuple[Result, int]]) -> Result:
        """The result of make() -> (value, bytes), kept under the key for the next time.

        Who asks while it is being made waits for it, and is handed it even where there is no room to keep it.
        """
        with self._turn(key) as waiting:
            with self._lock:
                if key in self._kept:
                    self.used = time.monotonic()
                    self._kept.move_to_end(key)
                    kept: Result = self._kept[key][0]
                    return kept
            if waiting.result is None:
                waiting.result = make()
                self.put(key, *waiting.result)
            return waiting.result[0]

    @contextmanager
    def _turn(self, key: Hashable) -> Iterator[_Turn]:
        """One at a time for each key."""
        with self._lock:
            waiting = self._turns.setdefault(key, _Turn())
            waiting.people += 1
        try:
            with turn(waiting.lock, "another visitor has just asked for the same, which is being computed"):
                yield waiting
        finally:
            with self._lock:
                waiting.people -= 1
                if not waiting.people:
                    del self._turns[key]


def cached(
    megabytes: float, size: Callable[[Any], int], alone: float = 0
) -> Callable[[Callable[[*Given], Result]], Cached[*Given, Result]]:
    """For a function whose results are kept under its arguments, up to so many megabytes; one by itself, up to `alone`.

    size: result -> its bytes. Without: function.__wrapped__. What is kept: function.cache.
    """

    def decorate(function: Callable[[*Given], Result]) -> Cached[*Given, Result]:
        def sized(given: tuple[*Given]) -> tuple[Result, int]:
            result = function(*given)
            return result, size(result)

        @functools.wraps(function)
        def call(*given: *Given) -> Result:
            return caching.cache.get(given, lambda: sized(given))

        caching = cast(Cached[*Given, Result], call)
        caching.cache = LRUCache(megabytes, alone)
        return caching

    return decorate


def once(make: Callable[[*Given], Result]) -> Once[*Given, Result]:
    """Decorator: what is made for given arguments is made once, by whoever comes first; the others wait for it.

    Not st.cache_resource, which any browser can have emptied: worker processes would be started again beside the old ones.
    """
    things: dict[tuple[*Given], Result] = {}
    lock = threading.RLock()

    @functools.wraps(make)
    def get(*given: *Given) -> Result:
        with lock:
            if given not in things:
                things[given] = make(*given)
            return things[given]

    keeping = cast(Once[*Given, Result], get)
    keeping.clear = things.clear
    return keeping
