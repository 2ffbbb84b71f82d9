"""Process-wide caches: bounded, computed once for all threads, locked per key."""

import gc
import threading

import pytest

from core.settings.cache import CacheGroup, LRUCache, cached, make_once
from core.settings.progress import report_progress, report_to
from tests.test_long_questions import UserLeftError, leave_after


def test_cache_keeps_latest_up_to_its_size():
    cache = LRUCache(10 / 2**20)
    built = []

    def get(key, size):
        return cache.get(key, lambda: (built.append(key) or key, size))

    assert [get(key, 4) for key in "abab"] == list("abab") and built == ["a", "b"]
    get("c", 4)  # evicts the least recently used
    get("b", 4)
    get("a", 4)
    assert built == ["a", "b", "c", "a"] and cache.bytes == 8
    get("too large", 11)
    get("too large", 11)
    assert built.count("too large") == 2 and set(cache.entries) == {"a", "b"}
    cache.store("a", "new", 3)
    assert cache.peek("a") == "new" and cache.bytes == 7 and cache.peek("c") is None


def test_grouped_caches_evict_least_recently_used():
    group = CacheGroup(10 / 2**20)
    first, second, third = (LRUCache(8 / 2**20, group) for _ in range(3))
    first.store("a", "a", 3)
    second.store("b", "b", 3)
    assert first.peek("a")
    third.store("c", "c", 6)
    assert first.peek("a") and not second.bytes and third.bytes == 6
    del third
    gc.collect()
    second.store("d", "d", 7)
    assert first.peek("a") and second.peek("d")


def test_cached_function_is_called_once_per_arguments():
    called = []

    @cached(megabytes=10 / 2**20, size=len)
    def repeat(text, times):
        called.append(text)
        return text * times

    assert [repeat("ab", 2), repeat("ab", 2), repeat("abc", 2)] == ["abab", "abab", "abcabc"]
    assert called == ["ab", "abc"] and repeat.__name__ == "repeat"
    assert repeat.__wrapped__("ab", 2) == "abab" and called.count("ab") == 2


@pytest.mark.parametrize("kind", ["cache", "once"])
def test_threads_wait_for_a_result_in_progress(kind):
    cache = LRUCache(1)
    begun = threading.Event()
    on = threading.Event()
    built = []

    def make():
        begun.set()
        on.wait(20)
        built.append(object())
        return built[-1], 1

    call = make_once(make) if kind == "once" else lambda: cache.get("sweep", make)
    actual = []
    users = [threading.Thread(target=lambda: actual.append(call())) for _ in range(4)]
    for user in users:
        user.start()
        begun.wait()
    on.set()
    for user in users:
        user.join()
    assert len(built) == 1 and len(set(map(id, actual))) == 1
    if kind == "once":
        call.clear()
        assert call()[0] is built[1]


def test_waiting_user_can_leave_and_next_continues():
    cache = LRUCache(1)
    begun = threading.Event()
    on = threading.Event()

    def make():
        begun.set()
        on.wait()
        report_progress(0.5, "half")
        return "made", 1

    def first():
        with report_to(leave_after(0)), pytest.raises(UserLeftError):
            cache.get("sweep", make)

    user = threading.Thread(target=first)
    user.start()
    begun.wait()
    with report_to(leave_after(0)), pytest.raises(UserLeftError):
        cache.get("sweep", make)
    on.set()
    user.join()
    assert cache.get("sweep", make) == "made" and not cache._making
