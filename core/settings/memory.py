"""Memory: the limit of a run, from the container's, and how freed memory is reused."""

import ctypes
import functools
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from core.settings.environment import read_whole_number
from core.settings.progress import hold_lock

LEAST_MAX_MB = 200
DEFAULT_MAX_MB = 1024
HEAVY = 64 << 20  # bytes from which on runs go one at a time
PIECE = 2 << 20  # numbers of a large table that are computed at once
GROUPS = Path("/sys/fs/cgroup")
_heavy_run = threading.Lock()


class MemoryLimitError(ValueError):
    """Run that would need more memory than allowed; the message gives both figures."""


def max_mb() -> int:
    """Return a run's limit in MB (2²⁰): ABLATION_MAX_MB, or a third of memory, 200 to 1,024."""
    return read_whole_number("ABLATION_MAX_MB", _default_max_mb())


@functools.cache
def _default_max_mb() -> int:
    """Return the default limit of a run in MB: a third of memory, at least 200, at most 1,024."""
    return max(LEAST_MAX_MB, min(DEFAULT_MAX_MB, machine_mb() // 3))


def machine_mb() -> int:
    """Return the memory of this machine or container in MB; a terabyte if unknown."""
    limits = [1 << 20]
    with suppress(AttributeError, ValueError, OSError):  # not on Windows
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20)
    for file in _limit_files():
        with suppress(OSError, ValueError):  # "max": as much as there is
            limits.append(int(file.read_text()) >> 20)
    return min(limits)


def _limit_files() -> list[Path]:
    """Return the files that may hold this process's memory limit, of cgroups version 1 and 2."""
    files = [GROUPS / "memory.max", GROUPS / "memory" / "memory.limit_in_bytes"]
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                files.append(GROUPS / path.strip("/") / "memory.max")
            elif "memory" in controllers.split(","):
                files.append(GROUPS / "memory" / path.strip("/") / "memory.limit_in_bytes")
    return files


SMALLER = "Choose a smaller d_model, d_ff, d_head or n_layers, or a shorter text."


def check_memory(needed_bytes: int, sentence_start: str, advice: str = SMALLER) -> None:
    """Raise MemoryLimitError, "{sentence_start} would need … {advice}", above max_mb().

    Args:
        needed_bytes: What a run needs.
        sentence_start: What needs it, such as "This model and text".
        advice: What a user can do about it, a sentence.
    """
    if needed_bytes > max_mb() << 20:
        raise MemoryLimitError(
            f"{sentence_start} would need about {needed_bytes / 2**20:,.0f} MB; at most"
            f" {max_mb():,} MB are allowed (set by ABLATION_MAX_MB). {advice}"
        )


def room_for(needed_bytes: int, sentence_start: str) -> AbstractContextManager[None]:
    """Return a context for a run; large runs wait for each other, too large ones raise at once.

    Raises:
        MemoryLimitError: It would need more than a run may use; nothing is allocated yet.
    """
    check_memory(needed_bytes, sentence_start)
    if needed_bytes <= HEAVY:
        return nullcontext()
    return hold_lock(_heavy_run, "waiting for another large run on this server")


def iterate_rows(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices that cover n_rows in order, with about PIECE numbers (rows × width) in each."""
    step = max(1, PIECE // max(1, width))
    yield from (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))


class Grown:
    """Growth of this process's memory since glibc last gave back unused memory."""

    def __init__(self) -> None:
        self.least = _resident_bytes()

    def give_back(self, extra: int = 128 << 20) -> bool:
        """Have glibc give back freed memory after growth by `extra` bytes; return whether it did.

        Growth is since the smallest size at earlier calls. Otherwise every thread that made a large
        pass keeps what it freed: a few users with deep models left 4 GB. Without glibc this does
        nothing.
        """
        now = _resident_bytes()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if now > self.least + extra else None
        if trim:
            trim(0)
            now = _resident_bytes()
        self.least = now if trim else min(now, self.least)
        return bool(trim)


def _resident_bytes() -> int:
    """Return the bytes of this process in memory; 0 where that is unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def reuse_freed_memory() -> None:
    """Have glibc keep up to 16 MB of freed memory per arena, in two arenas.

    Otherwise each pass pays a page fault per 4 kB of activations: a third of its time at 4 layers,
    d_model 128 and 64 tokens. Also, every thread grows an arena of its own. Blocks of 4 MB or more
    are given back. If they stayed, they would leave holes: a server that needs 510 MB grew to 640.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt:
        # <malloc.h>
        trim_threshold = -1
        mmap_threshold = -3
        arena_max = -8
        mallopt(arena_max, 2)
        mallopt(mmap_threshold, 4 << 20)
        mallopt(trim_threshold, 16 << 20)
