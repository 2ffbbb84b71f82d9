"""The store of classes: one object for a process, whose methods are called from as many threads as there are visitors."""

import json
import secrets
from collections.abc import Callable, Iterable

import pandas as pd
from sqlalchemy import ColumnElement, Connection, func, select

from core.study.database.schema import clock
from core.teaching.classroom import answers, given, steps, tables, votes, watching
from core.teaching.classroom.doors import Doors, Room, living
from core.teaching.classroom.limits import ALIVE, EMPTY, QUIET, ClassError
from core.teaching.classroom.seen import Accepted, Started, TeacherView, Vote, Watched
from core.teaching.classroom.tables import rooms


class Classroom:
    """Classes, in the database of studies or in one of their own; the tables are made when the first class is started.

    given: an address or the path of a file; else ABLATION_DATABASE_URL, else studies.sqlite in this folder.

    Whatever a method is asked for is done when it returns, also if the process is killed then. Every method raises
    ClassError, in words, for what a class does not allow or have, and StoreError for a database that cannot be used; Busy
    where that may pass, after it has been tried for doors.WITHIN seconds. Who guesses codes or tokens is not held up here.
    """

    def __init__(self, given: str | None = None) -> None:
        self._doors = Doors(given)

    # Classes

    def start(self, questions: Iterable[str] = ()) -> Started:
        """A new class. questions: the names of those that are planned, for its teacher to find again; others may be asked."""
        names, token = given.planned(questions), secrets.token_urlsafe(24)
        self._doors.make()
        return Started(self._doors.write(lambda connection: _begun(connection, given.hashed(token), names)), token)

    def end(self, token: str) -> None:
        """Delete a class and everything that is known of it."""
        self._taught(token, lambda connection, room: connection.execute(rooms.delete().where(rooms.c.id == room.id)))

    def sweep(self) -> int:
        """Delete the classes whose time is over, which nobody finds any more -> how many. To be called now and then."""
        return self._doors.write(_swept) if self._doors.there() else 0

    def shut(self) -> None:
        """Let go of the database's connections."""
        self._doors.close()

    # What is to be seen

    def watch(self, code: str) -> Watched:
        """What everybody may see; the same for all who watch, and so worth keeping for a second."""
        return self._doors.by_code(code, watching.watched)

    def of_teacher(self, token: str) -> TeacherView:
        return self._doors.by_token(token, watching.of_teacher)

    def mine(self, code: str, key: str) -> dict[tuple[str, int], Vote]:
        """(question, round) -> what this seat has answered, and no other."""
        return self._doors.by_code(code, lambda connection, room: watching.mine(connection, room, given.hashed(key)))

    def answers(self, token: str) -> pd.DataFrame:
        """One row per vote: class, question, round, seat (1, 2, …), nickname, answer, sure, because, seconds after opening."""
        return self._doors.by_token(token, answers.answers)

    def crosstab(self, token: str, question: str) -> pd.DataFrame:
        """Answers of round 1 (index) × answers of round 2 (columns), in counts of seats that voted in both."""
        return self._doors.by_token(token, lambda connection, room: answers.crosstab(connection, room, question))

    # What students do

    def join(self, code: str, nickname: str = "", key: str = "") -> str:
        """Take a seat -> its key, to be kept by whoever sits there. With a key: the same seat again, and a nickname that is
        given takes the place of the one before. A key of another class is refused (ClassError with field "key")."""
        name, fresh = given.text("nickname", nickname), key or secrets.token_urlsafe(16)
        sit = votes.rejoined if key else votes.joined
        hashed = given.hashed(fresh)
        self._doors.by_code(code, lambda connection, room: sit(connection, room, hashed, name), writes=True)
        return fresh

    def vote(
        self, code: str, key: str, question: str, round: int, answer: str, sure: int = 0, because: str = ""
    ) -> Accepted:
        """A vote on the question and round that the student saw. It returns once the vote is stored for good.

        The same once more is accepted once more, whatever is asked by then; another is refused ("vote"), as is one
        that is late by the database's clock ("late"), or on what is not asked now ("question"). sure: 0 to 3.
        """
        ballot = votes.Ballot(
            given.text("question", question),
            given.round_of(round),
            given.text("answer", answer, needed=True),
            given.sureness(sure),
            given.text("because", because),
        )
        hashed = given.hashed(key)
        found = self._doors.by_code(code, lambda c, room: votes.cast(c, room, hashed, ballot), writes=True)
        if isinstance(found, ClassError):
            raise found
        return found

    # What teachers do

    def open(self, token: str, question: str, seconds: float | None = None) -> None:
        """Ask a question, and close the one before. seconds: until it closes by itself, 1 to 3,600; None: by hand alone.

        A question is asked once in a class. Opened once more in its first round, before it closes, it has its time anew.
        """
        name, time = given.text("question", question, needed=True), given.time_for(seconds)
        self._taught(token, lambda connection, room: steps.opened(connection, room, name, time))

    def close(self, token: str) -> None:
        """Take no more votes in this round."""
        self._taught(token, steps.closed)

    def discuss(self, token: str) -> None:
        """After the first round."""
        self._taught(token, steps.discussed)

    def again(self, token: str, seconds: float | None = None) -> None:
        """The second round. What was shown of the first is hidden until it is shown again."""
        time = given.time_for(seconds)
        self._taught(token, lambda connection, room: steps.again(connection, room, time))

    def show(self, token: str, on: bool = True) -> None:
        """Whether everybody sees the distribution, of a question that is not open; a revealed one they see anyway."""
        self._taught(token, lambda connection, room: steps.shown(connection, room, on))

    def reveal(self, token: str) -> None:
        """The end of a question: its answer may be told, and its distribution is seen by all."""
        self._taught(token, steps.revealed)

    def pick(self, token: str, ids: Iterable[int]) -> None:
        """Show these reasons (Reason.id) of a question that is not open, three at most, in this order, without names."""
        wanted = list(ids)
        self._taught(token, lambda connection, room: steps.picked(connection, room, wanted))

    def _taught(self, token: str, step: Callable[[Connection, Room], object]) -> None:
        self._doors.by_token(token, step, writes=True)


