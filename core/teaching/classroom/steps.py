"""What a teacher does: a question is opened, closed, discussed, asked again, revealed. Every step may be taken twice.

open → closed → discussion → open, round 2 → closed → revealed; discussion and round 2 may be left out.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from core.settings.wording import shorten
from core.study.database.schema import clock
from core.teaching.classroom.doors import Asked, Room, asked, grow
from core.teaching.classroom.limits import PICKED, POLLS, ROUNDS, ClassError
from core.teaching.classroom.tables import CLOSED, DISCUSSION, OPEN, REVEALED, polls, votes


def opened(connection: Connection, room: Room, question: str, seconds: float | None) -> None:
    """Ask it, and close what is asked before. One that is open in its first round has its time anew."""
    now, poll = _now(connection), asked(connection, room)
    if poll and (poll.question, poll.round, poll.phase) == (question, 1, OPEN):
        _change(connection, room, poll, closes=_end(now, seconds))
        return
    there = list(connection.scalars(select(polls.c.question).where(polls.c.room == room.id)))
    if question in there:
        words = f"The question {shorten(question)} was asked in this class before; each is asked once."
        raise ClassError("question", words)
    if len(there) >= POLLS:
        raise ClassError(
            "class", f"This class has asked {POLLS} questions, as many as a class may; start another class."
        )
    if poll:
        _shut(connection, poll)
    values = {"room": room.id, "question": question, "opened": now, "closes": _end(now, seconds)}
    made = connection.execute(polls.insert().values(values)).inserted_primary_key
    assert made is not None, "one line was inserted"
    grow(connection, room, current=made[0])


def closed(connection: Connection, room: Room) -> None:
    """Take no more votes. Of one that is closed nothing changes."""
    poll = _current(connection, room)
    if _shut(connection, poll):
        grow(connection, room)


def discussed(connection: Connection, room: Room) -> None:
    """After the first round."""
    poll = _still(connection, room)
    if poll.round == ROUNDS:
        words = "The discussion is over once there was a second round; reveal the answer, or open another question."
        raise ClassError("phase", words)
    _shut(connection, poll)
    _change(connection, room, poll, phase=DISCUSSION)


def again(connection: Connection, room: Room, seconds: float | None) -> None:
    """Open the second round; one that is open has its time anew. What was shown of the first is hidden meanwhile."""
    poll, now = _current(connection, room), _now(connection)
    if (poll.round, poll.phase) == (ROUNDS, OPEN):
        _change(connection, room, poll, closes=_end(now, seconds))
        return
    poll = _still(connection, room)
    if poll.round == ROUNDS:
        raise ClassError("phase", f"A question has {ROUNDS} rounds, and both were; open another question.")
    begin = {"phase": OPEN, "shown": False, "opened": now, "closes": _end(now, seconds), "closed": None}
    _change(connection, room, poll, round=poll.round + 1, **begin)


def shown(connection: Connection, room: Room, on: bool) -> None:
    """Whether everybody sees how the answers are distributed; once the answer is revealed, they do."""
    poll = _not_open(connection, room)
    _change(connection, room, poll, shown=bool(on))


def revealed(connection: Connection, room: Room) -> None:
    poll = _not_open(connection, room)
    _shut(connection, poll)
    _change(connection, room, poll, phase=REVEALED)


def picked(connection: Connection, room: Room, ids: Iterable[int]) -> None:
    """Show these reasons of the current question, in this order, and no others."""
    wanted = list(dict.fromkeys(ids))
    if len(wanted) > PICKED:
        raise ClassError("pick", f"{len(wanted)} reasons are picked; at most {PICKED} are shown at once.")
    poll = _not_open(connection, room)
    reasons = (votes.c.poll == poll.id) & (votes.c.because != "")
    strange = set(wanted) - set(connection.scalars(select(votes.c.id).where(reasons)))
    if strange:
        words = f"{shorten(strange.pop())} is no reason given for this question; pick among those that are listed."
        raise ClassError("pick", words)
    connection.execute(votes.update().where(reasons, votes.c.picked.is_not(None)).values(picked=None))
    for place, number in enumerate(wanted, 1):
        connection.execute(votes.update().where(votes.c.id == number).values(picked=place))
    grow(connection, room)


def _now(connection: Connection) -> float:
    now: float = connection.execute(select(clock())).scalar_one()
    return now


def _end(now: float, seconds: float | None) -> float | None:
    return None if seconds is None else now + seconds


def _current(connection: Connection, room: Room) -> Asked:
    poll = asked(connection, room)
    if poll is None:
        raise ClassError("phase", "Nothing has been asked in this class yet; open a question first.")
    return poll


def _not_open(connection: Connection, room: Room) -> Asked:
    poll = _current(connection, room)
    if poll.phase == OPEN:
        raise ClassError("phase", f"The question {shorten(poll.question)} is open; close it first.")
    return poll


def _still(connection: Connection, room: Room) -> Asked:
    """Closed, and its answer not known."""
    poll = _not_open(connection, room)
    if poll.phase == REVEALED:
        raise ClassError("phase", f"The answer to {shorten(poll.question)} is revealed; open another question.")
    return poll


def _shut(connection: Connection, poll: Asked) -> bool:
    """Note that it is closed, and when: by hand now, or when its time was over -> whether that was still to be noted."""
    when = func.coalesce(polls.c.closes, clock()) if poll.over else clock()
    open_still = (polls.c.id == poll.id) & (polls.c.phase == OPEN)
    return connection.execute(polls.update().where(open_still).values(phase=CLOSED, closed=when)).rowcount > 0


def _change(connection: Connection, room: Room, poll: Asked, **values: object) -> None:
    connection.execute(polls.update().where(polls.c.id == poll.id).values(**values))
    grow(connection, room)
