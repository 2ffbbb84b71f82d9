"""A database that holds a store: opened, made where there is none, and read and written in transactions."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine, exc, select

from core.study.database.connection import Busy, NoStore, StoreError, address, connect, in_words, shown, writable
from core.study.database.schema import VERSION, bring_up_to_date, check, clock, version

T = TypeVar("T")
BEGIN_WITHIN = 15.0  # seconds that a busy store is waited for when it is opened


class Connected:
    """A database, read and written in transactions; nothing is asked of it, or made there, before the first of them.

    Raises StoreError, in words, for an address that is none, and in every transaction for what goes wrong; Busy where that
    may pass.
    """

    def __init__(self, given: str | None = None) -> None:
        self.url = address(given)
        self.name = shown(self.url)
        self._use(connect(self.url))

    def _use(self, engine: Engine) -> None:
        self.engine, self._writer = engine, engine.execution_options(writes=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the store and changes nothing."""
        with in_words(self.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: all of it happens, or nothing."""
        with in_words(self.url), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        self.engine.dispose()

    def now(self) -> float:
        """What the database's clock shows: every time in the store is by it, wherever the machine is that wrote it."""
        with self.reading() as connection:
            seconds: float = connection.execute(select(clock())).scalar_one()
            return seconds


class Database(Connected):
    """One that holds a store of studies.

    Raises StoreError, in words, for a database that cannot be used; Busy where that may pass.

    seconds: for how long one that is busy, or does not answer, is tried again.
    """

    def __init__(self, given: str | None = None, create: bool = True, seconds: float | None = None) -> None:
        super().__init__(given)
        if not create and self.url.get_backend_name() == "sqlite" and not os.path.exists(self.url.database or ""):
            raise NoStore(*_nothing("is no store", self.name, "study that is run makes it"))
        self.writable = True
        patiently(lambda: self._begin(create), seconds)

    def _begin(self, create: bool) -> None:
        """Open it; a file that cannot be written, or a database in which that is not allowed, to be looked at only."""
        try:
            self._open(create)
            with in_words(self.url):
                self.writable = writable(self.engine)
        except StoreError as error:
            path = self.url.database or ""
            if (
                self.url.get_backend_name() != "sqlite"
                or not os.path.isfile(path)
                or os.access(path, os.W_OK)
                and os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)
            ):
                raise
            self.writable = False
            for how in ("mode=ro", "immutable=1"):
                self._use(connect(self.url, how))
                try:
                    self._open(False)
                    return
                except StoreError:
                    if how != "mode=ro":
                        raise error from None

    def _open(self, create: bool) -> None:
        with self.reading() as connection:
            present = version(connection)
        check(present)
        if present is None and not create:
            raise NoStore(*_nothing("are no studies", self.name, "one that is run makes the tables"))
        if present != VERSION:
            with self.writing() as connection:
                bring_up_to_date(connection)


def patiently(call: Callable[[], T], seconds: float | None = None) -> T:
    """The result of call(), tried again while the store is busy, for so long (BEGIN_WITHIN)."""
    end = time.monotonic() + (BEGIN_WITHIN if seconds is None else seconds)
    while True:
        try:
            return call()
        except Busy:
            if time.monotonic() > end:
                raise
        except StoreError as error:  # two that begin at the same time: the second finds what the first has made
            if not isinstance(error.__cause__, exc.IntegrityError | exc.ProgrammingError) or time.monotonic() > end:
                raise
        time.sleep(0.2)


def _nothing(what: str, where: str, then: str) -> tuple[str, str]:
    """A sentence for who runs the server, and one for its visitors."""
    return f"There {what} at {where}; the first {then}.", f"There {what} yet; the first {then}."
