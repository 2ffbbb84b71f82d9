"""Test classes with taken seats and an adjustable clock."""

from dataclasses import dataclass

import pytest
from sqlalchemy import select

from core.teaching.classroom import ClassError, Classroom, polls, rooms, seats, votes

TIMES = {rooms: ["began"], seats: ["joined"], polls: ["opened", "closes", "closed"], votes: ["at"]}


def refused(field: str, words: str):
    """Expect a ClassError of this field with these words."""
    return pytest.raises(ClassError, match=f"(?i){words}", check=lambda error: error.field == field)


def later(classroom: Classroom, seconds: float) -> None:
    """Shift all stored times this many seconds into the past."""
    with classroom.database.writing() as connection:
        for table, names in TIMES.items():
            connection.execute(
                table.update().values({name: table.c[name] - seconds for name in names})
            )


def stored(classroom: Classroom) -> list[tuple]:
    """Return (code, question, round, seat, answer) of every stored vote."""
    columns = rooms.c.code, polls.c.question, votes.c.round, seats.c.number, votes.c.answer
    query = select(*columns).select_from(
        votes.join(polls).join(rooms).join(seats, votes.c.seat == seats.c.id)
    )
    with classroom.database.reading() as connection:
        return [tuple(line) for line in connection.execute(query)]


@dataclass
class Lesson:
    """A class with its store; keys: those of its seats."""

    store: Classroom
    code: str
    token: str
    keys: list[str]

    def vote(
        self,
        seat: int,
        answer: str = "yes",
        question: str = "q",
        round: int = 1,
        sure: int = 1,
        because: str = "",
    ):
        return self.store.vote(self.code, self.keys[seat], question, round, answer, sure, because)

    @property
    def phase(self) -> str:
        return self.store.watch(self.code).phase


def lesson(store: Classroom, seats: int = 3, question: str = "") -> Lesson:
    """Start a class, with a question if one is given."""
    started = store.start()
    if question:
        store.open(started.token, question)
    return Lesson(
        store,
        started.code,
        started.token,
        [store.join(started.code, f"s{n}") for n in range(seats)],
    )
