"""Memory: limits from the container, and memory that is returned to the system."""

import platform
import re
import subprocess
import sys

import psutil
import pytest

from benchmarks import small_container
from core.settings import memory
from core.workers import pool
from tests.test_page import fine, opened

# Limits


@pytest.mark.parametrize(
    "megabytes, cores, expected",
    [(690, 2, 1), (1000, 2, 2), (2700, 2, 2), (24_000, 1, 1), (300, 8, 1)],
)
def test_worker_count_follows_memory_and_cores(monkeypatch, megabytes, cores, expected):
    monkeypatch.delenv("ABLATION_WORKERS", raising=False)
    monkeypatch.setattr(pool, "machine_mb", lambda: megabytes)
    monkeypatch.setattr(
        pool.os, "sched_getaffinity", lambda process: set(range(cores)), raising=False
    )
    assert pool.worker_count() == expected


@pytest.mark.parametrize(
    "groups, file",
    [
        ("0::/user.slice/app", "user.slice/app/memory.max"),
        ("5:cpu:/a\n4:memory:/b/c", "memory/b/c/memory.limit_in_bytes"),
        ("", "memory.max"),
        ("", "memory/memory.limit_in_bytes"),
    ],
)
def test_own_cgroup_memory_limit_is_found(monkeypatch, tmp_path, groups, file):
    process = tmp_path / "cgroup"
    process.write_text(groups)
    path = memory.Path
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(
        memory, "Path", lambda name: process if name == "/proc/self/cgroup" else path(name)
    )
    limit = tmp_path / file
    limit.parent.mkdir(parents=True, exist_ok=True)
    limit.write_text(str(690 << 20))
    assert memory.machine_mb() == 690
    limit.write_text("max\n")
    assert memory.machine_mb() == psutil.virtual_memory().total >> 20


@pytest.mark.parametrize(
    "megabytes, expected", [(300, 200), (690, 230), (1000, 333), (2700, 900), (24_000, 1024)]
)
def test_run_limit_follows_memory(monkeypatch, megabytes, expected):
    monkeypatch.delenv("ABLATION_MAX_MB", raising=False)
    monkeypatch.setattr(memory, "machine_mb", lambda: megabytes)
    memory._default_max_mb.cache_clear()
    assert memory.max_mb() == expected
    monkeypatch.setenv("ABLATION_MAX_MB", "77")
    assert memory.max_mb() == 77
    memory._default_max_mb.cache_clear()


def test_pages_start_no_workers(monkeypatch):
    calls = []
    monkeypatch.setattr(
        pool.ProcessPool, "submit", lambda self, call, *arguments: calls.append(call)
    )
    for path in ("app.py", "pages/1_One_block.py", "pages/3_Training.py"):
        fine(opened(path))
    assert calls == []


@pytest.mark.browser
def test_smallest_cloud_opens_all_pages_and_trains(chromium):
    if not small_container.can_limit_memory():
        pytest.skip(
            "no memory cgroup can be made here; needs Linux and the right to write /sys/fs/cgroup"
        )
    with small_container.small_server(690) as (address, process, group):
        small_container.visit(chromium, address, group)
        assert process.poll() is None and small_container.count_killed(group) == 0


# Back to the system

GROWS = """
import ctypes, sys
from core.settings.memory import Grown, _resident_bytes, reuse_freed_memory
reuse_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
grown, before = Grown(), _resident_bytes()
many = [libc.malloc(1 << 20) for _ in range(600)]
for each in many:
    ctypes.memset(each, 1, 1 << 20)
for each in many[:-3]:  # the others live, above all of them
    libc.free(ctypes.c_void_p(each))
freed = _resident_bytes()
asked = grown.give_back(), grown.give_back()
print(asked, (freed - before) >> 20, (_resident_bytes() - before) >> 20)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc", reason="glibc's own"
)
def test_freed_memory_below_live_memory_is_returned():
    text = subprocess.run(
        [sys.executable, "-c", GROWS], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    requested, freed, left = re.fullmatch(r"(\(.*\)) (\d+) (\d+)\n", text).groups()
    assert requested == "(True, False)" and int(freed) > 500 and int(left) < 100
