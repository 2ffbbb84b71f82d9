"""Turns of page runs: one run at a time has priority.

Otherwise a hundred users who move at once are all served as late as the last one (docs/log.md).
"""

import threading
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST = 0.2  # seconds that a run waits for its turn at most
_turn = threading.Semaphore(1)


class Turn:
    """Turn of one run, which it may give up early."""

    def __init__(self):
        self.taken = _turn.acquire(timeout=LONGEST)

    def give_up(self):
        """End the turn, so that the next run can begin."""
        if self.taken:
            self.taken = False
            _turn.release()


_mine: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def one_turn():
    """Wait at most 0.2 s for this run's turn, then run all inside with or without it; end it."""
    turn = Turn()
    token = _mine.set(turn)
    try:
        yield
    finally:
        _mine.reset(token)
        turn.give_up()


def give_up_turn():
    """End this run's turn early, because it takes long or waits."""
    turn = _mine.get()
    if turn is not None:
        turn.give_up()
