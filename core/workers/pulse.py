"""Who has gone silent: each has a counter that it moves by itself, all the time, whatever else it does."""

import time
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)

SAID = 5.0  # seconds of silence after which whoever waits is told
HUNG = 30.0  # after which it is taken for hung, and done without
GLANCE = 1.0  # seconds at most that count from one look to the next: who looks may have stood still


class Pulse(Generic[Who]):
    """For how long each has been silent, by the clock of whoever looks."""

    def __init__(self) -> None:
        self._seen: dict[Who, object] = {}
        self._silent: dict[Who, float] = {}
        self._looked = time.monotonic()

    def look(self, counters: Mapping[Who, object]) -> dict[Who, float]:
        """counters: who -> what its counter shows now -> seconds of silence of each"""
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, GLANCE), now
        self._silent = {
            who: self._silent.get(who, 0.0) + passed if who in self._seen and self._seen[who] == count else 0.0
            for who, count in counters.items()
        }
        self._seen = dict(counters)
        return self._silent


class Silence(Generic[Who]):
    """Who of a pool's workers does not answer, and what is said of that: once when it begins, and once when one is done without.

    news: where that is told; name, outcome: sentences' beginnings, in which {who} stands for the worker; outlook: what will be done.
    """

    def __init__(self, news: deque[str], name: str, outcome: str, outlook: str = "") -> None:
        self.news, self.name, self.outcome, self.outlook = news, name, outcome, outlook
        self.sentence = ""  # on what is so now, or nothing
        self._pulse: Pulse[Who] = Pulse()
        self._stages: dict[Who, int] = {}  # who -> 1: it is silent; 2: it hangs

    def look(self, counters: Mapping[Who, object]) -> set[Who]:
        """counters: as of Pulse.look -> those that hang"""
        silent = self._pulse.look(counters)
        longest = max(silent.values(), default=0.0)
        self.sentence = self._unanswered("A worker", longest) if longest >= SAID else ""
        stages = {who: (seconds >= SAID) + (seconds >= HUNG) for who, seconds in silent.items()}
        sentences = [
            self._unanswered(self.name.format(who=who), silent[who])
            if stage == 1
            else f"{self.outcome.format(who=who)}; what it had in hand is trained anew."
            for who, stage in stages.items()
            if stage > self._stages.get(who, 0)
        ]
        self.news.extend(dict.fromkeys(sentences))  # two that have no names are told of as one
        self._stages = stages
        return {who for who, stage in stages.items() if stage == 2}

    def _unanswered(self, name: str, seconds: float) -> str:
        outlook = f"; {self.outlook} after {HUNG:.0f} s" if self.outlook else ""
        return f"{name} has not answered for {seconds:.0f} s{outlook}."
