"""Memory: what a run would need, the limit, and how freed memory is used again."""

import ctypes


def reuse_freed_memory() -> None:
    """Have glibc keep up to 64 MB of freed memory per arena, in two arenas, instead of giving it back after every pass.

    Otherwise each pass pays a page fault per 4 kB of activations it records (a third of its time at 4 layers,
    d_model 128, 64 tokens), and every thread of a server grows an arena of its own. Elsewhere than on glibc: nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # <malloc.h>
        mallopt(ARENA_MAX, 2)
        mallopt(MMAP_THRESHOLD, 32 << 20)
        mallopt(TRIM_THRESHOLD, 64 << 20)
