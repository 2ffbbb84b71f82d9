"""Shared parts of the class views: this server's classes, keys, seats and distributions."""

import functools
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import streamlit as st

from core.figures.small_pictures import Count
from core.settings.cache import make_once
from core.study.database.connection import BusyError, StoreError
from core.teaching.classroom import ClassError, Classroom, Vote, Watched
from core.teaching.lessons.language import phrases
from core.teaching.lessons.prediction import measure_outcome
from core.teaching.questions import PREDICTION, Question
from ui.kit.page import literal
from ui.kit.rights import may_write
from ui.kit.server.scripts import store_script
from ui.kit.store import session, value
from ui.lessons.classroom import ClassContext
from ui.lessons.html import draw_html, render_bars, render_legend

VARIABLE = "ABLATION_CLASSES"
KEY = re.compile(r"[\w-]{10,60}")
# entries of Session.kept: code of a class -> Seat, Key
KEPT = "seats"
TEACHER_KEYS = "teacher_keys"
SEEN = "classes_seen"  # entry of Session.kept: codes of classes that existed
PAGE = "pages/8_Class.py"

_component = st.components.v2.component(
    "ablation_seat",
    html="<div></div>",
    js=store_script((Path(__file__).parent / "browser_key.js").read_text()),
)


@make_once
def classroom() -> Classroom:
    """Return the server's store of classes; one per process."""
    return Classroom()


def may_start() -> bool:
    """Return whether this user may start a class: writers, or all with ABLATION_CLASSES=1."""
    return may_write() or os.environ.get(VARIABLE) == "1"


def watch(code: str) -> Watched:
    """Return everybody's view of a class, at most a second old; ClassError or StoreError."""
    try:
        return _watch(code.upper(), int(time.monotonic()))
    except StoreError as error:
        error.public_message = describe_error(error)
        raise


@functools.lru_cache(maxsize=512)
def _watch(code: str, second: int) -> Watched:
    """Return the public view of a class, cached per second."""
    return classroom().watch(code)


def clear_view_cache() -> None:
    """Clear the cache of public views of all classes, so that a change is visible at once."""
    _watch.cache_clear()


def describe_error(error: ClassError | StoreError) -> str:
    """Return an error's message for users, in the language of the page."""
    words = phrases(value("language"))
    if isinstance(error, BusyError):
        return words["error_busy"]
    if isinstance(error, StoreError):
        return f"{words['error_store']} ({error.public_message})"
    return words.get(f"error_{error.field}", str(error))


@dataclass
class Key:
    """Key that the browser stores, "" if unknown.

    Args:
        value: The key.
        has_answered: Whether the browser has sent its key.
    """

    value: str = ""
    has_answered: bool = False


@dataclass
class Seat(Key):
    """Student's seat in a class.

    Args:
        trouble: Message of the last refusal, or "".
        votes: Votes of this seat by (question, round).
        turn: Lock for joining: a second press begins before the first has ended.
    """

    trouble: str = ""
    votes: dict[tuple[str, int], Vote] = field(default_factory=dict)  # (question, round) -> vote
    turn: Lock = field(
        default_factory=Lock, repr=False
    )  # a second press begins before the first has ended


def sync_key(storage_name: str, key: Key) -> str:
    """Store a key in the browser, by a component; return the browser's own key once, else ""."""
    data = {"place": storage_name, "key": key.value, "asked": key.has_answered}
    result = _component(key=storage_name, data=data, on_kept_change=lambda: None).kept
    if key.has_answered or not isinstance(result, str):
        return ""
    key.has_answered = True
    return result if KEY.fullmatch(result) and not key.value else ""


def store_teacher_key(code: str, key: str) -> None:
    """Store a class's teacher key in this session; the next sync stores it in the browser."""
    session().kept.setdefault(TEACHER_KEYS, {})[code] = Key(key)


def sync_teacher_key(code: str) -> Key:
    """Return the teacher's key of a class, from session or browser; its value is "" without one.

    Both store it; it is not checked.
    """
    key = session().kept.setdefault(TEACHER_KEYS, {}).setdefault(code, Key())
    key.value = sync_key(f"ablation-lab-teacher-{code}", key) or key.value
    return key


def seat(code: str) -> Seat:
    """Return this session's seat in a class, an empty one until it has joined."""
    return session().kept.setdefault(KEPT, {}).setdefault(code, Seat())


