"""How fast trainings go: all of a pool's, against what is expected of them, and those of one job."""

import statistics
import time
from collections import deque

from core.train import budget
from core.train.run import State

RECENT = 30.0  # seconds of the clock from which it is told how fast a job goes


class Pace:
    """Seconds that trainings take here per second that core.train.budget expects."""

    def __init__(self) -> None:
        self.recent: deque[float] = deque([1.0], maxlen=25)  # of the last chunks
        self.measured = False  # whether anything has been trained here for long enough to tell how fast it goes

    @property
    def median(self) -> float:
        """Of late."""
        return statistics.median(self.recent)

    @property
    def best(self) -> float:
        """The least of late: what may be refused should not depend on who else is at work in this minute."""
        return min(self.recent)

    def learn(self, before: list[State], after: list[State]) -> None:
        """Take note of how long a chunk took, measured where it ran."""
        self.measured = self.measured or bool(before[0].step) or any(state.done for state in after)
        if not before[0].step:  # the first one also loads and draws
            return
        shares = [(now.step - was.step) / was.training.steps for was, now in zip(before, after)]
        expected = sum(share * budget.seconds(was.config, was.training) for share, was in zip(shares, before))
        if expected:
            self.recent.append((after[0].seconds - before[0].seconds) / expected)


class Course:
    """How fast one job goes, without its first chunks, which also load and draw."""

    def __init__(self) -> None:
        self.seconds = 0.0  # of workers' time
        self.steps = 0  # in that time
        self.marks: deque[tuple[float, int]] = deque()  # when chunks came back, and the steps by then, of late

    def add(self, seconds: float, steps: int) -> None:
        """A chunk has come back. seconds: where it ran, without waiting for its turn."""
        self.seconds += seconds
        self.steps += steps
        self.marks.append((time.monotonic(), self.steps))
        while self.marks[-1][0] - self.marks[0][0] > RECENT:
            self.marks.popleft()

    def pause(self) -> None:
        """It stands still: while it does, no step is slow."""
        self.marks.clear()

    def step_seconds(self, workers: int, part: float) -> float:
        """From one step of all to the next. part: how many of the workers it has on average.

        By the clock of late, once there is some: that holds the way of a chunk to a worker and back, and whoever else is at
        work on this machine. Until then from the workers' own time, with the present share of them.
        """
        return self._by_the_clock(workers) or self.seconds / self.steps / part

    def _by_the_clock(self, workers: int) -> float | None:
        """Over the last RECENT seconds; None where too little has come back."""
        if len(self.marks) < 2 * workers + 1 or self.marks[-1][1] == self.marks[0][1]:
            return None
        (begun, before), (ended, after) = self.marks[0], self.marks[-1]
        return (ended - begun) / (after - before)
