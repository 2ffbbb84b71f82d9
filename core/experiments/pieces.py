"""What takes long, piece by piece: each says how far it is, and what would take longer than it may is ended soon."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from core.settings.progress import tell
from core.train.budget import TimeLimit, duration, max_seconds

T = TypeVar("T")
SOON = 2.0  # seconds after which it is asked how long the rest will take
FEWER_TEXTS = "Choose fewer texts, or a smaller model."
FEWER_PASSES = "Choose fewer passes, a smaller model or a shorter text."


def check_time(seconds: float, what: str, advice: str = FEWER_TEXTS) -> None:
    """Raises TimeLimit for more seconds than one comparison may take. what: would take them; advice: what to do about it."""
    if seconds > max_seconds():
        raise TimeLimit(
            f"{what} would take about {duration(seconds)} here; at most {duration(max_seconds())} are allowed "
            f"(set by ABLATION_MAX_SECONDS). {advice}"
        )


def pieces(items: Iterable[T], many: int, what: str, advice: str = FEWER_TEXTS) -> Iterator[T]:
    """The items, so many of them, one after the other. Raises TimeLimit once it shows that all of them would take too long: by
    what those after the first have taken, for the first may have more to do."""
    begun, first = time.perf_counter(), 0.0
    for done, item in enumerate(items, 1):
        yield item
        taken = time.perf_counter() - begun
        if done == 1:
            first = taken
        elif taken > SOON:
            check_time(taken + (many - done) * (taken - first) / (done - 1), what, advice)
        tell(done / many, what)


def steps(many: int, what: str, advice: str) -> Callable[[], None]:
    """The same where the loop is another's: to be called after each of so many steps."""
    left = pieces(range(many), many, what, advice)
    next(left)

    def step() -> None:
        next(left, None)

    return step
