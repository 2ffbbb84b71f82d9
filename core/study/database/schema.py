"""The tables of the store, and how an older store becomes one of today."""

import math
from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Inspector,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    inspect,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from core.study.database.connection import StoreError
from core.train import Row

VERSION = 1
MIGRATIONS: dict[
    int, Callable[[Connection], None]
] = {}  # version -> call(connection) that makes the next version of it
QUEUED, RUNNING, DONE, DIVERGED, FAILED, STOPPED = STATES = (
    "queued",
    "running",
    "done",
    "diverged",
    "failed",
    "stopped",
)
ENDED = (DONE, DIVERGED)  # with a result

metadata = MetaData()


class Number(TypeDecorator[float]):
    """A float to the last bit. NaN is kept as NULL, which is what SQLite makes of it anyway."""

    impl, cache_ok = Double, True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        return None if value is None or math.isnan(value) else value

    def process_result_value(self, value: float | None, dialect: Dialect) -> float:
        return math.nan if value is None else value


class clock(FunctionElement[float]):
    """The database's own clock, in seconds since 1970: machines that share a store need not agree on the time."""

    type, inherit_cache = Double(), True


@compiles(clock, "postgresql")
def _postgresql_clock(element: clock, compiler: SQLCompiler, **_: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


@compiles(clock, "sqlite")
def _sqlite_clock(element: clock, compiler: SQLCompiler, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


schema_version = Table(
    "schema_version",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),  # 1: two that make a store at once cannot both
    Column("version", Integer, nullable=False),
)

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("question", Text, nullable=False),
    Column("source", Text, nullable=False),  # the file
    Column("created", Double, nullable=False),  # by clock(), as all times here
    sqlite_autoincrement=True,  # the number of a study that was deleted is not given again
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study", ForeignKey(studies.c.id, ondelete="CASCADE"), nullable=False),
    Column("place", Integer, nullable=False),  # in the order of the study
    Column("wanted", Boolean, nullable=False),  # False: an earlier version of the file asked for it
    Column("task", String(200), nullable=False),
    Column("variant", String(200), nullable=False),
    Column("seed", Integer, nullable=False),
    Column("hash", String(32), nullable=False),
    Column("spec", Text, nullable=False),  # everything that determines the numbers: core.study.plan.Run.spec
    Column("steps", Integer, nullable=False),
    Column("expected", Double, nullable=False),  # seconds on one core, by core.train.budget
    Column("state", String(8), nullable=False),
    Column("owner", String(200)),  # the process that has it in hand, or had it last
    Column("heartbeat", Double),  # when the owner last said so
    Column("tries", Integer, nullable=False, default=0),
    Column("step", Integer, nullable=False, default=0),  # steps that are done and stored
    Column("seconds", Double, nullable=False, default=0.0),  # of a worker's time
    Column("started", Double),
    Column("ended", Double),
    Column("known", Boolean, nullable=False, default=False),  # taken over from the same training in the same process
    Column("message", Text, nullable=False, default=""),
    Column("torch", String(40), nullable=False, default=""),
    Column("numpy", String(40), nullable=False, default=""),
    Column("python", String(40), nullable=False, default=""),
    Column("code", String(60), nullable=False, default=""),  # the commit
    Column("device", String(100), nullable=False, default=""),
    UniqueConstraint("study", "hash"),
    Index("runs_by_state", "study", "state", "place"),
    sqlite_autoincrement=True,
)

rows = Table(
    "rows",
    metadata,
    Column("run", ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),  # so no row can stand twice
    *[Column(name, Number) for name in Row._fields[1:-1]],
    Column("note", Text, nullable=False),
    sqlite_with_rowid=False,  # the key is the table: half the size
)


def version(connection: Connection) -> int | None:
    """Of the store; None for one that is empty. Raises StoreError for tables that are somebody else's, or damaged."""
    look = inspect(connection)
    there = set(look.get_table_names())
    if schema_version.name in there:
        return _stated(connection, look, there)
    strange = sorted(there & set(metadata.tables))
    if strange:
        raise StoreError(
            f"This database holds a table {strange[0]} of another program: choose another for the studies."
        )
    return None


def _stated(connection: Connection, look: Inspector, there: set[str]) -> int:
    """The version that a store says it has, one of today with everything that it must hold."""
    _has(schema_version, look, there)
    versions = connection.scalars(select(schema_version.c.version)).all()
    if len(versions) != 1 or type(versions[0]) is not int:
        raise _damaged(f"its table {schema_version.name} does not hold one version")
    if versions[0] == VERSION:
        for table in metadata.sorted_tables:
            _has(table, look, there)
    return versions[0]


def _has(table: Table, look: Inspector, there: set[str]) -> None:
    if table.name not in there:
        raise _damaged(f"it has no table {table.name}")
    columns = {each["name"] for each in look.get_columns(table.name)}
    lacking = [each.name for each in table.c if each.name not in columns]
    if lacking:
        raise _damaged(f"its table {table.name} has no column {lacking[0]}")


def _damaged(how: str) -> StoreError:
    return StoreError(f"This store is damaged, or another program's: {how}. Restore it, or choose another.")


def check(present: int | None) -> None:
    """Raises StoreError for a store that a newer version of this project has written."""
    if present is not None and present > VERSION:
        raise StoreError(
            f"This store has schema version {present}, and this version of the project knows {VERSION} at most: "
            "update the project, or choose another store."
        )
    if present is not None and any(number not in MIGRATIONS for number in range(present, VERSION)):
        raise StoreError(f"This store has schema version {present}, from which there is no way to version {VERSION}.")


def bring_up_to_date(connection: Connection) -> None:
    """Create what is missing, or migrate version by version, in the transaction of the connection."""
    present = version(connection)
    check(present)
    if present is None:
        metadata.create_all(connection)
        connection.execute(schema_version.insert().values(only=1, version=VERSION))
        return
    connection.execute(select(schema_version.c.version).with_for_update())  # PostgreSQL: one at a time
    now = version(connection)
    for number in range(VERSION if now is None else now, VERSION):
        MIGRATIONS[number](connection)
        connection.execute(schema_version.update().values(version=number + 1))
