"""Memory: the limit of a run, and how freed memory is used again."""

import ctypes
import functools
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from core.settings.environment import whole_number
from core.settings.progress import large

LEAST_MAX_MB, DEFAULT_MAX_MB = 200, 1024
HEAVY = 64 << 20
PIECE = 2 << 20  # numbers of a table that is computed in pieces: what is computed of them, too, stays small
GROUPS = Path("/sys/fs/cgroup")


class MemoryLimit(ValueError):
    """A run that would need more memory than it may have; the message gives both figures."""


def max_mb() -> int:
    """Return the limit for one run in MB: ABLATION_MAX_MB, or a third of the memory, from 200 to 1024."""
    return whole_number("ABLATION_MAX_MB", _default_max_mb())


@functools.cache
def _default_max_mb() -> int:
    return max(LEAST_MAX_MB, min(DEFAULT_MAX_MB, machine_mb() // 3))


def machine_mb() -> int:
    """Return the memory of this machine or its container in MB; a terabyte where neither can be read."""
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


def check_memory(needed: int, what: str, advice: str = SMALLER) -> None:
    """Raises MemoryLimit for more bytes than a run may use. what: would need them; advice: what to do about it."""
    if needed > max_mb() << 20:
        raise MemoryLimit(
            f"{what} would need about {needed / 2**20:,.0f} MB; a run here may use {max_mb():,} MB "
            f"(set by ABLATION_MAX_MB). {advice}"
        )


def room_for(needed: int, what: str) -> AbstractContextManager[None]:
    """A context to run in. Raises MemoryLimit before anything is allocated; lets one heavy run go at a time, and none beside results
    of others that are still held, where all would be more than one may use."""
    check_memory(needed, what)
    if needed <= HEAVY:
        return nullcontext()
    return large.run(needed, max_mb() << 20, "waiting for another large run on this server")


def some_rows(many: int, width: int) -> Iterator[slice]:
    """All of so many rows, as many at a time as have about PIECE numbers."""
    step = max(1, PIECE // max(1, width))
    yield from (slice(first, min(first + step, many)) for first in range(0, many, step))


class Grown:
    """How much more memory this process has than it had when it last gave back what it does not use."""

    def __init__(self) -> None:
        self.least = _resident()

    def give_back(self, more: int = 128 << 20) -> bool:
        """Have glibc give back what is freed, in all of its arenas, where it has become so many bytes more -> whether it was asked.

        What was freed below something that lives is kept otherwise, by each thread that ever made a large pass: a few visitors
        with deep models left 4 GB. Elsewhere than on Linux with glibc: nothing.
        """
        now = _resident()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if now > self.least + more else None
        if trim:
            trim(0)
            now = _resident()
        self.least = now if trim else min(now, self.least)
        return bool(trim)


def _resident() -> int:
    """Bytes that this process has in memory; 0 where that is not said."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def reuse_freed_memory() -> None:
    """Have glibc keep up to 16 MB of freed memory per arena, in two arenas, instead of giving it back after every pass.

    What is 4 MB or more by itself is given back: kept, such pieces leave holes, and a server grew to 640 MB that needs 510.
    Otherwise each pass pays a page fault per 4 kB of activations it records (a third of its time at 4 layers,
    d_model 128, 64 tokens), and every thread of a server grows an arena of its own. Elsewhere than on glibc: nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt:
        TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # <malloc.h>
        mallopt(ARENA_MAX, 2)
        mallopt(MMAP_THRESHOLD, 4 << 20)
        mallopt(TRIM_THRESHOLD, 16 << 20)
