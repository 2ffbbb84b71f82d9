"""The classes of this server, and who may do what.

Everybody in a class sees the same: it is looked up once a second, whoever asks.
"""

import functools
import os
import time
from collections import deque

from core.settings.cache import once
from core.teaching.classroom import ClassError, Classroom, Watched
from ui.kit.rights import may_write
from ui.kit.session.visitor import calm_visitor

VARIABLE = "ABLATION_CLASSES"
REASON = (
    "Only whoever runs this server, or has its key, can start a class here. On your own computer anybody can: make run."
)
SECOND = 1.0  # for which what everybody sees is kept
GUESSES, MINUTE = 20, 60.0  # wrong codes of one visitor within a minute
WRONG = "class_guesses"  # what is kept for a visitor: when it was wrong


@once
def classroom() -> Classroom:
    return Classroom()


def may_start() -> bool:
    """Whether this visitor may start a class: who may write, or everybody where ABLATION_CLASSES is 1."""
    return may_write() or os.environ.get(VARIABLE) == "1"


def watch(code: str) -> Watched:
    """What everybody may see of a class, not older than a second. Raises ClassError, StoreError."""
    wrong: deque[float] = calm_visitor().kept.setdefault(WRONG, deque(maxlen=GUESSES))
    now = time.monotonic()
    if len(wrong) == GUESSES and now - wrong[0] < MINUTE:
        raise ClassError(
            "code", f"That were {GUESSES} wrong codes within a minute; wait a minute, and look at the code again."
        )
    try:
        return _watched(code.upper(), int(now / SECOND))
    except ClassError:
        wrong.append(now)
        raise


@functools.lru_cache(maxsize=512)
def _watched(code: str, second: int) -> Watched:
    return classroom().watch(code)


def look_again():
    """What was changed just now is to be seen at once."""
    _watched.cache_clear()
