"""Which database, how it is spoken to, and what its errors mean. SQLite in a file by default, PostgreSQL by its address."""

import os
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, event, exc, make_url

VARIABLE = "ABLATION_DATABASE_URL"
DEFAULT = "sqlite:///studies.sqlite"  # in the folder from which the command is given
PATIENCE = (
    2.0  # seconds to wait for another writer; less than core.jobs.PATIENCE, after which workers would be withdrawn
)
ALLOWED = (
    "sqlite:///studies.sqlite (a file in this folder), sqlite:////data/studies.sqlite (a file anywhere) "
    "or postgresql://user:password@host/name"
)
BUSY, READONLY, IOERR, FULL, CANTOPEN, NOTADB = 5, 8, 10, 13, 14, 26  # <sqlite3.h>


class StoreError(RuntimeError):
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
    except (exc.ArgumentError, ValueError):
        kind = ""
    if kind not in ("sqlite", "postgresql"):  # the address is not shown: it may hold a password
        raise StoreError(f"{source} is no address of a database that can be used here; write {ALLOWED}.")
    return url


def shown(url: URL) -> str:
    """The address as it may be printed: no password, and nothing behind a question mark, where one could hide."""
    if url.get_backend_name() == "sqlite":
        return str(Path(url.database).absolute()) if url.database else "memory"
    return url.set(query={}).render_as_string(hide_password=True)


def connect(url: URL) -> Engine:
    """An engine whose transactions are whole: on SQLite those that write take the lock before they read.

    Raises StoreError where the driver is missing.
    """
    try:
        if url.get_backend_name() != "sqlite":
            return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 3})
        engine = create_engine(url, connect_args={"timeout": PATIENCE})
    except ModuleNotFoundError:
        raise StoreError("PostgreSQL needs its driver: pip install 'psycopg[binary]'.") from None
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection, _):
    """A new connection to SQLite: readers and one writer side by side; what is committed outlives any process.

    (After a power cut, with synchronous NORMAL, the last commits may be missing; nothing is ever half there.)
    """
    connection.isolation_level = None  # so that Python does not begin transactions of its own
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection):
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def in_words(url: URL):
    """Turns what the database raises into Busy, Full or StoreError."""
    try:
        yield
    except exc.DBAPIError as error:
        kind, words = _sqlite(error.orig) if url.get_backend_name() == "sqlite" else _postgresql(error)
        raise kind(f"The store {shown(url)} {words}") from error


def _sqlite(error) -> tuple[type[StoreError], str]:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == BUSY:
        return Busy, "is locked by another program that writes."
    if code == FULL:
        return Full, "cannot grow: the disk is full."
    words = {
        READONLY: "may not be written.",
        IOERR: f"cannot be read or written ({error}): is the disk full, or gone?",
        CANTOPEN: "cannot be opened: does the folder exist, and may it be written?",
        NOTADB: "is a file of another kind, not a SQLite database.",
    }
    return StoreError, words.get(code, f"failed: {error}.")


def _postgresql(error: exc.DBAPIError) -> tuple[type[StoreError], str]:
    state = getattr(error.orig, "sqlstate", None) or ""
    first = str(error.orig).strip().splitlines()[:1]
    why = first[0] if first else type(error.orig).__name__
    if state in ("53100", "53200"):
        return Full, f"has no room left: {why}."
    passing = state[:2] in ("08", "40", "53", "57") or state == "55P03"
    refused = "FATAL" in why and "starting up" not in why and "too many" not in why  # a wrong password has no state
    if passing or (not state and not refused and isinstance(error, exc.OperationalError)):
        return Busy, f"cannot be reached or used now: {why}."
    return StoreError, f"failed: {why}."
