"""How one comes to a class: by its code, or by its teacher's token; everybody else is turned away in words."""

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Connection, exc, select

from core.settings.wording import shorten
from core.study.database.connection import Busy, Connected, patiently
from core.study.database.schema import clock
from core.teaching.classroom import tables
from core.teaching.classroom.given import code_of, hashed
from core.teaching.classroom.limits import HOURS, ClassError
from core.teaching.classroom.tables import CLOSED, OPEN, polls, rooms

T = TypeVar("T")
Room = sqlalchemy.Row[*tuple[Any, ...]]  # a line of class_rooms
WITHIN = 8.0  # seconds for which a busy database is tried again: whoever waits longer would press once more anyway
living = rooms.c.began > clock() - HOURS * 3600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The current poll of a class at one moment. left: seconds until it closes, None where it is closed or has no end."""

    id: int
    question: str
    round: int
    phase: str  # CLOSED where its time is over, though nobody has closed it
    shown: bool
    left: float | None
    over: bool  # its time is, and that is not stored


class Doors(Connected):
    """The database of classes. Its tables are made with the first class, and until then there is none to be found.

    On SQLite the writers of a process queue up here: it has one at a time anyway, and its own way of waiting is to look
    again after ever longer pauses, which leaves some behind for long.
    """

    def __init__(self, given: str | None = None) -> None:
        super().__init__(given)
        self._made = False
        self._file = (self.url.database or "") if self.url.get_backend_name() == "sqlite" else None
        self._turn: contextlib.AbstractContextManager[Any] = (
            contextlib.nullcontext() if self._file is None else threading.Lock()
        )

    def by_code(self, code: str, ask: Callable[[Connection, Room], T], writes: bool = False) -> T:
        """What ask(connection, the class) gives, in one transaction. Raises ClassError where no class has the code."""
        words = f"There is no class {shorten(code, 20)}: a code has five letters, and a class ends after {HOURS} hours."
        found = select(rooms).where(rooms.c.code == code_of(code), living)
        return self._inside(found, ClassError("code", words), ask, writes)

    def by_token(self, token: str, ask: Callable[[Connection, Room], T], writes: bool = False) -> T:
        """The same for a class's teacher."""
        words = f"No class has this teacher's key: it may have ended, as every class does after {HOURS} hours."
        found = select(rooms).where(rooms.c.token == hashed(token), living)
        return self._inside(found, ClassError("token", words), ask, writes)

    def _inside(
        self, found: sqlalchemy.Select[Any], unknown: ClassError, ask: Callable[[Connection, Room], T], writes: bool
    ) -> T:
        def enter(connection: Connection) -> T:
            # Whoever changes a class has it alone from here on, and reads the rest only then: all of it as it is now.
            room = connection.execute(found.with_for_update() if writes else found).one_or_none()
            if room is None:
                raise unknown
            return ask(connection, room)

        if not self.there():
            raise unknown
        return self.write(enter) if writes else self.read(enter)

    def there(self) -> bool:
        """Whether the tables are. Looking does not make them, nor a file."""
        if not self._made and (self._file is None or os.path.exists(self._file)):
            self._made = self.read(tables.there)
        return self._made

    def make(self) -> None:
        if not self.there():
            self.write(tables.make)
            self._made = True

    def read(self, ask: Callable[[Connection], T]) -> T:
        def once() -> T:
            with self.reading() as connection:
                return ask(connection)

        return patiently(lambda: self._connected(once), WITHIN)

    def write(self, ask: Callable[[Connection], T]) -> T:
        """What ask(connection) gives, once it is stored. It may be called again where it is not known whether it was."""

        def once() -> T:
            with self._turn, self.writing() as connection:
                return ask(connection)

        return patiently(lambda: self._connected(once), WITHIN)

    def _connected(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except exc.TimeoutError as error:  # all connections of this process were in use for half a minute
            words = "is asked for more than it can do now."
            raise Busy(f"The store {self.name} {words}", f"The store {words}") from error


def asked(connection: Connection, room: Room) -> Asked | None:
    """The current poll of a class, by the database's clock, or None where nothing has been asked."""
    if room.current is None:
        return None
    line = connection.execute(select(polls, clock().label("now")).where(polls.c.id == room.current)).one_or_none()
    if line is None:  # the class was ended a moment ago
        return None
    left = None if line.closes is None or line.phase != OPEN else line.closes - line.now
    over = left is not None and left <= 0
    phase = CLOSED if over else line.phase
    return Asked(line.id, line.question, line.round, phase, line.shown, None if over else left, over)


def grow(connection: Connection, room: Room, **values: Any) -> None:
    """Note that there is something new to be seen of a class."""
    connection.execute(rooms.update().where(rooms.c.id == room.id).values(stamp=rooms.c.stamp + 1, **values))


def stamp(room: Room, poll: Asked | None) -> int:
    """Grows when a poll's time is over, too, though nothing is written then."""
    return 2 * int(room.stamp) + (poll is not None and poll.over)
