"""Connection to SQLite or PostgreSQL: transactions, and errors as sentences."""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    create_engine,
    event,
    exc,
    make_url,
    select,
)

from core.settings.environment import ServerError
from core.study.database.schema import Clock

T = TypeVar("T")

VARIABLE = "ABLATION_DATABASE_URL"
DEFAULT = "sqlite:///studies.sqlite"  # in the folder from which the command is given
# seconds to wait for another writer; less than core.workers.job.PATIENCE, which withdraws workers
PATIENCE = 2.0
BEGIN_WITHIN = 15.0  # seconds that a busy store is waited for when it is opened
ALLOWED = (
    "sqlite:///studies.sqlite (a file in this folder), sqlite:////data/studies.sqlite (a file"
    " anywhere) or postgresql://user:password@host/name"
)
# Errors of a PostgreSQL server at connecting that waiting does not mend. They come without a code.
# All others may pass: "the database system is shutting down", "in recovery mode", "not yet
# accepting connections", "too many clients already".
REFUSED = re.compile(
    r"authentication failed|no password supplied|does not exist|pg_hba\.conf|not"
    r" permitted|permission denied"
)
GONE = (
    "is gone: its file was deleted, moved or renamed while it was in use. Restore it, or restart to"
    " create a new one"
)


class StoreError(ServerError):
    """Database that cannot be used; the message says which and why, without passwords."""


class NoStoreError(StoreError):
    """Address at which there is no store."""


class BusyError(StoreError):
    """Temporary failure: another writer holds the store, or the server does not answer."""


class FullError(StoreError):
    """Disk without room for the store to grow."""


def address(chosen: str | None = None) -> URL:
    """Read a URL or SQLite path: `chosen`, ABLATION_DATABASE_URL or DEFAULT; StoreError if bad."""
    text = chosen or os.environ.get(VARIABLE) or DEFAULT
    source = "--database" if chosen else VARIABLE
    text = (
        text.replace("postgres://", "postgresql://", 1) if text.startswith("postgres://") else text
    )
    try:
        url = make_url(text if "://" in text else URL.create("sqlite", database=text))
        kind = url.get_backend_name()
        if url.drivername == "postgresql":
            # SQLAlchemy 2.0 takes that for psycopg2, 2.1 for psycopg.
            url = url.set(drivername="postgresql+psycopg")
    except (exc.ArgumentError, ValueError):
        kind = ""
    if kind not in ("sqlite", "postgresql"):  # the address is not shown: it may hold a password
        raise StoreError(f"{source} is not the address of a supported database; use {ALLOWED}.")
    return url


def printable_address(url: URL) -> str:
    """Return an address for printing: SQLite's path, or a URL with *** as password, no query."""
    if url.get_backend_name() == "sqlite":
        return str(Path(url.database).absolute()) if url.database else "memory"
    return url.set(drivername=url.get_backend_name(), query={}).render_as_string(hide_password=True)


def connect(url: URL) -> Engine:
    """Return an engine for an address, not connected yet; StoreError if its driver is missing.

    On SQLite, transactions that write take the lock before they read.
    """
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": PATIENCE})
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_transaction)
        return engine
    arguments: dict[str, int | None] = {"connect_timeout": 3}
    if url.get_driver_name() == "psycopg":
        # No prepared statements: behind a transaction pooler, each transaction may have another
        # server's session.
        arguments["prepare_threshold"] = None
    try:
        return create_engine(url, pool_pre_ping=True, connect_args=arguments)
    except ModuleNotFoundError:
        raise StoreError("PostgreSQL needs its driver: pip install 'psycopg[binary]'.") from None


def connect_to_read(path: str, how: str) -> Engine:
    """Return an engine to read a SQLite file only; `how`: "mode=ro" or "immutable=1".

    Args:
        path: The file.
        how: "mode=ro", or "immutable=1" where its folder cannot be written either.
    """
    uri = f"file:{quote(os.path.abspath(path))}?{how}"
    # No pool: each transaction opens the file again, and so sees what was written meanwhile from
    # elsewhere.
    return create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), poolclass=NullPool
    )


