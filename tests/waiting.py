"""Waiting for what other processes do."""

import time


def wait(until, seconds: float = 120, process=None):
    """Wait until this is so; fail after so many seconds, or where the process has ended before."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it did not come"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