def _swept(connection: Connection) -> int:
    return connection.execute(rooms.delete().where(~living)).rowcount


def _given_way(connection: Connection) -> bool:
    """Whether a class could be deleted that nobody has joined for a while, or else one in which nothing has happened for longer:
    else one visitor could take them all for a day."""
    joined = select(tables.seats.c.id).where(tables.seats.c.room == rooms.c.id).exists()
    places = select(rooms.c.id).order_by(rooms.c.began).limit(1)
    empty = places.where(~joined, rooms.c.began < clock() - EMPTY)
    quiet = places.where(rooms.c.began < clock() - QUIET, *_nothing_since(clock() - QUIET))
    for which in (empty, quiet):
        oldest = connection.scalar(which)
        if oldest is not None:
            return connection.execute(rooms.delete().where(rooms.c.id == oldest)).rowcount == 1
    return False


def _nothing_since(time: ColumnElement[float]) -> list[ColumnElement[bool]]:
    """Of a class: that nobody has joined, asked, closed or voted since then."""
    seats, polls, votes = tables.seats.c, tables.polls.c, tables.votes.c
    happened = [
        select(seats.id).where(seats.room == rooms.c.id, seats.joined > time),
        select(polls.id).where(polls.room == rooms.c.id, (polls.opened > time) | (polls.closed > time)),
        select(votes.id).where(votes.poll == polls.id, polls.room == rooms.c.id, votes.at > time),
    ]
    return [~each.exists() for each in happened]


def _begun(connection: Connection, token: str, questions: list[str]) -> str:
    """A new class -> its code. May be repeated with the same token when it is not known whether it has succeeded."""
    connection.execute(select(tables.versions.c.version).with_for_update())  # one begins at a time
    there = connection.scalar(select(rooms.c.code).where(rooms.c.token == token))
    if there is not None:
        return str(there)
    _swept(connection)
    full = (connection.scalar(select(func.count()).select_from(rooms)) or 0) >= ALIVE
    if full and not _given_way(connection):
        words = f"There are {ALIVE} classes now, as many as this server may have at once; start yours later."
        raise ClassError("class", words)
    code = given.new_code()
    while connection.scalar(select(rooms.c.id).where(rooms.c.code == code)) is not None:
        code = given.new_code()
    values = {"code": code, "token": token, "began": clock(), "questions": json.dumps(questions)}
    connection.execute(rooms.insert().values(values))
    return code
