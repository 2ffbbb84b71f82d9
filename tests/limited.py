"""A call in a process of its own, with a limit of memory."""

import os
import pickle
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="limits of memory are set as on Unix")
TAKEN = Path("/proc/self/statm")  # in pages


def limited(call, megabytes: int):
    """Return the call's result; fail if it needs more than this much additional memory."""
    if not TAKEN.exists():
        pytest.skip("it is not told here how much memory a process has")
    there, here = os.pipe()
    process = os.fork()
    if not process:
        os.close(there)
        taken = int(TAKEN.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (megabytes << 20),) * 2)
        try:
            outcome = call()
        except BaseException as error:
            outcome = repr(error)
        with os.fdopen(here, "wb") as pipe:
            pipe.write(pickle.dumps(outcome))
        os._exit(0)
    os.close(here)
    with os.fdopen(there, "rb") as pipe:
        outcome = pipe.read()
    os.waitpid(process, 0)
    assert outcome, "its process was ended"
    return pickle.loads(outcome)
