"""Whether a process still runs, as psutil says it: Windows has no signal 0, and keeps the number of a parent that has ended."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from core.settings.process import STALE, alive, find_process, new_owner

ROOT = Path(__file__).parent.parent


@pytest.fixture
def windows(monkeypatch):
    """On Windows, os.kill() ends the process for a signal of 0."""
    real = os.kill

    def kill(process, sent):
        assert sent, f"os.kill({process}, {sent}) would end it"
        real(process, sent)

    monkeypatch.setattr(os, "kill", kill)


def owner(process: int) -> str:
    here, _, number = new_owner().split("|")
    return f"{here}|{process}|{number}"


def test_a_process_that_runs_is_alive_as_long_as_its_heartbeat_is_fresh(windows):
    assert find_process(os.getpid()).pid == os.getpid()
    assert alive(new_owner(), 100.0, 100.0 + STALE - 1)
    assert not alive(new_owner(), 100.0, 100.0 + STALE + 1)


def test_a_process_that_has_ended_is_not_alive_also_while_nobody_has_asked_how_it_ended(windows):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    while psutil.Process(ended.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert find_process(ended.pid) is None and not alive(owner(ended.pid), 100.0, 100.0)
    ended.wait()
    assert find_process(ended.pid) is None and not alive(owner(ended.pid), 100.0, 100.0)


@pytest.mark.parametrize("number", [-1, 2**31 - 1, 10**12])
def test_a_number_of_no_process_is_none(number, windows):
    assert find_process(number) is None


def test_a_process_of_another_machine_goes_by_its_heartbeat_alone(windows):
    assert alive(f"elsewhere|{2**31 - 1}|0", 100.0, 101.0)


WORKER = """
import os
parent = os.getppid()
os.getppid = lambda: parent  # as on Windows, whatever becomes of the parent
from core.workers.worker import _live_with
print(os.getpid(), flush=True)
_live_with(parent, [0.0], 0)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORKER!r}])"


@pytest.mark.slow
@pytest.mark.parametrize("reaped", [True, False])
def test_a_worker_ends_when_its_parent_is_killed_though_the_parents_number_stays(reaped):
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(parent.stdout.readline()))
    try:
        time.sleep(1.5)
        assert find_process(worker.pid), "it lives as long as its parent does"
        psutil.Process(parent.pid).kill()
        if reaped:
            parent.wait()
        psutil.wait_procs([worker], timeout=10)
        assert find_process(worker.pid) is None
    finally:
        with suppress(psutil.NoSuchProcess):
            worker.kill()
        parent.wait()
        parent.stdout.close()
