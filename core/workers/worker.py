"""What runs inside a worker: its beginning, its sign of life, and the chunks that it trains. It holds nothing between two."""

import os
import pickle
import signal
import threading
import time
from ctypes import Array, c_double
from multiprocessing.sharedctypes import SynchronizedArray

import torch

from core.settings.environment import whole_number
from core.settings.process import find_process, is_running
from core.train import stack
from core.train.run import chunk

TICK = 0.5  # seconds between two signs of life of a worker
NICE = 15  # how far workers stand back for other processes, of 19


def begin(started: "SynchronizedArray[int]", ticks: Array[c_double], parent: int) -> None:
    """In a new worker: it says who it is; one thread on a core of its own, where the system allows it, and an end when the parent ends.

    Whoever moves a slider goes first: the server, and a browser on the same machine, take what they need.
    """
    if hasattr(os, "nice"):
        os.nice(whole_number("ABLATION_NICE", NICE, least=0))
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the parent decides
    with started.get_lock():
        number = started[:].index(0)
        started[number] = os.getpid()
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})
    threading.Thread(target=_live_with, args=(parent, ticks, number), daemon=True).start()


def _live_with(parent: int, ticks: Array[c_double], number: int) -> None:
    """It shows that it lives for as long as its parent does. A parent that is killed cannot tell its workers. (Linux could, but
    ties them to a thread of it, not to itself.)"""
    process = find_process(parent)  # not os.getppid(): on Windows it is the same when the parent has ended
    while process is not None and is_running(process):
        ticks[number] += 1
        time.sleep(TICK)
    os._exit(0)


def ready(seconds: float) -> int:
    """Keeps a worker busy until its fellows have started too. -> its process id"""
    time.sleep(seconds)
    return os.getpid()


def train_chunk(packed: bytes, seconds: float) -> bytes:
    """A chunk of one training, or of several stacked, in a worker.

    Bytes, because a pool would send every tensor through a file of its own: 70 ms a trip.
    """
    torch.set_num_threads(1)  # of this thread: what runs calls in threads has others than that in which a worker began
    states = pickle.loads(packed)
    return pickle.dumps([chunk(states[0], seconds)] if len(states) == 1 else stack.chunk(states, seconds))
