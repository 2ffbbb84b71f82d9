"""Call in a separate process with a memory limit."""

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
    write_end, read_end = os.pipe()
    process = os.fork()
    if not process:
        os.close(write_end)
        used = int(TAKEN.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)
        try:
            outcome = call()
        except BaseException as error:
            outcome = repr(error)
        with os.fdopen(read_end, "wb") as pipe:
            pipe.write(pickle.dumps(outcome))
        os._exit(0)
    os.close(read_end)
    with os.fdopen(write_end, "rb") as pipe:
        outcome = pipe.read()
    os.waitpid(process, 0)
    assert outcome, "its process was ended"
    return pickle.loads(outcome)
