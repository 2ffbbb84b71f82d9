"""This process among others: its name, whether another one still lives, and what the numbers are computed with."""

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

STALE = 30.0  # seconds without a sign of life after which a process is taken for dead, wherever it runs
ROOT = Path(__file__).parent.parent.parent


@functools.cache
def _here() -> str:
    """This machine since it was started, or this container: where a process number means something."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8])
        parts.append(os.readlink("/proc/self/ns/pid"))
    return "/".join(parts)


def new_owner() -> str:
    """A name for whoever takes runs in this process: machine, process, and a number of its own."""
    return f"{_here()}|{os.getpid()}|{uuid.uuid4().hex[:8]}"


def alive(owner: str, heartbeat: float, now: float) -> bool:
    """Whether it still works on its runs: by its process on this machine, by its heartbeat anywhere.

    Both times by one clock, that of the store, as machines do not agree on the time.
    """
    here, number, _ = owner.split("|")
    if here == _here() and find_process(int(number)) is None:
        return False
    return now - heartbeat < STALE


def find_process(number: int) -> psutil.Process | None:
    """Return the running process of this number, or None where there is none."""
    try:
        process = psutil.Process(number)
    except (psutil.NoSuchProcess, ValueError):  # below 0
        return None
    return process if is_running(process) else None


def is_running(process: psutil.Process) -> bool:
    """Return whether it still runs. One that has ended and waits for its parent to notice does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # it is somebody else's
        return True


@functools.cache
def versions() -> dict[str, str]:
    """torch, numpy, python, code: the commit, with "-dirty" where files were changed since, or "unknown"."""
    return {
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "code": _commit(),
    }


def _commit() -> str:
    asked = "describe --always --dirty --abbrev=40 --exclude=*".split()
    call = ["git", "--no-optional-locks", "-C", str(ROOT), *asked]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(call, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    return "unknown"


@functools.cache
def sources() -> str:
    """A hash of this package's files: two processes in which it is the same run the same code, whatever git says."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted((ROOT / "core").rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{path.read_text(encoding='utf-8')}\0".encode())
    return digest.hexdigest()


def device_name(machine: Machine) -> str:
    """ "NVIDIA H200", or "CPU (x86_64, AVX512)": rows are the same to the last bit where these are the same."""
    if machine.torch_device != "cpu":
        return machine.name
    return f"CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"
