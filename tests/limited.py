"""A call in a process of its own, with a limit of memory and of time: what somebody's file does there harms no other test."""

import os
import pickle
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pytest

resource = pytest.importorskip("resource", reason="limits of memory are set as on Unix")
TAKEN = Path("/proc/self/statm")  # in pages; where there is none, only the time is limited


class Outcome(NamedTuple):
    """kind: the name of what was raised, "" if nothing was; words: what it says, or what the call gave."""

    kind: str
    words: str
    seconds: float


def limited(call, seconds: float = 300, megabytes: int = 400) -> Outcome:
    """What a call does that may take so long, and so much memory on top of what is there. Fails where it takes longer."""
    there, here = os.pipe()
    process = os.fork()
    if not process:
        os.close(there)
        _run(call, here, seconds, megabytes)
    os.close(here)
    with os.fdopen(there, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(process, 0)
    assert found, f"it was ended by signal {os.WTERMSIG(status)} (14: it took longer than {seconds} s)"
    return Outcome(*pickle.loads(found))


def _run(call, to: int, seconds: float, megabytes: int):
    if TAKEN.exists():
        taken = int(TAKEN.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (megabytes << 20),) * 2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it ends the process, whatever library it is in
    signal.setitimer(signal.ITIMER_REAL, seconds)
    begun = time.monotonic()
    try:
        found = "", repr(call())
    except BaseException as error:
        found = type(error).__name__, str(error)
    with os.fdopen(to, "wb") as pipe:
        pipe.write(pickle.dumps((*found, time.monotonic() - begun)))
    os._exit(0)
