"""The jobs that share some workers: as many at a time as there are workers, then in turn."""

import threading
from collections import deque
from collections.abc import Iterable, Sequence

from core.settings.cache import LRUCache
from core.train.run import Row, State
from core.workers.job import Job, key_of
from core.workers.pace import Pace
from core.workers.protocol import Key


class Queue:
    """What every pool of workers keeps of its jobs, whoever trains them: who is next, what has been trained, how fast it goes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.jobs: list[Job] = []  # in the order in which they get workers
        self.lock = threading.RLock()
        self.pace = Pace()
        self.kept = LRUCache(megabytes=32)  # Key -> rows, State: finished, or as far as it came
        self.rows = LRUCache(
            megabytes=16
        )  # Key -> rows of what came to its end: small, they stay when the models have gone
        self.news: deque[str] = deque()  # sentences for whoever waits, to be taken out when they are shown
        self.silence = ""  # what is to be said of a worker that hangs, or nothing

    def known(self, states: Iterable[State]) -> int:
        """How many of these trainings somebody has done already."""
        rows = (self.kept.peek(key_of(state)) for state in states)
        return sum(bool(each) and each[1].done for each in rows)

    def finished(self, key: Key) -> tuple[Sequence[Row], State | None] | None:
        """Every row of a training that somebody has brought to its end, and its model if that is still kept."""
        kept: tuple[Sequence[Row], State] | None = self.kept.peek(key)
        if kept and kept[1].done:
            return kept
        rows: Sequence[Row] | None = self.rows.peek(key)
        return (rows, None) if rows else None

    def queue(self, job: Job) -> None:
        """To the end of the queue; before those in the background if it is none of them. Called under the lock."""
        self.jobs.append(job)
        self.jobs.sort(key=lambda each: each.background)

    def position(self, job: Job) -> int:
        """How many jobs go before this one gets a worker; 0 while it has its share: those that are looked at take turns."""
        with self.lock:
            if not job.background and self.count:
                return 0
            living = [each for each in self.jobs if each is job or each.alive]
            return max(0, living.index(job) - self.count + 1) if job in living else 0

    def beside(self) -> int:
        """How many jobs that are looked at take turns, where there are more than workers; else 0."""
        with self.lock:
            many = sum(each.alive and not each.background for each in self.jobs)
            return many if many > self.count else 0

    def part(self, job: Job) -> float:
        """How many workers a job has on average, as things are."""
        many = 0 if job.background else self.beside()
        return self.count / many if many else max(1, self.share(job))

    def rotate(self, job: Job) -> None:
        """It has had its chunk: the next one is another's turn. Those in the background are trained one after the other."""
        if not job.background and job in self.jobs:
            self.jobs.remove(job)
            self.queue(job)

    def under_way(self) -> set[Key]:
        """What is being trained now, for whichever job."""
        return {key for job in self.jobs for key in job.under_way()}

    def share(self, job: Job, idle: int = 0) -> int:
        """How many chunks of a job may be under way now. idle: how many before it have nothing to train at the moment."""
        with self.lock:
            self._leave()
            if job not in self.jobs[: self.count + idle]:
                return 0
            return max(1, self.count // min(self.count, len(self.jobs))) if self.count else 0

    def _leave(self) -> None:
        """Those that nobody asks about any more."""
        for each in self.jobs:
            if not each.alive:
                each.put_aside()
        self.jobs = [each for each in self.jobs if each.alive]

    def hand_out(self) -> None:
        """Give every job that is due its chunks; who has nothing to train now, as another does it, leaves its turn to the next."""
        with self.lock:
            self._leave()
            idle = 0
            for job in list(self.jobs):
                idle += not job.fill(idle)

    def stop_all(self) -> None:
        """No more chunks for anybody."""
        with self.lock:
            for job in list(self.jobs):
                job.stop()
