"""Helper that waits for other processes."""

import time


def wait(until, seconds: float = 120, process=None):
    """Wait until a condition holds; fail after so many seconds or if the process has ended."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it did not come"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