def sync_seat(code: str) -> Seat:
    """Return this session's seat; draw the component that keeps its key, or restores it."""
    own_seat = seat(code)
    key = sync_key(f"ablation-lab-class-{code}", own_seat)
    if key:
        join(code, key=key)
    return own_seat


def join(code: str, nickname: str = "", key: str = "") -> None:
    """Take a seat unless taken, or return to one by its key; put a refusal in `seat.trouble`.

    A success clears it. The refusal of an old key is not put there: the student is asked for a
    nickname again.
    """
    own_seat = seat(code)
    with own_seat.turn:
        if own_seat.value:
            return
        own_seat.trouble = ""
        try:
            own_seat.value = classroom().join(code, nickname, key)
            own_seat.votes = classroom().read_own_votes(code, own_seat.value)
        except (ClassError, StoreError) as error:
            is_old = bool(key) and isinstance(
                error, ClassError
            )  # a seat of a class that is over is none
            own_seat.trouble = "" if is_old else describe_error(error)
    clear_view_cache()


def vote(
    code: str, question_name: str, round: int, answer: str, confidence: int = 0, reason: str = ""
) -> None:
    """Store a vote of a round, from 1; a refusal in `seat.trouble`, else "" (a callback).

    The seat keeps the vote; confidence 0 is a guess.
    """
    own_seat = seat(code)
    own_seat.trouble = ""
    try:
        own_seat.votes[question_name, round] = classroom().vote(
            code, own_seat.value, question_name, round, answer, confidence, reason
        )
    except (ClassError, StoreError) as error:
        own_seat.trouble = describe_error(error)
        if isinstance(error, ClassError) and error.field == "vote":
            own_seat.votes = classroom().read_own_votes(code, own_seat.value)


def find_class(context: ClassContext) -> Watched | None:
    """Return the class's public view; None, with a message drawn, if there is none; StoreError."""
    classes_seen = session().kept.setdefault(SEEN, set())
    try:
        now = watch(context.code)
    except ClassError as error:
        if error.field == "code" and context.code in classes_seen:
            st.info(literal(context.words["class_over"]), icon=":material/done_all:")
        else:
            st.warning(literal(describe_error(error)))
        return None
    classes_seen.add(context.code)
    return now


def describe_students(n_students: int, texts: Mapping[str, str]) -> str:
    """Return a phrase on how many students are in the class."""
    return texts["class_student" if n_students == 1 else "class_students"].format(n=n_students)


def describe_time_left(now: Watched, texts: Mapping[str, str]) -> str:
    """Return " · " and a phrase on the remaining time; "" without a limit, or if closed."""
    return f" · {texts['class_left'].format(n=int(now.left))}" if now.left is not None else ""


def count_votes(question: Question, now: Watched, is_revealed: bool) -> list[Count]:
    """Count each round's votes by answer; right ones marked once revealed.

    Before it is revealed, a question without votes has no counts; then it has counts of 0.
    """
    votes = {round: counts for round, counts in (now.distribution or {}).items() if counts}
    if is_revealed and not votes:
        votes = {now.round: {}}
    return (
        question.count_answers(
            votes, measure_outcome(question.lesson) if is_revealed and question.lesson else None
        )
        if votes
        else []
    )


def draw_distribution(
    question: Question,
    now: Watched,
    texts: Mapping[str, str],
    is_revealed: bool,
    key: str = "distribution",
) -> None:
    """Draw how many students gave each answer; nothing without votes.

    Args:
        question: Question that is open.
        now: Public view of the class.
        texts: Texts of the page.
        is_revealed: Whether the right answer is marked.
        key: Key of the component.
    """
    counts = count_votes(question, now, is_revealed)
    if not counts:
        return
    draw_html(key, render_bars(counts, texts, has_letters(question)) + render_legend(counts, texts))
    if question.is_number:
        st.caption(literal(texts["class_guesses"]))


def has_letters(question: Question) -> bool:
    """Return whether answers are lettered: options to choose from, not a ranking or a number."""
    return bool(question.offered) and not (
        question.kind == PREDICTION and question.prediction.ranked
    )


def draw_reasons(reasons: Sequence[str], texts: Mapping[str, str]) -> None:
    """Draw the reasons (texts) that the teacher has picked, with a title; nothing without any."""
    if reasons:
        st.markdown(f"**{literal(texts['class_reasons'])}**")
    for reason in reasons:
        st.markdown(f"> {literal(reason)}")
