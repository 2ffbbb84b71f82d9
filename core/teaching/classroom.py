"""Classes: students, questions and votes in one database.

Classroom is the store: one object per process, called from as many threads as there are users. Its
tables are in the database of studies, with a version of their own.
"""

import contextlib
import functools
import hashlib
import json
import math
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd
import sqlalchemy
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    exc,
    func,
    inspect,
    select,
)

from core.settings.setting import ConfigError
from core.settings.wording import count, shorten
from core.study.database.connection import BusyError, Connected, StoreError, patiently
from core.study.database.schema import Clock
from core.teaching.lessons.language import clean

T = TypeVar("T")
P = ParamSpec("P")
Room = sqlalchemy.Row[*tuple[Any, ...]]  # a row of class_rooms
Distribution = Mapping[int, Mapping[str, int]]  # round -> answer -> votes

WITHIN = 8.0  # seconds for which a busy database is tried again
COLUMNS = ["class", "question", "round", "seat", "nickname", "answer", "sure", "because", "seconds"]
HOURS = 24  # lifetime of a class; nothing about students is kept for longer
CLASSES = 200  # at once: hardly one in 5,000 of the codes that could be guessed belongs to a class
SEATS = 500  # of a class: a large lecture
QUESTIONS = 100  # of a class
SURE = 3  # the surest; 0 is a guess
ROUNDS = 2  # before the discussion, and after it
SECONDS = 3600  # the longest time of a question
PICKED = 3  # reasons shown at once
LONGEST = {"nickname": 40, "because": 300, "answer": 200, "question": 100}  # characters

# A code is never a word, and none of its letters is taken for another or for a digit.
LETTERS = "BCDFGHJKMNPRTWXY"
CODE = 5  # letters
HASH = 64  # characters of hash_secret()
VERSION = 1
# WAITING: nothing has been asked yet; it is never stored.
WAITING = "waiting"
OPEN = "open"
CLOSED = "closed"
DISCUSSION = "discussion"
REVEALED = "revealed"


class ClassError(ConfigError):
    """Refused action of a class; its message is shown as it is.

    `field` names the cause: "code", "token", "key" (unknown), "nickname", "question", "round",
    "seconds", "answer", "sure", "because", "pick" (the value given), "class" (a limit), "full",
    "vote" (already stored), "late", "phase", "unasked", "moved_on" (another question is open).
    """


metadata = MetaData()

versions = Table(
    "class_version",
    metadata,
    Column(
        "only", Integer, primary_key=True, autoincrement=False
    ),  # 1: of two that create the tables, one fails
    Column("version", Integer, nullable=False),
)

rooms = Table(
    "class_rooms",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("code", String(CODE), nullable=False, unique=True),
    Column("token", String(HASH), nullable=False, unique=True),  # the hash of the teacher's
    Column("began", Double, nullable=False),  # by Clock(), as all times here
    Column(
        "stamp", Integer, nullable=False, default=0
    ),  # unused; databases of earlier versions have it
    Column("current", Integer),  # the poll that is open, or was last
    Column("questions", Text, nullable=False),  # names of the planned ones, as JSON
    sqlite_autoincrement=True,  # the number of a deleted row is not used again
)