def _configure_sqlite(connection: sqlite3.Connection, _: object) -> None:
    """Set a new SQLite connection up: readers work at the same time as one writer.

    Committed data outlives any process.

    After a power cut, with synchronous NORMAL, the last commits may be missing; none is ever half
    written.
    """
    connection.isolation_level = None  # so that Python does not begin transactions of its own
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_transaction(connection: Connection) -> None:
    """Begin a transaction; one that writes takes SQLite's lock at once."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class Connected:
    """Database used in transactions; it is opened with the first one.

    Raises:
        StoreError: For an invalid address, and in a transaction for what goes wrong; BusyError
            where that may pass.
    """

    def __init__(self, url: str | None = None) -> None:
        self.url = address(url)
        self.name = printable_address(self.url)
        self.path = self.url.database if self.url.get_backend_name() == "sqlite" else None
        self.engine = connect(self.url)
        self._identity: tuple[int, int] | None = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction to read (on SQLite it sees one state); StoreError if it fails."""
        self._check_file()
        with raise_as_store_errors(self.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction to write: all of it happens, or nothing; StoreError if it fails."""
        self._check_file()
        with (
            raise_as_store_errors(self.url),
            self.engine.execution_options(writes=True).begin() as connection,
        ):
            yield connection

    def _check_file(self) -> None:
        """Raise StoreError for a SQLite file deleted in use; reconnect if its inode is another.

        Other databases are not checked.

        An open connection goes on with the deleted file: all that is written would be lost when the
        process ends.
        """
        if not self.path or self.path == ":memory:":
            return
        try:
            status = os.stat(self.path)
        except OSError:
            if self._identity:
                raise StoreError(f"The store {self.name} {GONE}.", f"The store {GONE}.") from None
            return
        identity = status.st_dev, status.st_ino
        if self._identity and self._identity != identity:
            self.engine.dispose()
        self._identity = identity

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def now(self) -> float:
        """Return the database's time in seconds since 1970, by which all times are stored."""
        with self.reading() as connection:
            seconds: float = connection.execute(select(Clock())).scalar_one()
            return seconds


def patiently(call: Callable[[], T], seconds: float | None = None) -> T:
    """Return call(), repeated while the store is busy for `seconds` (None: 15); then raise."""
    end = time.monotonic() + (BEGIN_WITHIN if seconds is None else seconds)
    while True:
        try:
            return call()
        except BusyError:
            if time.monotonic() > end:
                raise
        except (
            StoreError
        ) as error:  # two begin at the same time: the second finds the tables of the first
            if (
                not isinstance(error.__cause__, exc.IntegrityError | exc.ProgrammingError)
                or time.monotonic() > end
            ):
                raise
        time.sleep(0.2)


@contextmanager
def raise_as_store_errors(url: URL) -> Iterator[None]:
    """Turn errors of the database into BusyError, FullError or StoreError, with a sentence."""
    try:
        yield
    except exc.DBAPIError as error:
        if url.get_backend_name() == "sqlite":
            kind, message = _describe_sqlite(error.orig)
            words = message
        else:
            kind, message, why = _describe_postgresql(error)
            words = (  # in the server's words, which name its machine, its users and its tables
                f"{message}: {why}"
            )
        raise kind(
            f"The store {printable_address(url)} {words}.", f"The store {message}."
        ) from error


def _describe_sqlite(error: BaseException | None) -> tuple[type[StoreError], str]:
    """Return an error's class of StoreError and how "The store …" ends; "failed: …" if unknown."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return BusyError, "is locked by another program writing to it"
    if code == sqlite3.SQLITE_FULL:
        return FullError, "cannot grow: the disk is full"
    if code == sqlite3.SQLITE_READONLY:
        return StoreError, "is not writable"
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError, "cannot be opened (does the folder exist, and is it writable?)"
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError, "is not a SQLite database"
    if code == sqlite3.SQLITE_CORRUPT or str(error).startswith("no such"):
        return StoreError, f"is damaged or was replaced ({error}): restore it, or choose another"
    return StoreError, f"failed: {error}"


def _describe_postgresql(error: exc.DBAPIError) -> tuple[type[StoreError], str, str]:
    """Return (class of StoreError, how "The store …" ends, why in the server's words)."""
    state = getattr(error.orig, "sqlstate", None) or ""
    first = str(error.orig).strip().splitlines()[:1]
    why = first[0] if first else type(error.orig).__name__
    if state in ("53100", "53200"):
        return FullError, "has no room left", why
    passing = state[:2] in ("08", "40", "53", "57") or state == "55P03"
    lost = (
        not state
        and isinstance(error, exc.OperationalError)
        and not REFUSED.search(str(error.orig))
    )
    if passing or lost or error.connection_invalidated:
        return BusyError, "is currently unavailable", why
    return StoreError, "failed", why
