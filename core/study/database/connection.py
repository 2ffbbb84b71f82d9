"""Which database, how it is spoken to, and what its errors mean. SQLite in a file by default, PostgreSQL by its address."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry

from core.settings.errors import ServerError

VARIABLE = "ABLATION_DATABASE_URL"
DEFAULT = "sqlite:///studies.sqlite"  # in the folder from which the command is given
PATIENCE = 2.0  # seconds to wait for another writer; less than core.workers.job.PATIENCE, after which workers would be withdrawn
ALLOWED = (
    "sqlite:///studies.sqlite (a file in this folder), sqlite:////data/studies.sqlite (a file anywhere) "
    "or postgresql://user:password@host/name"
)
# What a server says, while a connection is made, that waiting does not mend; such errors come without a code. All else may pass:
# "the database system is shutting down", "in recovery mode", "not yet accepting connections", "too many clients already".
REFUSED = re.compile(
    r"authentication failed|no password supplied|does not exist|pg_hba\.conf|not permitted|permission denied"
)
TABLES, RIGHTS = ("studies", "runs", "rows"), ("INSERT", "UPDATE", "DELETE")
BUSY, READONLY, IOERR, FULL, CANTOPEN, NOTADB = 5, 8, 10, 13, 14, 26  # <sqlite3.h>


class StoreError(ServerError):
    """The database cannot be used; the message says which and why, without passwords."""


class NoStore(StoreError):
    """There is none yet at this address."""


class Busy(StoreError):
    """Not now, but later perhaps: another writer is at it, or the server does not answer."""


class Full(StoreError):
    """There is no room left on its disk."""


def address(given: str | None = None) -> URL:
    """Where the store is: given (an address or the path of a file), else ABLATION_DATABASE_URL, else DEFAULT."""
    text = given or os.environ.get(VARIABLE) or DEFAULT
    source = "--database" if given else VARIABLE
    text = text.replace("postgres://", "postgresql://", 1) if text.startswith("postgres://") else text
    try:
        url = make_url(text if "://" in text else URL.create("sqlite", database=text))
        kind = url.get_backend_name()
        if url.drivername == "postgresql":  # SQLAlchemy 2.0 takes that for psycopg2, 2.1 for psycopg
            url = url.set(drivername="postgresql+psycopg")
    except (exc.ArgumentError, ValueError):
        kind = ""
    if kind not in ("sqlite", "postgresql"):  # the address is not shown: it may hold a password
        raise StoreError(f"{source} is no address of a database that can be used here; write {ALLOWED}.")
    return url


def shown(url: URL) -> str:
    """The address as it may be printed: no password, and nothing behind a question mark, where one could hide."""
    if url.get_backend_name() == "sqlite":
        return str(Path(url.database).absolute()) if url.database else "memory"
    return url.set(drivername=url.get_backend_name(), query={}).render_as_string(hide_password=True)


def connect(url: URL, to_read: str = "") -> Engine:
    """An engine whose transactions are whole: on SQLite those that write take the lock before they read.

    to_read: for a file of SQLite that cannot be written: "mode=ro", or "immutable=1" where the folder cannot be written either.
    Raises StoreError where the driver is missing.
    """
    if to_read:
        place = quote(str(Path(url.database or "").absolute()))
        # No pool: each transaction opens the file again, and so sees what was written meanwhile from elsewhere.
        return create_engine(
            "sqlite://", creator=lambda: sqlite3.connect(f"file:{place}?{to_read}", uri=True), poolclass=NullPool
        )
    try:
        if url.get_backend_name() != "sqlite":
            arguments: dict[str, int | None] = {"connect_timeout": 3}
            if url.get_driver_name() == "psycopg":
                # No prepared statements: behind a transaction pooler, each transaction may have another server's session.
                arguments["prepare_threshold"] = None
            return create_engine(url, pool_pre_ping=True, connect_args=arguments)
        engine = create_engine(url, connect_args={"timeout": PATIENCE})
    except ModuleNotFoundError:
        raise StoreError("PostgreSQL needs its driver: pip install 'psycopg[binary]'.") from None
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    if url.database and url.database != ":memory:":
        opened = _OpenedFile(url)
        for name in ("do_connect", "connect", "checkout"):
            event.listen(engine, name, getattr(opened, name))
    return engine


class _OpenedFile:
    """What a pool of connections to a file of SQLite does where the file is deleted, or another takes its place.

    An open connection goes on with a file that is no longer there: all that is written would be gone when the process ends.
    """

    def __init__(self, url: URL) -> None:
        self.url, self.there = url, False

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.url.database or "")
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def do_connect(self, *_: object) -> None:
        """Once it was there, it is not made anew: what is missing is said."""
        if self.there and not self._identity():
            raise StoreError(
                f"The store {shown(self.url)} is gone: its file was deleted, moved or renamed while it was in use. "
                "Put it back, or start again to begin a new one.",
                "The store is gone: its file was deleted, moved or renamed while it was in use. Whoever runs this server can put "
                "it back, or start again to begin a new one.",
            )

    def connect(self, _: object, record: ConnectionPoolEntry) -> None:
        self.there, record.info["file"] = True, self._identity()

    def checkout(self, _: object, record: ConnectionPoolEntry, __: object) -> None:
        if record.info["file"] != self._identity():
            raise exc.DisconnectionError  # the pool connects anew


def _prepare(connection: sqlite3.Connection, _: object) -> None:
    """A new connection to SQLite: readers and one writer side by side; what is committed outlives any process.

    (After a power cut, with synchronous NORMAL, the last commits may be missing; nothing is ever half there.)
    """
    connection.isolation_level = None  # so that Python does not begin transactions of its own
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def writable(engine: Engine) -> bool:
    """Whether the tables there can be changed. Raises what the database raises where it cannot say so now."""
    sqlite = engine.url.get_backend_name() == "sqlite"
    try:
        with engine.execution_options(writes=True).connect() as connection:  # what it does is taken back
            if sqlite:
                connection.exec_driver_sql("UPDATE schema_version SET version = version")
                return True
            asked = " AND ".join(f"has_table_privilege('{table}', '{right}')" for table in TABLES for right in RIGHTS)
            return bool(connection.exec_driver_sql(f"SELECT {asked} AND NOT pg_is_in_recovery()").scalar())
    except exc.OperationalError as error:
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        if sqlite and code in (READONLY, BUSY):
            return code == BUSY  # somebody else writes at the moment
        raise


@contextmanager
def in_words(url: URL) -> Iterator[None]:
    """Turns what the database raises into Busy, Full or StoreError."""
    try:
        yield
    except exc.DBAPIError as error:
        if url.get_backend_name() == "sqlite":
            kind, words = _sqlite(error.orig)
            message = words
        else:
            kind, message, why = _postgresql(error)
            words = f"{message}: {why}"
        end = "" if words.endswith("?") else "."
        raise kind(f"The store {shown(url)} {words}{end}", f"The store {message}{end}") from error


def _sqlite(error: BaseException | None) -> tuple[type[StoreError], str]:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == BUSY:
        return Busy, "is locked by another program that writes"
    if code == FULL:
        return Full, "cannot grow: the disk is full"
    if str(error).startswith("no such table"):
        return (
            StoreError,
            f"is not what it was ({error}): was its file emptied or replaced? Put it back, or start again.",
        )
    words = {
        READONLY: "may not be written",
        IOERR: f"cannot be read or written ({error}): is the disk full, or gone?",
        CANTOPEN: "cannot be opened: does the folder exist, and may it be written?",
        NOTADB: "is a file of another kind, not a SQLite database",
    }
    return StoreError, words.get(code, f"failed: {error}")


def _postgresql(error: exc.DBAPIError) -> tuple[type[StoreError], str, str]:
    """-> (kind, what happened, why: in the server's words, which name its machine, its users and its tables)"""
    state = getattr(error.orig, "sqlstate", None) or ""
    first = str(error.orig).strip().splitlines()[:1]
    why = first[0] if first else type(error.orig).__name__
    if state in ("53100", "53200"):
        return Full, "has no room left", why
    passing = state[:2] in ("08", "40", "53", "57") or state == "55P03"
    lost = not state and isinstance(error, exc.OperationalError) and not REFUSED.search(str(error.orig))
    if passing or lost or error.connection_invalidated:
        return Busy, "cannot be reached or used now", why
    return StoreError, "failed", why
