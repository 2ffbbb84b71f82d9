"""Memory that is no longer used goes back to the system."""

import platform
import re
import subprocess
import sys

import pytest

from core.settings import memory

GROWS = """
import ctypes, sys
from core.settings.memory import Grown, _resident, reuse_freed_memory
reuse_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
grown, before = Grown(), _resident()
many = [libc.malloc(1 << 20) for _ in range(600)]
for each in many:
    ctypes.memset(each, 1, 1 << 20)
for each in many[:-3]:  # the others live, above all of them
    libc.free(ctypes.c_void_p(each))
freed = _resident()
asked = grown.give_back(), grown.give_back()
print(asked, (freed - before) >> 20, (_resident() - before) >> 20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc", reason="glibc's own")
def test_what_is_freed_below_something_that_lives_is_given_back():
    said = subprocess.run([sys.executable, "-c", GROWS], capture_output=True, text=True, check=True, timeout=60).stdout
    asked, freed, left = re.fullmatch(r"(\(.*\)) (\d+) (\d+)\n", said).groups()
    assert asked == "(True, False)" and int(freed) > 500 and int(left) < 100


def test_a_little_more_is_not_given_back(monkeypatch):
    sizes = iter([100, 200, 150, 300, 300, 250])
    monkeypatch.setattr(memory, "_resident", lambda: next(sizes))
    grown = memory.Grown()
    assert [grown.give_back(150), grown.least] == [False, 100]
    assert [grown.give_back(150), grown.least] == [False, 100]
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: type("Libc", (), {"malloc_trim": lambda self, pad: 1})())
    assert [grown.give_back(150), grown.least] == [True, 300]
