"""Signals that ask a command to end."""

import signal
from contextlib import contextmanager

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def asked_to_end():
    """A list in which the first signal to end appears; the second one ends as it would have without this."""
    seen, before = [], {}

    def note(number, _):
        seen.append(number)
        for each in SIGNALS:
            signal.signal(each, before[each])

    before.update({each: signal.signal(each, note) for each in SIGNALS})
    try:
        yield seen
    finally:
        for each in SIGNALS:
            signal.signal(each, before[each])
