"""The classes of this server, and who may do what.

Everybody in a class sees the same: it is looked up once a second, whoever asks.
"""

import functools
import os
import time
from collections import deque
from ipaddress import ip_address, ip_network

import streamlit as st

from core.settings.cache import once
from core.teaching.classroom import ClassError, Classroom, Started, Watched
from ui.kit.rights import may_write
from ui.kit.store import session

VARIABLE = "ABLATION_CLASSES"
REASON = (
    "Only whoever runs this server, or has its key, can start a class here. On your own computer anybody can: make run."
)
SECOND = 1.0  # for which what everybody sees is kept
GUESSES, MINUTE = 20, 60.0  # wrong codes of one visitor within a minute
STARTS, HOUR = 20, 3600.0  # classes that are started from one address within an hour
_begun: dict[str, deque[float]] = {}  # an address, of IPv6 a network -> when
WRONG = "class_guesses"  # what is kept for a visitor: when it was wrong


@once
def classroom() -> Classroom:
    return Classroom()


def may_start() -> bool:
    """Whether this visitor may start a class: who may write, or everybody where ABLATION_CLASSES is 1."""
    return may_write() or os.environ.get(VARIABLE) == "1"


def start(questions: list[str]) -> Started:
    """A new class. Raises ClassError, StoreError; ClassError also where STARTS were started from the same public address within an hour.

    An address that is not public is no visitor's own: it is that of a network, or of a proxy in front, and has no such limit."""
    address, now = _public(st.context.ip_address), time.monotonic()
    if not address:
        return classroom().start(questions)
    for each in [each for each, when in _begun.items() if now - when[-1] >= HOUR]:
        del _begun[each]
    when = _begun.get(address) or deque(maxlen=STARTS)
    if _full(when, HOUR):
        raise ClassError(
            "class", f"From where you are {STARTS} classes were started within an hour, as many as may be."
        )
    started = classroom().start(questions)
    _begun.setdefault(address, when).append(now)
    return started


def _public(address: object) -> str:
    """An address, if it is public; of IPv6 the network, all of whose addresses one visitor has (RFC 6177)."""
    try:
        known = ip_address(str(address).split("%")[0])  # without the name of an interface
    except ValueError:  # none, or what a proxy wrote in its place
        return ""
    known = getattr(known, "ipv4_mapped", None) or known
    if not known.is_global:
        return ""
    return str(known) if known.version == 4 else str(ip_network((known, 64), strict=False))


def watch(code: str) -> Watched:
    """What everybody may see of a class, not older than a second. Raises ClassError, StoreError."""
    wrong: deque[float] = session().kept.setdefault(WRONG, deque(maxlen=GUESSES))
    if _full(wrong, MINUTE):
        raise ClassError(
            "code", f"That were {GUESSES} wrong codes within a minute; wait a minute, and look at the code again."
        )
    try:
        return _watched(code.upper(), int(time.monotonic() / SECOND))
    except ClassError:
        wrong.append(time.monotonic())
        raise


def _full(when: deque[float], seconds: float) -> bool:
    """Whether as many as there is room for were within so many seconds."""
    return len(when) == when.maxlen and time.monotonic() - when[0] < seconds


@functools.lru_cache(maxsize=512)
def _watched(code: str, second: int) -> Watched:
    return classroom().watch(code)


def look_again():
    """What was changed just now is to be seen at once."""
    _watched.cache_clear()
