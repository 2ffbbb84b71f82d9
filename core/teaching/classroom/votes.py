"""What students do: they take a seat, and vote. A vote is there once, however often it is sent."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, Update, and_, exists, func, select

from core.settings.wording import shorten
from core.study.database.schema import clock
from core.teaching.classroom.doors import Asked, Room, asked, grow
from core.teaching.classroom.limits import EMPTY, JOINS, MINUTE, SEATS, TRIES, ClassError
from core.teaching.classroom.seen import Accepted
from core.teaching.classroom.tables import OPEN, polls, seats, votes


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a seat votes, checked and cleaned; question and round: what the student saw."""

    question: str
    round: int
    answer: str
    sure: int
    because: str


def seat(room: Room, key: str) -> ColumnElement[bool]:
    """Which it is. key: the hash of it."""
    return and_(seats.c.room == room.id, seats.c.key == key)


def unknown(room: Room) -> ClassError:
    return ClassError("key", f"This is no seat of class {room.code}; join the class to have one.")


def rejoined(connection: Connection, room: Room, key: str, nickname: str) -> None:
    """The same seat, with another nickname where one is given."""
    there = connection.execute(select(seats.c.id, seats.c.nickname).where(seat(room, key))).one_or_none()
    if there is None:
        raise unknown(room)
    if nickname and nickname != there.nickname:
        connection.execute(seats.update().where(seats.c.id == there.id).values(nickname=nickname))
        grow(connection, room)


def joined(connection: Connection, room: Room, key: str, nickname: str) -> None:
    """A new seat. May be repeated with the same key when it is not known whether it has succeeded."""
    if connection.scalar(select(seats.c.id).where(seat(room, key))) is not None:
        return
    late = func.count().filter(seats.c.joined > clock() - MINUTE)
    many, lately, now = connection.execute(select(func.count(), late, clock()).where(seats.c.room == room.id)).one()
    if lately >= JOINS:
        words = f"{JOINS} have joined class {room.code} within a minute, as many as may; try again in a minute."
        raise ClassError("class", words)
    values = {"key": key, "nickname": nickname, "joined": now, "since": now, "tries": 0}
    if many < SEATS:
        connection.execute(seats.insert().values(room=room.id, number=many + 1, **values))
    elif not connection.execute(_idle(room).values(values)).rowcount:
        raise ClassError("class", f"Class {room.code} is full: all of its {SEATS} seats are taken.")
    grow(connection, room)


def _idle(room: Room) -> Update:
    """The seat of which nothing has been heard for longest: there for more than EMPTY, a question was closed meanwhile, and it has
    never voted. Of a full class it is given to another, or one program that takes all seats would lock the class for its day."""
    one = seats.alias()
    voted = exists().where(votes.c.seat == one.c.id)
    missed = exists().where(polls.c.room == one.c.room, polls.c.opened > one.c.joined, polls.c.phase != OPEN)
    idle = select(one.c.id).where(one.c.room == room.id, one.c.joined < clock() - EMPTY, ~voted, missed)
    return seats.update().where(seats.c.id == idle.order_by(one.c.joined, one.c.id).limit(1).scalar_subquery())


def cast(connection: Connection, room: Room, key: str, ballot: Ballot) -> Accepted | ClassError:
    """Store a vote, or say why not: what was tried is counted either way, and so the transaction is to be kept.

    May be repeated with the same ballot when it is not known whether it has succeeded.
    """
    line = connection.execute(_found(room, key, ballot)).one_or_none()
    if line is None:
        return unknown(room)
    fresh = line.now - line.since >= MINUTE
    if line.tries >= TRIES and not fresh:
        return ClassError("tries", f"You have sent {TRIES} votes within a minute, as many as you may; wait a minute.")
    counted = {"tries": 1, "since": line.now} if fresh else {"tries": line.tries + 1}
    connection.execute(seats.update().where(seats.c.id == line.seat).values(counted))
    if line.at is not None:
        if (line.answer, line.sure, line.because) == (ballot.answer, ballot.sure, ballot.because):
            return Accepted(ballot.question, ballot.round, line.at)
        return ClassError("vote", "Your vote is already in. It cannot be changed.")
    refused = _refused(asked(connection, room), ballot)
    if refused:
        return refused
    chosen = {"answer": ballot.answer, "sure": ballot.sure, "because": ballot.because}
    when = {"at": line.now, "after": line.now - line.opened}
    connection.execute(votes.insert().values(poll=line.poll, round=ballot.round, seat=line.seat, **chosen, **when))
    grow(connection, room)
    return Accepted(ballot.question, ballot.round, line.now)


def _found(room: Room, key: str, ballot: Ballot) -> Select[tuple[object, ...]]:
    """The seat, what it votes on, and the vote that it has there, in one line."""
    on = and_(polls.c.room == seats.c.room, polls.c.question == ballot.question)
    own = and_(votes.c.poll == polls.c.id, votes.c.seat == seats.c.id, votes.c.round == ballot.round)
    columns = (
        seats.c.id.label("seat"), seats.c.since, seats.c.tries, clock().label("now"),
        polls.c.id.label("poll"), polls.c.opened, votes.c.answer, votes.c.sure, votes.c.because, votes.c.at,
    )  # fmt: skip
    return select(*columns).select_from(seats.outerjoin(polls, on).outerjoin(votes, own)).where(seat(room, key))


def _refused(poll: Asked | None, ballot: Ballot) -> ClassError | None:
    """Why a new vote is not taken."""
    if poll is None:
        return ClassError("question", "Nothing has been asked in this class yet; wait until a question is open.")
    same = (poll.question, poll.round) == (ballot.question, ballot.round)
    if poll.phase == OPEN:
        words = f"By now {shorten(poll.question)} is open, in round {poll.round}; look at it, and vote there."
        return None if same else ClassError("question", words)
    return ClassError("late", "Your vote is late and does not count: voting on this question is closed.")
