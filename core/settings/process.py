"""Processes: their names, whether they run, and what they compute with."""

import functools
import hashlib
import os
import platform
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path

import numpy
import psutil  # type: ignore[import-untyped]  # it has no types of its own
import torch

from core.settings.device import Machine

STALE = (
    30.0  # seconds without a sign of life after which a process is taken for dead, wherever it runs
)
ROOT = Path(__file__).parent.parent.parent


@functools.cache
def _machine_id() -> str:
    """Return a name of this boot of the machine, or container, in which process ids are unique."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8])
        parts.append(os.readlink("/proc/self/ns/pid"))
    return "/".join(parts)


def new_owner() -> str:
    """Return a new name for an owner of runs: machine, process id, random number."""
    return f"{_machine_id()}|{os.getpid()}|{uuid.uuid4().hex[:8]}"


def is_alive(owner: str, heartbeat: float, now: float) -> bool:
    """Return whether an owner works: a heartbeat in the last 30 s and, if here, its process.

    Args:
        owner: A name from new_owner().
        heartbeat: When it last reported, in seconds by the store's clock.
        now: The time now by the same clock; clocks of machines differ.
    """
    host, number, _ = owner.split("|")
    if host == _machine_id() and not is_running(int(number)):
        return False
    return now - heartbeat < STALE


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended but waits for its parent does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except (psutil.NoSuchProcess, ValueError):  # ValueError: below 0
        return False
    except psutil.AccessDenied:  # it belongs to somebody else
        return True


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions torch, numpy, python and code (the git commit), read once.

    code: the commit, with "-dirty" for changed files, or "unknown".
    """
    return {
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "code": _commit(),
    }


def _commit() -> str:
    """Return the git commit of this checkout, with "-dirty" if changed; "unknown" without git."""
    arguments = "describe --always --dirty --abbrev=40 --exclude=*".split()
    call = ["git", "--no-optional-locks", "-C", str(ROOT), *arguments]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            call, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    return "unknown"


@functools.cache
def hash_sources() -> str:
    """Return a hash of core's source files, read once: equal hashes mean equal code."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted((ROOT / "core").rglob("*.py")):
        digest.update(
            f"{path.relative_to(ROOT).as_posix()}\0{path.read_text(encoding='utf-8')}\0".encode()
        )
    return digest.hexdigest()


def device_name(machine: Machine) -> str:
    """Return a device's name, such as "NVIDIA H200" or "CPU (x86_64, AVX512)".

    Runs on devices of equal names agree to the last bit.
    """
    if machine.torch_device != "cpu":
        return machine.name
    return f"CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"
