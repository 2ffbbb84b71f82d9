"""What is to be seen of a class, each in a few short queries."""

import json

from sqlalchemy import Connection, and_, func, select

from core.teaching.classroom.doors import Asked, Room, asked, stamp
from core.teaching.classroom.seen import Reason, TeacherView, Vote, Watched
from core.teaching.classroom.tables import OPEN, REVEALED, WAITING, polls, seats, votes
from core.teaching.classroom.votes import seat, unknown


def watched(connection: Connection, room: Room) -> Watched:
    """What everybody may see."""
    poll = asked(connection, room)
    if poll is None:
        return Watched(room.code, stamp(room, None), WAITING, "", 0, None, _seats(connection, room), 0, None, ())
    counts = _distribution(connection, poll)
    is_open = poll.phase == OPEN
    open_to_all = not is_open and (poll.shown or poll.phase == REVEALED)
    which = and_(votes.c.poll == poll.id, votes.c.picked.is_not(None))
    lines = select(votes.c.because).where(which).order_by(votes.c.picked)
    return Watched(
        room.code,
        stamp(room, poll),
        poll.phase,
        poll.question,
        poll.round,
        poll.left,
        _seats(connection, room),
        sum(counts[poll.round].values()),
        counts if open_to_all else None,
        () if is_open else tuple(connection.scalars(lines)),
    )


def of_teacher(connection: Connection, room: Room) -> TeacherView:
    """What its teacher may see."""
    poll = asked(connection, room)
    questions = select(polls.c.question).where(polls.c.room == room.id).order_by(polls.c.id)
    counts = {} if poll is None else _distribution(connection, poll)
    return TeacherView(
        code=room.code,
        began=room.began,
        planned=tuple(json.loads(room.questions)),
        asked=tuple(connection.scalars(questions)),
        stamp=stamp(room, poll),
        phase=poll.phase if poll else WAITING,
        question=poll.question if poll else "",
        round=poll.round if poll else 0,
        left=poll.left if poll else None,
        shown=poll is not None and poll.shown,
        seats=_seats(connection, room),
        votes=sum(counts[poll.round].values()) if poll else 0,
        waiting=_waiting(connection, room, poll) if poll else (),
        distribution=counts,
        reasons=_reasons(connection, poll) if poll else (),
    )


def mine(connection: Connection, room: Room, key: str) -> dict[tuple[str, int], Vote]:
    """(question, round) -> what a seat has answered. key: the hash of it."""
    number = connection.scalar(select(seats.c.id).where(seat(room, key)))
    if number is None:
        raise unknown(room)
    columns = polls.c.question, votes.c.round, votes.c.answer, votes.c.sure, votes.c.because, votes.c.at
    own = select(*columns).join_from(votes, polls).where(votes.c.seat == number).order_by(votes.c.id)
    return {(question, of): Vote(*rest) for question, of, *rest in connection.execute(own)}


def _seats(connection: Connection, room: Room) -> int:
    return connection.scalar(select(func.count()).where(seats.c.room == room.id)) or 0


def _distribution(connection: Connection, poll: Asked) -> dict[int, dict[str, int]]:
    """Of every round up to the current one, by the answers in their order: a later one, begun meanwhile, is not looked at."""
    columns = votes.c.round, votes.c.answer, func.count()
    of = and_(votes.c.poll == poll.id, votes.c.round <= poll.round)
    found: dict[int, dict[str, int]] = {number: {} for number in range(1, poll.round + 1)}
    for number, answer, many in connection.execute(select(*columns).where(of).group_by(votes.c.round, votes.c.answer)):
        found[number][answer] = many
    return {number: dict(sorted(counts.items())) for number, counts in found.items()}


def _waiting(connection: Connection, room: Room, poll: Asked) -> tuple[tuple[int, str], ...]:
    voted = select(votes.c.seat).where(votes.c.poll == poll.id, votes.c.round == poll.round)
    query = select(seats.c.number, seats.c.nickname).where(seats.c.room == room.id, seats.c.id.not_in(voted))
    return tuple((number, nickname) for number, nickname in connection.execute(query.order_by(seats.c.number)))


def _reasons(connection: Connection, poll: Asked) -> tuple[Reason, ...]:
    columns = votes.c.id, votes.c.round, votes.c.answer, votes.c.because, votes.c.picked.is_not(None)
    given = select(*columns).where(votes.c.poll == poll.id, votes.c.because != "").order_by(votes.c.id)
    return tuple(Reason(*line) for line in connection.execute(given))
