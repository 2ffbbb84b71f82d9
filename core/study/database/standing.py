"""How far a study is, from the store alone."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from core.settings.process import alive
from core.settings.wording import count
from core.study.database.queries import Line
from core.study.database.schema import DIVERGED, DONE, ENDED, FAILED, QUEUED, RUNNING, STATES, STOPPED
from core.study.database.store import Store


@dataclass(frozen=True)
class Standing:
    """counts: state -> runs; share: of all the work, 0 to 1; left: seconds of work that are left, on one core;
    lost: runs in the hands of processes that have died; ahead: runs that a process has taken ahead of time, and not begun."""

    counts: dict[str, int]
    share: float
    left: float
    lost: int
    ahead: int = 0

    @property
    def many(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """Runs of which nothing more will come by itself."""
        return sum(self.counts.get(state, 0) for state in (DONE, DIVERGED, FAILED))

    @property
    def running(self) -> bool:
        """Whether somebody has a run in hand."""
        return self.counts.get(RUNNING, 0) > self.lost

    @property
    def queued(self) -> bool:
        return bool(self.counts.get(QUEUED))

    @property
    def complete(self) -> bool:
        """Whether every run has its result."""
        return not set(self.counts) - set(ENDED)

    @property
    def open(self) -> bool:
        """Whether there is something to do that nobody does."""
        return bool(self.lost or any(self.counts.get(state) for state in (QUEUED, STOPPED, FAILED)))

    def words(self) -> str:
        """ "8 runs: 5 done, 3 queued"; what was taken ahead of time waits as well: no more run than there are workers"""
        ahead = min(self.ahead, self.counts.get(RUNNING, 0))  # which was read a moment before
        seen = Counter(self.counts) + Counter({QUEUED: ahead})
        seen[RUNNING] -= ahead
        parts = [f"{seen[state]:,} {state}" for state in STATES if seen[state]]
        return f"{count(self.many, 'run')}: {', '.join(parts)}"


def standing(store: Store, study: int) -> Standing:
    """Raises StoreError."""
    by_state = store.counts([study])
    counts = {state: many for state, (many, _, _) in by_state.items()}
    whole = sum(expected for _, expected, _ in by_state.values())
    left = sum(by_state[state][2] for state in (QUEUED, RUNNING, STOPPED, FAILED) if state in by_state)
    now = store.now()
    held = store.runs(study, RUNNING, spec=False)
    lost = sum(not alive(each.owner, each.heartbeat, now) for each in held)
    share = max(0.0, 1 - left / whole) if whole else 1.0  # sums of floats: what is left may come to more than all
    return Standing(counts, share, left, lost, len(taken_ahead(held, now)))


def taken_ahead(lines: Iterable[Line], now: float) -> set[int]:
    """Those of a study's runs that a process has taken ahead of time, and not begun: they wait."""
    running = (each for each in lines if each.state == RUNNING and not each.step)
    return {each.id for each in running if alive(each.owner, each.heartbeat, now)}
