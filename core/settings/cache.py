"""Recent results, kept up to a number of megabytes in all."""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable


class LRUCache:
    """The most recently used results, as many as there is room for. Safe to use from several threads."""

    def __init__(self, megabytes: float):
        self.max_bytes = int(megabytes * 2**20)
        self._kept: OrderedDict = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def peek(self, key):
        """What is kept under the key, or None. Looked at is used: it is thrown out later."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key, value, size: int):
        """Keep a value in place of what was kept under the key."""
        with self._lock:
            if key in self._kept:
                self._bytes -= self._kept.pop(key)[1]
        self.get(key, lambda: (value, size))

    def get(self, key, make):
        """The result of make() -> (value, bytes), kept under the key for the next time."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value, size = make()
        with self._lock:
            if key not in self._kept and size <= self.max_bytes:
                self._kept[key] = (value, size)
                self._bytes += size
            while self._bytes > self.max_bytes:
                self._bytes -= self._kept.popitem(last=False)[1][1]
        return value


def cached(megabytes: float, size: Callable):
    """For a function whose results are kept under its arguments, up to so many megabytes. size: result -> its bytes.

    Without: function.__wrapped__. What is kept: function.cache.
    """

    def decorate(function):
        def sized(given):
            result = function(*given)
            return result, size(result)

        @functools.wraps(function)
        def call(*given):
            return call.cache.get(given, lambda: sized(given))

        call.cache = LRUCache(megabytes)
        return call

    return decorate
