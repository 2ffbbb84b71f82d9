"""What a pool of workers promises to those who have something trained, wherever its workers are."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol, TypeVar

from core.model.config import Config
from core.settings.cache import LRUCache
from core.settings.device import Machine
from core.train.run import Row, State
from core.train.settings import Training
from core.workers.pace import Pace

if TYPE_CHECKING:  # a job asks a pool, and a pool keeps jobs
    from core.workers.job import Job

T = TypeVar("T")
Key = tuple[Config, Training, Machine]  # what determines a training


class WorkerPool(Protocol):
    """Workers that many jobs share: of this machine (ProcessPool), or of many (Cluster)."""

    count: int  # workers, at the moment
    jobs: "list[Job]"  # in the order in which they get workers
    lock: threading.RLock
    pace: Pace
    kept: LRUCache  # Key -> rows, State: finished, or as far as it came
    rows: LRUCache  # Key -> rows of what came to its end
    news: deque[str]  # sentences for whoever waits, to be taken out when they are shown
    silence: str  # what is to be said of a worker that hangs, or nothing

    # Who is there

    def look(self) -> str:
        """See who is there to train -> why nobody is, in a few words, or "". To be called now and then."""

    def close(self) -> None:
        """End what is under way, now and for good."""

    # What is trained with

    def require(self, machine: Machine) -> None:
        """Take note that trainings will need this machine. Raises ConfigError where it will never be had."""

    def versions(self) -> dict[str, str]:
        """What trains here: torch, numpy, python, code."""

    def device_of(self, machine: Machine) -> str:
        """The device on which it would be trained: cuda, mps or cpu."""

    def device_name(self, machine: Machine) -> str:
        """That device in words."""

    # Calls

    def submit(self, call: Callable[..., T], *given: object) -> Future[T]:
        """Have a call run by any of the workers. Raises CancelledError where that cannot be."""

    def train(self, states: list[State], seconds: float) -> Future[bytes]:
        """Train for about so long in a worker -> future of pickled [(State, rows), …]"""

    # Jobs and their turns: core.workers.queue

    def known(self, states: Iterable[State]) -> int:
        """How many of these trainings somebody has done already."""

    def finished(self, key: Key) -> tuple[Sequence[Row], State | None] | None:
        """Every row of a training that somebody has brought to its end, and its model if that is still kept."""

    def queue(self, job: "Job") -> None:
        """To the end of the queue. Called under the lock."""

    def turn(self) -> None:
        """Give every job that is due its chunks."""

    def rotate(self, job: "Job") -> None:
        """It has had its chunk: the next one is another's turn."""

    def position(self, job: "Job") -> int:
        """How many jobs go before this one gets a worker."""

    def beside(self) -> int:
        """How many jobs that are looked at take turns."""

    def part(self, job: "Job") -> float:
        """How many workers a job has on average, as things are."""

    def share(self, job: "Job", idle: int = 0) -> int:
        """How many chunks of a job may be under way now. idle: how many before it have nothing to train at the moment."""

    def under_way(self) -> set[Key]:
        """What is being trained now, for whichever job."""
