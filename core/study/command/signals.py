"""Signals that ask a command to end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def asked_to_end() -> Iterator[list[int]]:
    """A list in which the first signal to end appears; the second one ends as it would have without this."""
    seen: list[int] = []
    before: dict[signal.Signals, Any] = {}

    def note(number: int, _: object) -> None:
        seen.append(number)
        for each in SIGNALS:
            signal.signal(each, before[each])

    before.update({each: signal.signal(each, note) for each in SIGNALS})
    try:
        yield seen
    finally:
        for each in SIGNALS:
            signal.signal(each, before[each])
