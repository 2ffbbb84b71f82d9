"""Whether a process still runs, as psutil reports it.

Windows has no signal 0, and keeps the number of a parent that has ended.
"""

import os
import subprocess
import sys
import time

import psutil
import pytest

from core.settings.process import STALE, is_alive, is_running, new_owner


@pytest.fixture
def windows(monkeypatch):
    """Fail on signal 0: on Windows, os.kill() would end the process."""
    real = os.kill

    def kill(process, sent):
        assert sent, f"os.kill({process}, {sent}) would end it"
        real(process, sent)

    monkeypatch.setattr(os, "kill", kill)


def owner(process: int) -> str:
    host, _, number = new_owner().split("|")
    return f"{host}|{process}|{number}"


def test_process_is_alive_while_heartbeat_is_fresh(windows):
    assert is_running(os.getpid())
    assert is_alive(new_owner(), 100.0, 100.0 + STALE - 1)
    assert not is_alive(new_owner(), 100.0, 100.0 + STALE + 1)


def test_ended_process_is_not_alive(windows):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    while psutil.Process(ended.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert not is_running(ended.pid) and not is_alive(owner(ended.pid), 100.0, 100.0)
    ended.wait()
    assert not is_running(ended.pid) and not is_alive(owner(ended.pid), 100.0, 100.0)


def test_remote_process_is_alive_by_heartbeat_only(windows):
    assert is_alive(f"elsewhere|{2**31 - 1}|0", 100.0, 101.0)