seats = Table(
    "class_seats",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("room", ForeignKey(rooms.c.id, ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),  # 1, 2, … in the order of joining
    Column("key", String(HASH), nullable=False),  # its hash
    Column("nickname", String(LONGEST["nickname"]), nullable=False),
    Column("joined", Double, nullable=False),
    Column("since", Double, nullable=False, default=0.0),  # unused, as the next one
    Column("tries", Integer, nullable=False, default=0),
    UniqueConstraint("room", "number"),
    UniqueConstraint("room", "key"),
    sqlite_autoincrement=True,
)

polls = Table(
    "class_polls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("room", ForeignKey(rooms.c.id, ondelete="CASCADE"), nullable=False),
    Column("question", String(LONGEST["question"]), nullable=False),
    Column("round", Integer, nullable=False, default=1),
    Column("phase", String(10), nullable=False, default=OPEN),  # OPEN also when `closes` has passed
    Column(
        "shown", Boolean, nullable=False, default=False
    ),  # whether everybody sees the distribution
    Column("opened", Double, nullable=False),  # of its newest round, as the next two
    Column("closes", Double),
    Column("closed", Double),
    UniqueConstraint("room", "question"),
    sqlite_autoincrement=True,
)

votes = Table(
    "class_votes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("poll", ForeignKey(polls.c.id, ondelete="CASCADE"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("seat", ForeignKey(seats.c.id, ondelete="CASCADE"), nullable=False),
    Column("answer", String(LONGEST["answer"]), nullable=False),
    Column("sure", Integer, nullable=False),
    Column("because", String(LONGEST["because"]), nullable=False),
    Column("at", Double, nullable=False),
    Column("after", Double, nullable=False),  # seconds after its round was opened
    Column("picked", Integer),  # 1, 2, …: its place among the reasons that everybody sees
    UniqueConstraint("poll", "round", "seat"),  # a vote is there once
    Index("class_votes_by_seat", "seat"),
    sqlite_autoincrement=True,
)


def has_tables(connection: Connection) -> bool:
    """Return whether the tables exist, by that of versions; StoreError if of another version."""
    if not inspect(connection).has_table(versions.name):
        return False
    stored_versions = connection.scalars(select(versions.c.version)).all()
    if stored_versions != [VERSION]:
        raise StoreError(
            "This database stores classes of version"
            f" {', '.join(map(str, stored_versions)) or 'none'}; this version of the project"
            f" supports {VERSION} only. Update the project, or use another database."
        )
    return True


def create_tables(connection: Connection) -> None:
    """Create the tables where they are missing; StoreError for another version."""
    if not has_tables(connection):
        metadata.create_all(connection)
        connection.execute(versions.insert().values(only=1, version=VERSION))


def check_text(name: str, value: str, is_needed: bool = False) -> str:
    """Return a text as one trimmed line; ClassError beyond LONGEST[name], or needed and empty.

    Args:
        name: Which text: a key of LONGEST.
        value: As it was typed.
        is_needed: Whether an empty text is refused.
    """
    text = clean(str(value))
    limit = LONGEST[name]
    word = "reason" if name == "because" else name
    if len(text) > limit:
        raise ClassError(
            name, f"The {word} has {count(len(text), 'character')}; it may have at most {limit}."
        )
    if is_needed and not text:
        raise ClassError(name, f"The {word} is empty; it must have 1 to {limit} characters.")
    return text


def check_seconds(seconds: float | None) -> float | None:
    """Return seconds, 1 to SECONDS, as a float; None for no limit; ClassError for others."""
    if seconds is None:
        return None
    if type(seconds) not in (int, float) or math.isnan(seconds) or not 1 <= seconds <= SECONDS:
        raise ClassError(
            "seconds",
            f"The time is {shorten(seconds)}; it must be 1 to {SECONDS:,} seconds, or none.",
        )
    return float(seconds)


def new_code() -> str:
    """Return a random code for a class, five letters."""
    return "".join(secrets.choice(LETTERS) for _ in range(CODE))


def parse_code(typed: str) -> str:
    """Return a typed code as it is stored: "bcd-fg" becomes "BCDFG"; "" for an impossible one."""
    letters = "".join(str(typed)[:100].upper().replace("-", " ").split())
    return letters if len(letters) == CODE and set(letters) <= set(LETTERS) else ""


def hash_secret(secret: str) -> str:
    """Return the SHA-256, in hex, of a teacher's or student's key; only hashes are stored."""
    return hashlib.sha256(str(secret)[:1000].encode("utf-8", "surrogatepass")).hexdigest()


ALIVE = rooms.c.began > Clock() - HOURS * 3600.0


@dataclass(frozen=True)
class Started:
    """New class: the code that students type, and the teacher's key (stored as a hash)."""

    code: str
    token: str


@dataclass(frozen=True)
class Vote:
    """Stored vote. at: seconds since 1970 by the database's clock."""

    answer: str
    sure: int
    because: str
    at: float


@dataclass(frozen=True)
class Watched:
    """Public, anonymous view of a class.

    Args:
        question, round: The current or last question; "" and 0 before the first one.
        left: Seconds until it closes; None where it closes by hand or is closed.
        time: Seconds for which it is open in all; None as `left`.
        votes: Number of votes of this round.
        distribution: Votes per answer of both rounds; None while it is not shown.
        picked: The reasons that the teacher picked, in that order.
    """

    code: str
    phase: str
    question: str
    round: int
    left: float | None
    time: float | None
    seats: int
    votes: int
    distribution: Distribution | None
    picked: tuple[str, ...]


@dataclass(frozen=True)
class Reason:
    """Reason that a student gave, without a name. id: by which it is picked."""

    id: int
    round: int
    answer: str
    text: str
    picked: bool


@dataclass(frozen=True)
class TeacherView(Watched):
    """Teacher's view of a class, with the distribution of an open question.

    Args:
        planned: The questions given at the start.
        asked: The questions that were opened, in that order.
        shown: Whether everybody sees the distribution once the question is closed.
        waiting: (number, nickname) of the seats without a vote in this round.
        reasons: Of both rounds of this question, the oldest first.
    """

    distribution: Distribution
    planned: tuple[str, ...]
    asked: tuple[str, ...]
    shown: bool
    waiting: tuple[tuple[int, str], ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Poll:
    """Current question of a class. is_over: its time is over, which is not stored yet."""

    id: int
    question: str
    round: int
    phase: str  # CLOSED once its time is over
    shown: bool
    opened: float
    left: float | None
    time: float | None
    is_over: bool
    now: float


def by_code(code: str) -> tuple[ColumnElement[bool], ClassError]:
    """Return the SQL condition for a class with this code, and the error to raise without one."""
    words = (
        f"There is no class {shorten(code, 20)}. A code has five letters, and a class ends after"
        f" {HOURS} hours."
    )
    return rooms.c.code == parse_code(code), ClassError("code", words)


def by_token(token: str) -> tuple[ColumnElement[bool], ClassError]:
    """Return the SQL condition for a class with this teacher's key, and the error without one."""
    words = f"No class has this teacher key. A class ends after {HOURS} hours."
    return rooms.c.token == hash_secret(token), ClassError("token", words)


def transaction(
    find: Callable[[str], tuple[ColumnElement[bool], ClassError]], writes: bool = False
) -> Callable[
    [Callable[Concatenate["Classroom", Connection, Room, P], T]],
    Callable[Concatenate["Classroom", str, P], T],
]:
    """Decorate a method of (connection, room, …) to take a code or key; ClassError if unknown.

    Classes that have expired are unknown.

    It may be called again where it is not known whether a first call was stored.
    """

    def decorate(
        step: Callable[Concatenate["Classroom", Connection, Room, P], T],
    ) -> Callable[Concatenate["Classroom", str, P], T]:
        @functools.wraps(step)
        def method(self: "Classroom", url: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
            condition, unknown = find(url)
            query = select(rooms).where(condition, ALIVE)

            def call(connection: Connection) -> T:
                # A writer has the class alone from here on, and reads the rest only then.
                locked = query.with_for_update() if writes else query
                room = connection.execute(locked).one_or_none()
                if room is None:
                    raise unknown
                return step(self, connection, room, *args, **kwargs)

            if not self.has_tables():
                raise unknown
            return self.run(call, writes)

        return method

    return decorate


class Classroom:
    """Store of classes, in the studies' database or its own; tables come with the first class.

    A change is stored when its method returns, even if the process is killed then. Every method
    raises ClassError for what a class does not allow or have, and StoreError for a database that
    cannot be used (BusyError where that may pass).

    Args:
        url: An address or the path of a file; None for ABLATION_DATABASE_URL, or studies.sqlite in
            this folder.
    """

    def __init__(self, url: str | None = None) -> None:
        self.database = Connected(url)
        self._has_tables = False
        # SQLite has one writer at a time. Its own way of waiting is to look again after ever longer
        # pauses.
        is_sqlite = self.database.url.get_backend_name() == "sqlite"
        self._turn = threading.Lock() if is_sqlite else contextlib.nullcontext()

    def run(self, call: Callable[[Connection], T], writes: bool = False) -> T:
        """Return call(connection) from one transaction, tried again while busy, for 8 s at most."""

        def attempt() -> T:
            try:
                if not writes:
                    with self.database.reading() as connection:
                        return call(connection)
                with self._turn, self.database.writing() as connection:
                    return call(connection)
            except (
                exc.TimeoutError
            ) as error:  # all connections of this process were in use for half a minute
                words = "is overloaded. Try again in a minute."
                raise BusyError(
                    f"The store {self.database.name} {words}", f"The store {words}"
                ) from error

        return patiently(attempt, WITHIN)

    def has_tables(self) -> bool:
        """Return whether a class was ever started here (creates none); StoreError for other tables.

        Others are those of another version.
        """
        path = self.database.path
        if not self._has_tables and (path is None or os.path.exists(path)):
            self._has_tables = self.run(has_tables)
        return self._has_tables

    def start(self, questions: Iterable[str] = ()) -> Started:
        """Start a class, creating tables, deleting old classes; return its code and teacher's key.

        Args:
            questions: Names of the planned questions; others may be asked.
        """
        names = list(
            dict.fromkeys(check_text("question", name, is_needed=True) for name in questions)
        )
        if len(names) > QUESTIONS:
            words = f"{len(names)} questions are planned; a class may ask at most {QUESTIONS}."
            raise ClassError("question", words)
        token = secrets.token_urlsafe(24)
        if not self.has_tables():
            self.run(create_tables, writes=True)
        return Started(
            self.run(lambda connection: _start(connection, hash_secret(token), names), writes=True),
            token,
        )

    def sweep(self) -> int:
        """Delete the classes that began more than 24 hours ago; return how many."""
        return self.run(_sweep, writes=True) if self.has_tables() else 0

    def shut(self) -> None:
        """Close the connections to the database."""
        self.database.close()

    def join(self, code: str, nickname: str = "", key: str = "") -> str:
        """Take a seat and return its key; with `key` return to its seat, renamed unless "".

        A given key comes back; an unknown one raises ClassError. "" keeps the nickname.
        """
        name = check_text("nickname", nickname)
        fresh = key or secrets.token_urlsafe(16)
        self._join(code, hash_secret(fresh), name, is_new=not key)
        return fresh

    @transaction(by_code, writes=True)
    def _join(
        self, connection: Connection, room: Room, key_hash: str, nickname: str, is_new: bool
    ) -> None:
        """Seat a new student once, or rename a known one unless ""; ClassError: full or unknown."""
        is_own = and_(seats.c.room == room.id, seats.c.key == key_hash)
        if not is_new:
            _find_seat(connection, room, key_hash)
            if nickname:
                connection.execute(seats.update().where(is_own).values(nickname=nickname))
            return
        if (
            connection.scalar(select(seats.c.id).where(is_own)) is not None
        ):  # a call that is repeated
            return
        n_seats = _count_seats(connection, room)
        if n_seats >= SEATS:
            raise ClassError(
                "full", f"Class {room.code} is full: all of its {SEATS} seats are taken."
            )
        values = {
            "room": room.id,
            "number": n_seats + 1,
            "key": key_hash,
            "nickname": nickname,
            "joined": Clock(),
        }
        connection.execute(seats.insert().values(values))

    @transaction(by_code, writes=True)
    def vote(
        self,
        connection: Connection,
        room: Room,
        key: str,
        question: str,
        round: int,
        answer: str,
        sure: int = 0,
        because: str = "",
    ) -> Vote:
        """Store and return a vote of a round, from 1; ClassError if refused; call with (code, …).

        `sure` goes from 0 (a guess) to SURE.

        The same vote again is accepted again. Another one is refused ("vote"), as is a late one
        ("late", by the database's clock) and one on a question that is not open ("unasked",
        "moved_on").
        """
        if type(sure) is not int or not 0 <= sure <= SURE:
            words = (
                f"The confidence is {shorten(sure)}; it must be a whole number from 0 to {SURE}."
            )
            raise ClassError("sure", words)
        chosen: dict[str, Any] = {
            "answer": check_text("answer", answer, is_needed=True),
            "sure": sure,
            "because": check_text("because", because),
        }
        seat = _find_seat(connection, room, hash_secret(key))
        is_own = and_(votes.c.seat == seat, polls.c.question == question, votes.c.round == round)
        before = connection.execute(
            select(votes).join_from(votes, polls).where(is_own)
        ).one_or_none()
        if before is not None:
            if any(getattr(before, name) != value for name, value in chosen.items()):
                raise ClassError("vote", "Your vote is already recorded and cannot be changed.")
            return Vote(**chosen, at=before.at)
        poll = _find_poll(connection, room)
        if poll is None:
            raise ClassError("unasked", "No question is open yet.")
        if poll.phase != OPEN:
            raise ClassError(
                "late", "Voting on this question is closed; your vote was too late to count."
            )
        if (poll.question, poll.round) != (question, round):
            raise ClassError(
                "moved_on", f"Another question is open now (round {poll.round}). Vote on that one."
            )
        place = {
            "poll": poll.id,
            "round": round,
            "seat": seat,
            "at": poll.now,
            "after": poll.now - poll.opened,
        }
        connection.execute(votes.insert().values(place | chosen))
        return Vote(**chosen, at=poll.now)

    @transaction(by_code)
    def read_own_votes(
        self, connection: Connection, room: Room, key: str
    ) -> dict[tuple[str, int], Vote]:
        """Return (question, round) -> vote; ClassError without a seat; call with (code, key)."""
        seat = _find_seat(connection, room, hash_secret(key))
        columns = (
            polls.c.question,
            votes.c.round,
            votes.c.answer,
            votes.c.sure,
            votes.c.because,
            votes.c.at,
        )
        query = (
            select(*columns)
            .join_from(votes, polls)
            .where(votes.c.seat == seat)
            .order_by(votes.c.id)
        )
        return {
            (question, round): Vote(*fields)
            for question, round, *fields in connection.execute(query)
        }

    @transaction(by_code)
    def watch(self, connection: Connection, room: Room) -> Watched:
        """Return everybody's view; distribution None before it is shown; call with (code)."""
        poll = _find_poll(connection, room)
        current = _read_view(connection, room, poll)
        if poll is None or poll.phase == OPEN or not (poll.shown or poll.phase == REVEALED):
            return replace(current, distribution=None)
        return current

    @transaction(by_token)
    def watch_as_teacher(self, connection: Connection, room: Room) -> TeacherView:
        """Return the teacher's view, with plan, reasons, who has not voted; call with (token)."""
        poll = _find_poll(connection, room)
        questions = select(polls.c.question).where(polls.c.room == room.id).order_by(polls.c.id)
        details: dict[str, Any] = {
            "planned": tuple(json.loads(room.questions)),
            "asked": tuple(connection.scalars(questions)),
            "shown": poll is not None and poll.shown,
            "waiting": (),
            "reasons": (),
        }
        if poll:
            voted = select(votes.c.seat).where(votes.c.poll == poll.id, votes.c.round == poll.round)
            late = select(seats.c.number, seats.c.nickname).where(
                seats.c.room == room.id, seats.c.id.not_in(voted)
            )
            details["waiting"] = tuple(
                map(tuple, connection.execute(late.order_by(seats.c.number)))
            )
            columns = (
                votes.c.id,
                votes.c.round,
                votes.c.answer,
                votes.c.because,
                votes.c.picked.is_not(None),
            )
            reasons = (
                select(*columns)
                .where(votes.c.poll == poll.id, votes.c.because != "")
                .order_by(votes.c.id)
            )
            details["reasons"] = tuple(Reason(*row) for row in connection.execute(reasons))
        return TeacherView(**vars(_read_view(connection, room, poll)) | details)

    @transaction(by_token)
    def read_answers(self, connection: Connection, room: Room) -> pd.DataFrame:
        """Return a class's votes, a row each, with COLUMNS (seat, nickname, …); call with (token).

        Ordered by question, round and seat.

        Seconds count from the opening of the round.
        """
        columns = (
            polls.c.question,
            votes.c.round,
            seats.c.number,
            seats.c.nickname,
            votes.c.answer,
            votes.c.sure,
            votes.c.because,
            votes.c.after,
        )
        query = select(*columns).join_from(votes, polls).join(seats, votes.c.seat == seats.c.id)
        ordered = query.where(polls.c.room == room.id).order_by(
            polls.c.id, votes.c.round, seats.c.number
        )
        return pd.DataFrame(
            [(room.code, *row) for row in connection.execute(ordered)], columns=COLUMNS
        )

    # Steps of a teacher, each of which may be taken twice:
    # open → closed → discussion → open, round 2 → closed → revealed; discussion and round 2 may be
    # left out.

    @transaction(by_token, writes=True)
    def open(
        self, connection: Connection, room: Room, question: str, seconds: float | None = None
    ) -> None:
        """Open a question, closing the last; ClassError if asked; call with (token, question, …).

        It may be one that was not planned.

        Each question is asked once. Opened again in its first round, before it closes, its time
        starts again.

        Args:
            connection: The connection, given by `transaction`.
            room: The row of the class, given by `transaction`.
            question: Name of the question.
            seconds: Time until it closes by itself, 1 to 3,600; None to close it by hand.
        """
        name = check_text("question", question, is_needed=True)
        time = check_seconds(seconds)
        poll = _find_poll(connection, room)
        closes = None if time is None else Clock() + time
        if poll and (poll.question, poll.round, poll.phase) == (name, 1, OPEN):
            _update_poll(connection, poll, closes=closes)
            return
        questions = list(
            connection.scalars(select(polls.c.question).where(polls.c.room == room.id))
        )
        if name in questions:
            raise ClassError(
                "question", f"The question {shorten(name)} was already asked in this class."
            )
        if len(questions) >= QUESTIONS:
            words = (
                f"This class has reached the limit of {QUESTIONS} questions. Start another class."
            )
            raise ClassError("class", words)
        if poll:
            _close(connection, poll)
        values = {"room": room.id, "question": name, "opened": Clock(), "closes": closes}
        inserted = connection.execute(
            polls.insert().values(values).returning(polls.c.id)
        ).scalar_one()
        connection.execute(rooms.update().where(rooms.c.id == room.id).values(current=inserted))

    @transaction(by_token, writes=True)
    def close(self, connection: Connection, room: Room) -> None:
        """Close voting in this round, if open; ClassError before a question; call with (token)."""
        _close(connection, _require_poll(connection, room))

    @transaction(by_token, writes=True)
    def discuss(self, connection: Connection, room: Room) -> None:
        """Begin the discussion; ClassError if open, in round 2 or revealed; call with (token)."""
        poll = _require_poll(connection, room, OPEN, REVEALED)
        if poll.round == ROUNDS:
            words = (
                "There is no discussion after the second round. Reveal the result, or open another"
                " question."
            )
            raise ClassError("phase", words)
        _close(connection, poll)
        _update_poll(connection, poll, phase=DISCUSSION)

    @transaction(by_token, writes=True)
    def open_second_round(
        self, connection: Connection, room: Room, seconds: float | None = None
    ) -> None:
        """Open round 2 (round 1 closed), or restart its clock; call with (token, seconds or None).

        ClassError while the first round is open, and once the result is revealed.

        The distribution is hidden again.
        """
        time = check_seconds(seconds)
        poll = _require_poll(connection, room)
        closes = None if time is None else Clock() + time
        if (poll.round, poll.phase) == (ROUNDS, OPEN):
            _update_poll(connection, poll, closes=closes)
            return
        poll = _require_poll(connection, room, OPEN, REVEALED)
        if poll.round == ROUNDS:
            raise ClassError(
                "phase", f"All {ROUNDS} rounds of this question are over. Open another question."
            )
        begin = {"phase": OPEN, "shown": False, "opened": Clock(), "closes": closes, "closed": None}
        _update_poll(connection, poll, round=poll.round + 1, **begin)

    @transaction(by_token, writes=True)
    def show(self, connection: Connection, room: Room, on: bool = True) -> None:
        """Show or hide the distribution; ClassError while open; call with (token, on).

        It stays visible once the answer is revealed.
        """
        _update_poll(connection, _require_poll(connection, room, OPEN), shown=bool(on))

    @transaction(by_token, writes=True)
    def reveal(self, connection: Connection, room: Room) -> None:
        """End a closed question: all see answer, votes; ClassError if open; call with (token)."""
        poll = _require_poll(connection, room, OPEN)
        _close(connection, poll)
        _update_poll(connection, poll, phase=REVEALED)

    @transaction(by_token, writes=True)
    def pick(self, connection: Connection, room: Room, ids: Iterable[int]) -> None:
        """Show just these reasons (ids, up to 3) of a closed question; call with (token, ids).

        [] hides all. ClassError for other ids.

        The question must be closed.
        """
        questions = list(dict.fromkeys(ids))
        if len(questions) > PICKED:
            raise ClassError(
                "pick", f"{len(questions)} reasons are selected; at most {PICKED} can be shown."
            )
        poll = _require_poll(connection, room, OPEN)
        reasons = (votes.c.poll == poll.id) & (votes.c.because != "")
        unknown = set(questions) - set(connection.scalars(select(votes.c.id).where(reasons)))
        if unknown:
            words = (
                f"{shorten(unknown.pop())} is not a reason given for this question. Select from the"
                " list."
            )
            raise ClassError("pick", words)
        connection.execute(votes.update().where(reasons).values(picked=None))
        for place, number in enumerate(questions, 1):
            connection.execute(votes.update().where(votes.c.id == number).values(picked=place))

    @transaction(by_token, writes=True)
    def end(self, connection: Connection, room: Room) -> None:
        """Delete a class with everything that is stored about it; call with (token)."""
        connection.execute(rooms.delete().where(rooms.c.id == room.id))


def _sweep(connection: Connection) -> int:
    """Delete classes that have expired; return how many."""
    return connection.execute(rooms.delete().where(~ALIVE)).rowcount


def _start(connection: Connection, token: str, questions: list[str]) -> str:
    """Create a class and return its code, or the code of the class with this token's hash.

    The latter stays as it is.
    """
    connection.execute(select(versions.c.version).with_for_update())  # one begins at a time
    begun = connection.scalar(select(rooms.c.code).where(rooms.c.token == token))
    if begun is not None:
        return str(begun)
    _sweep(connection)
    codes = set(connection.scalars(select(rooms.c.code)))
    if len(codes) >= CLASSES:
        words = f"This server is at its limit of {CLASSES} classes. Try again later."
        raise ClassError("class", words)
    code = new_code()
    while code in codes:
        code = new_code()
    values = {"code": code, "token": token, "began": Clock(), "questions": json.dumps(questions)}
    connection.execute(rooms.insert().values(values))
    return code


def _find_seat(connection: Connection, room: Room, key: str) -> int:
    """Return the id of a seat's row by the hash of its key; ClassError if there is none."""
    seat: int | None = connection.scalar(
        select(seats.c.id).where(seats.c.room == room.id, seats.c.key == key)
    )
    if seat is None:
        raise ClassError("key", f"You have not joined class {room.code} yet.")
    return seat


def _find_poll(connection: Connection, room: Room) -> Poll | None:
    """Return the current poll, closed if its time is over (not stored so); None before any."""
    row = connection.execute(
        select(polls, Clock().label("now")).where(polls.c.id == room.current)
    ).one_or_none()
    if row is None:
        return None
    left = None if row.closes is None or row.phase != OPEN else row.closes - row.now
    is_over = left is not None and left <= 0
    phase = CLOSED if is_over else row.phase
    left = None if is_over else left
    time = None if left is None else row.closes - row.opened
    return Poll(
        row.id, row.question, row.round, phase, row.shown, row.opened, left, time, is_over, row.now
    )


def _require_poll(connection: Connection, room: Room, *refused: str) -> Poll:
    """Return the current poll; ClassError for none, or in a phase `refused` (OPEN or REVEALED)."""
    poll = _find_poll(connection, room)
    if poll is None:
        raise ClassError("phase", "No question has been asked yet. Open a question first.")
    question = shorten(poll.question)
    if poll.phase == OPEN and OPEN in refused:
        raise ClassError("phase", f"The question {question} is open. Close voting first.")
    if poll.phase == REVEALED and REVEALED in refused:
        raise ClassError(
            "phase", f"The result of {question} is already revealed. Open another question."
        )
    return poll


def _close(connection: Connection, poll: Poll) -> None:
    """Store that a poll is closed, if open: by hand now, or when its time was over."""
    when = func.coalesce(polls.c.closes, Clock()) if poll.is_over else Clock()
    is_open = (polls.c.id == poll.id) & (polls.c.phase == OPEN)
    connection.execute(polls.update().where(is_open).values(phase=CLOSED, closed=when))


def _update_poll(connection: Connection, poll: Poll, **values: object) -> None:
    """Store new values of columns of a poll."""
    connection.execute(polls.update().where(polls.c.id == poll.id).values(**values))


def _count_seats(connection: Connection, room: Room) -> int:
    """Return the number of seats taken in a class."""
    return connection.scalar(select(func.count()).where(seats.c.room == room.id)) or 0


def _read_view(connection: Connection, room: Room, poll: Poll | None) -> Watched:
    """Return the public view of a class, always with the distribution."""
    seated = _count_seats(connection, room)
    if poll is None:
        return Watched(room.code, WAITING, "", 0, None, None, seated, 0, {}, ())
    # A round that has begun since the poll was read is left out.
    columns = votes.c.round, votes.c.answer, func.count()
    of_poll = and_(votes.c.poll == poll.id, votes.c.round <= poll.round)
    query = (
        select(*columns)
        .where(of_poll)
        .group_by(votes.c.round, votes.c.answer)
        .order_by(votes.c.answer)
    )
    counts: dict[int, dict[str, int]] = {round: {} for round in range(1, poll.round + 1)}
    for round, answer, number in connection.execute(query):
        counts[round][answer] = number
    which = and_(votes.c.poll == poll.id, votes.c.picked.is_not(None))
    picked = connection.scalars(select(votes.c.because).where(which).order_by(votes.c.picked))
    return Watched(
        code=room.code,
        phase=poll.phase,
        question=poll.question,
        round=poll.round,
        left=poll.left,
        time=poll.time,
        seats=seated,
        votes=sum(counts[poll.round].values()),
        distribution=counts,
        picked=() if poll.phase == OPEN else tuple(picked),
    )
