"""What the server writes down: of one kind a few lines a minute. Visitors can cause most kinds, as often as they like.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from core.settings.wording import printable

A_MINUTE, MINUTE = 10, 60.0
LONG = 8000  # characters of a traceback that are written, its beginning and its end: what somebody nested deeply has thousands of lines
LINE = 1000  # characters of what is said; it may hold what a visitor made up, which begins no line of its own
Kind = tuple[object, ...]


@contextmanager
def kept_short() -> Iterator[None]:
    """While it lasts, whatever is there to log by now passes on no more of a kind."""
    paced, loggers = Paced(), [logging.root, *map(logging.getLogger, [*logging.root.manager.loggerDict])]
    for each in loggers:
        each.addFilter(paced)
    yield
    for each in loggers:
        each.removeFilter(paced)


class Paced(logging.Filter):
    """Of each kind, which is a place in the code and what was raised where, A_MINUTE lines a minute; the next one says how many are missing."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[Kind, tuple[float, int]] = {}  # since when, and how many

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = _kind(record), time.monotonic()
        since, many = self._seen.get(kind, (now, 0))
        missing = 0
        if now - since >= MINUTE:
            since, many, missing = now, 0, many - A_MINUTE
        self._seen[kind] = since, many + 1
        if many >= A_MINUTE:
            return False
        _shorten(record)
        if missing > 0:
            record.msg = f"{record.msg} (and {missing} more of this kind, not shown)"
        return True


def _shorten(record: logging.LogRecord) -> None:
    try:
        said = record.getMessage()
    except (TypeError, ValueError):  # whoever wrote it made a mistake
        said = str(record.msg)
    lines = printable(said[:LINE]) + " …" if len(said) > LINE else "\n  ".join(map(printable, said.splitlines()))
    record.msg, record.args = lines, ()
    if record.exc_info and record.exc_info[1] and not record.exc_text:
        text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
        if len(text) > LONG:
            record.exc_text = f"{text[: LONG // 2]}\n  … {len(text) - LONG:,} characters …\n{text[-LONG // 2 :]}"


def _kind(record: logging.LogRecord) -> Kind:
    error, place = record.exc_info and record.exc_info[1], None
    if isinstance(error, BaseException):
        frame = error.__traceback__
        while frame:
            place, frame = (frame.tb_frame.f_code.co_filename, frame.tb_lineno), frame.tb_next
    return record.pathname, record.lineno, type(error), place
