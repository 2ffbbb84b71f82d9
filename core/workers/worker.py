"""Code that runs in a worker: its start, the chunks that it trains, its description."""

import functools
import multiprocessing
import os
import pickle
import signal
import threading
from typing import NamedTuple

import torch

from core.settings.device import Machine, available_devices, device
from core.settings.environment import read_whole_number
from core.settings.process import device_name, hash_sources, versions
from core.train import stack
from core.train.run import chunk

NICE = 15  # how far workers stand back for other processes, of 19


def set_up_worker() -> None:
    """Set up a worker process: low priority, one thread and core, no Ctrl-C, ends with parent."""
    if hasattr(os, "nice"):  # the server, and a browser on the same machine, go first
        os.nice(read_whole_number("ABLATION_NICE", NICE, least=0))
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process: the parent decides
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        number = multiprocessing.current_process()._identity[0]
        os.sched_setaffinity(0, {cores[number % len(cores)]})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent has ended, in whatever way, and end this process."""
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(0)


def train_chunk(packed: bytes, seconds: float) -> bytes:
    """Train pickled [state, …] for about so many seconds; return pickled [(state, new rows), …].

    Bytes in and out, because a pool would send every tensor through a file: 70 ms a trip.
    """
    torch.set_num_threads(1)  # of this thread: a Dask worker runs calls in other ones
    states = pickle.loads(packed)
    if len(states) == 1:
        return pickle.dumps([chunk(states[0], seconds)])
    return pickle.dumps(stack.chunk(states, seconds))


class Description(NamedTuple):
    """Versions and hardware of a process; equal descriptions give equal rows."""

    versions: dict[str, str]
    sources: str  # hash of the files in core
    devices: dict[str, tuple[str, str]]  # menu key -> (cuda, mps or cpu; name), of those it has


@functools.cache
def describe() -> Description:
    """Return the versions, source hash and devices of the process that calls it."""
    machines = {key: Machine(key) for key in device if key in ("auto", *available_devices())}
    devices = {
        key: (machine.torch_device, device_name(machine)) for key, machine in machines.items()
    }
    return Description(versions(), hash_sources(), devices)
