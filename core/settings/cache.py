"""Caches that all users of a process share, bounded by bytes and safe to use from many threads."""

import functools
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, TypeVarTuple, cast

import cachetools

from core.settings.progress import hold_lock

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class Cached(Protocol[*Arguments, Result]):
    """Function whose results are cached; `__wrapped__` computes anew."""

    cache: "LRUCache"
    __wrapped__: Callable[[*Arguments], Result]

    def __call__(self, *arguments: *Arguments) -> Result:
        """Return the result for these arguments, from the cache if it is there."""


class CacheGroup:
    """Caches that share a limit: the one that was not used for longest is emptied first."""

    def __init__(self, megabytes: float):
        self.max_bytes = megabytes * 2**20
        self.caches: weakref.WeakSet[LRUCache] = weakref.WeakSet()
        self._lock = threading.Lock()

    def add(self, cache: "LRUCache") -> None:
        """Add a cache to those that share the limit."""
        with self._lock:
            self.caches.add(cache)

    def make_room(self, latest: "LRUCache") -> None:
        """Empty caches other than `latest`, least recently used first, until all fit."""
        with self._lock:
            caches = sorted(self.caches, key=lambda cache: cache.used)
        for cache in caches:
            if sum(cache.bytes for cache in caches) <= self.max_bytes:
                return
            if cache is not latest:
                cache.clear()


class LRUCache:
    """Cache bounded by bytes: the least recently used entries are evicted first.

    A result that is larger than the whole cache is not stored.
    """

    def __init__(self, megabytes: float, group: CacheGroup | None = None):
        self.entries: cachetools.LRUCache[Hashable, tuple[Any, int]] = cachetools.LRUCache(
            megabytes * 2**20, getsizeof=itemgetter(1)
        )
        self.used = 0.0  # time.monotonic() of the last use
        self._lock = threading.RLock()
        self._making: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()
        self._group = group
        if group:
            group.add(self)

    @property
    def bytes(self) -> float:
        """Size of all entries together, in bytes."""
        return self.entries.currsize

    def clear(self) -> None:
        """Evict every entry."""
        with self._lock:
            self.entries.clear()

    def peek(self, key: Hashable) -> Any:
        """Return the result stored under a key, or None; it counts as used."""
        entry = self._find(key)
        return entry[0] if entry else None

    def store(self, key: Hashable, value: Any, size: int) -> None:
        """Replace the result under a key; one larger than the cache only removes the old one."""
        with self._lock:
            self.used = time.monotonic()
            self.entries.pop(key, None)
            if size <= self.entries.maxsize:
                self.entries[key] = value, size
        if self._group:
            self._group.make_room(self)

    def get(self, key: Hashable, make: Callable[[], tuple[Result, int]]) -> Result:
        """Return the result under a key; if missing, make it, while threads that want it wait.

        Args:
            key: Key of the result.
            make: Returns the result and its bytes.
        """
        entry = self._find(key)
        if entry is None:
            with self._lock:
                making = self._making.setdefault(key, threading.Lock())
            with hold_lock(making, "waiting for an identical request"):
                entry = self._find(key)
                if entry is None:
                    entry = make()
                    self.store(key, *entry)
        return cast(Result, entry[0])

    def _find(self, key: Hashable) -> tuple[Any, int] | None:
        """Return a stored value and its size, or None; note the time of use."""
        with self._lock:
            self.used = time.monotonic()
            return self.entries.get(key)


def cached(
    megabytes: float, size: Callable[[Any], int]
) -> Callable[[Callable[[*Arguments], Result]], Cached[*Arguments, Result]]:
    """Return a decorator that caches results by positional arguments, in at most `megabytes`.

    A megabyte is 2²⁰ bytes; `size` returns the bytes of one result.
    """

    def decorate(function: Callable[[*Arguments], Result]) -> Cached[*Arguments, Result]:
        cache = LRUCache(megabytes)

        def make(arguments: tuple[*Arguments]) -> tuple[Result, int]:
            result = function(*arguments)
            return result, size(result)

        @functools.wraps(function)
        def call(*arguments: *Arguments) -> Result:
            return cache.get(arguments, lambda: make(arguments))

        call.cache = cache  # type: ignore[attr-defined]
        return cast(Cached[*Arguments, Result], call)

    return decorate


def make_once(make: Callable[..., Result]) -> Any:
    """Decorate a function so that it runs once per process and arguments; others wait for it.

    Not st.cache_resource, which a user can empty: workers would start again beside the old ones.
    """
    call: Any = cachetools.cached(cache={}, condition=threading.Condition())(make)
    call.clear = call.cache_clear
    return call


if TYPE_CHECKING:
    LazyProperty = functools.cached_property
else:

    class LazyProperty(functools.cached_property):
        """functools.cached_property without its lock: before Python 3.12 all instances share one.

        While something long is computed for one user, all others would wait.
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
