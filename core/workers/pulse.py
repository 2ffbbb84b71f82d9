"""Who has gone silent: each has a counter that it moves by itself, all the time, whatever else it does."""

import time
from collections.abc import Hashable

SAID = 5.0  # seconds of silence after which whoever waits is told
HUNG = 30.0  # after which it is taken for hung, and done without
GLANCE = 1.0  # seconds at most that count from one look to the next: who looks may have stood still


class Pulse:
    """For how long each has been silent, by the clock of whoever looks."""

    def __init__(self):
        self._seen: dict[Hashable, object] = {}
        self._silent: dict[Hashable, float] = {}
        self._looked = time.monotonic()

    def look(self, counters: dict) -> dict[Hashable, float]:
        """counters: who -> what its counter shows now -> seconds of silence of each"""
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, GLANCE), now
        self._silent = {
            who: self._silent.get(who, 0.0) + passed if who in self._seen and self._seen[who] == count else 0.0
            for who, count in counters.items()
        }
        self._seen = dict(counters)
        return self._silent
