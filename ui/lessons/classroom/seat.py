"""A student's seat: its key stays in the browser, so that a reload, or a lost connection, leads back to it."""

from dataclasses import dataclass, field
from threading import Lock

from core.study.database.connection import StoreError
from core.teaching.classroom import ClassError, Vote
from ui.kit.store import session
from ui.lessons.classroom.browser_key import sync_key
from ui.lessons.classroom.server import classroom, look_again

KEPT = "seats"  # for a visitor: code of a class -> Seat


@dataclass
class Seat:
    """key: "" before the student has joined; asked: whether the browser has said if it has one; trouble: what was refused last."""

    key: str = ""
    asked: bool = False
    trouble: str = ""
    votes: dict[tuple[str, int], Vote] = field(default_factory=dict)
    turn: Lock = field(default_factory=Lock, repr=False)  # a second press begins before the first has ended


def seat(code: str) -> Seat:
    """Of this visitor, in a class."""
    return session().kept.setdefault(KEPT, {}).setdefault(code, Seat())


def keep(code: str):
    """Let the browser keep the key, and say whether it has one."""
    held = seat(code)
    told = sync_key(f"ablation-lab-class-{code}", held.key, held.asked)
    if held.asked or told is None:
        return
    # Not in a callback: a server that was started again is told with the first run, and what stands in a form that is not
    # drawn even once is lost.
    held.asked = True
    if not held.key and told:
        take(code, key=told)


def take(code: str, nickname: str = "", key: str = ""):
    """Join, or come back; pressed twice it is one seat."""
    held = seat(code)
    with held.turn:
        if held.key:
            return
        held.trouble = ""
        try:
            held.key = classroom().join(code, nickname, key)
            held.votes = dict(classroom().mine(code, held.key))
        except ClassError as error:
            held.trouble = "" if key else str(error)  # a seat of a class that is over is none
        except StoreError as error:
            held.trouble = error.told
    look_again()


def refuse(code: str, why: str):
    """What is said where nothing was sent (a callback)."""
    seat(code).trouble = why


def vote(code: str, question: str, round: int, answer: str, sure: int = 0, because: str = ""):
    """Send a vote (a callback). It is said to be in only when it is stored."""
    held = seat(code)
    held.trouble = ""
    try:
        done = classroom().vote(code, held.key, question, round, answer, sure, because)
        held.votes[question, round] = Vote(answer, sure, because, done.at)
    except ClassError as error:
        held.trouble = str(error)
        held.votes = dict(classroom().mine(code, held.key)) if error.field == "vote" else held.votes
    except StoreError as error:
        held.trouble = error.told
