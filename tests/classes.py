"""Classes for tests: with some who have joined, and a clock that goes on when it is told to."""

from dataclasses import dataclass, field

import pytest
from sqlalchemy import select

from core.teaching.classroom import CLOSED, OPEN, WAITING, ClassError, Classroom
from core.teaching.classroom.tables import polls, rooms, seats, votes

DAY = 24 * 3600
TIMES = {rooms: ["began"], seats: ["joined", "since"], polls: ["opened", "closes", "closed"], votes: ["at"]}


def refused(field: str, words: str):
    """That what follows is not allowed, said of this and in these words."""
    return pytest.raises(ClassError, match=f"(?i){words}", check=lambda error: error.field == field)


def later(classroom: Classroom, seconds: float) -> None:
    """As if so much time had passed: all that has happened was so much earlier."""
    with classroom._doors.writing() as connection:
        for table, names in TIMES.items():
            connection.execute(table.update().values({name: table.c[name] - seconds for name in names}))


def stored(classroom: Classroom) -> list[tuple]:
    """(code, question, round, seat, answer) of every vote there is, whoever's."""
    columns = rooms.c.code, polls.c.question, votes.c.round, seats.c.number, votes.c.answer
    query = select(*columns).select_from(votes.join(polls).join(rooms).join(seats, votes.c.seat == seats.c.id))
    with classroom._doors.reading() as connection:
        return [tuple(line) for line in connection.execute(query)]


@dataclass
class Lesson:
    """A class with its store; keys: of its seats."""

    store: Classroom
    code: str
    token: str
    keys: list[str]

    def vote(
        self, seat: int, answer: str = "yes", question: str = "q", round: int = 1, sure: int = 1, because: str = ""
    ):
        return self.store.vote(self.code, self.keys[seat], question, round, answer, sure, because)

    @property
    def phase(self) -> str:
        return self.store.watch(self.code).phase


def lesson(store: Classroom, seats: int = 3, asked: str = "") -> Lesson:
    """A new class, which is asked this question."""
    started = store.start()
    if asked:
        store.open(started.token, asked)
    return Lesson(store, started.code, started.token, [store.join(started.code, f"s{n}") for n in range(seats)])


@dataclass
class Model:
    """A class as it ought to be; times in seconds since the first step."""

    code: str
    token: str
    began: float
    keys: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    phase: str = WAITING
    round: int = 0
    closes: float | None = None
    shown: bool = False
    votes: dict[tuple, str] = field(default_factory=dict)  # (question, round, seat) -> answer

    def at(self, now: float) -> str:
        over = self.phase == OPEN and self.closes is not None and now >= self.closes
        return CLOSED if over else self.phase

    def spread(self) -> dict:
        found = {number: {} for number in range(1, self.round + 1)}
        for (question, number, _), answer in self.votes.items():
            if question == self.asked[-1]:
                found[number][answer] = found[number].get(answer, 0) + 1
        return found

    def takes(self, now: float, place: tuple, answer: str) -> bool:
        if place in self.votes:
            return self.votes[place] == answer
        return self.at(now) == OPEN and place[:2] == (self.asked[-1], self.round)
