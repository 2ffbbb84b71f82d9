"""Runs of pages take turns: Python's threads, each of which lets go of the interpreter at every message it sends, otherwise all
become slow together. With a hundred visitors who all move at once, each is served as late as the last (docs/log.md)."""

import threading
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST = 0.2  # seconds that a run waits, or keeps others waiting: longer ones go on beside them
_turn = threading.Semaphore(1)


class Turn:
    """Of one run. It may be given up early, by whatever takes long or waits."""

    def __init__(self):
        self.taken = _turn.acquire(timeout=LONGEST)

    def give_up(self):
        if self.taken:
            self.taken = False
            _turn.release()


_mine: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def taken():
    """What is drawn in here has its turn."""
    turn = Turn()
    token = _mine.set(turn)
    try:
        yield
    finally:
        _mine.reset(token)
        turn.give_up()


def given_up():
    """Let others go on: what this run does now takes long, or waits."""
    turn = _mine.get()
    if turn is not None:
        turn.give_up()
