"""Tables of the store."""

import math
from typing import Any

import sqlalchemy as sql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from core.train import Row

VERSION = 1
QUEUED = "queued"
RUNNING = "running"
DONE = "done"
DIVERGED = "diverged"
FAILED = "failed"
STOPPED = "stopped"
STATES = (QUEUED, RUNNING, DONE, DIVERGED, FAILED, STOPPED)
ENDED = (DONE, DIVERGED)  # with a result

metadata = sql.MetaData()


class Number(sql.TypeDecorator[float]):
    """Column for a float to the last bit; NaN is stored as NULL, as SQLite does anyway."""

    impl = sql.Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: sql.Dialect) -> float | None:
        """Return the value to store: None for NaN."""
        return None if value is None or math.isnan(value) else value

    def process_result_value(self, value: float | None, dialect: sql.Dialect) -> float:
        """Return the stored value: NaN for NULL."""
        return math.nan if value is None else value


class Clock(FunctionElement[float]):
    """Database time in seconds since 1970, as the clocks of machines differ."""

    type = sql.Double()
    inherit_cache = True


@compiles(Clock, "postgresql")
def _postgresql_clock(element: Clock, compiler: SQLCompiler, **_: Any) -> str:
    """Return PostgreSQL's expression for the current time in seconds."""
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


@compiles(Clock, "sqlite")
def _sqlite_clock(element: Clock, compiler: SQLCompiler, **_: Any) -> str:
    """Return SQLite's expression for the current time in seconds."""
    return "((julianday('now') - 2440587.5) * 86400.0)"


schema_version = sql.Table(
    "schema_version",
    metadata,
    sql.Column(
        "only", sql.Integer, primary_key=True, autoincrement=False
    ),  # 1: of two made at once, one fails
    sql.Column("version", sql.Integer, nullable=False),
)

studies = sql.Table(
    "studies",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String(200), nullable=False, unique=True),
    sql.Column("question", sql.Text, nullable=False),
    sql.Column("source", sql.Text, nullable=False),  # the file
    sql.Column("created", sql.Double, nullable=False),  # by Clock(), as all times here
    sqlite_autoincrement=True,  # the number of a study that was deleted is not given again
)

runs = sql.Table(
    "runs",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("study", sql.ForeignKey(studies.c.id, ondelete="CASCADE"), nullable=False),
    sql.Column("place", sql.Integer, nullable=False),  # in the order of the study
    sql.Column(
        "wanted", sql.Boolean, nullable=False
    ),  # False: an earlier version of the file asked for it
    sql.Column("task", sql.String(200), nullable=False),
    sql.Column("variant", sql.String(200), nullable=False),
    sql.Column("seed", sql.Integer, nullable=False),
    sql.Column("hash", sql.String(32), nullable=False),
    sql.Column(
        "spec", sql.Text, nullable=False
    ),  # everything that determines the numbers: core.study.plan.Run.spec
    sql.Column("steps", sql.Integer, nullable=False),
    sql.Column("expected", sql.Double, nullable=False),  # seconds on one core, by core.train.budget
    sql.Column("state", sql.String(8), nullable=False),
    sql.Column("owner", sql.String(200)),  # the process that has it in hand, or had it last
    sql.Column("heartbeat", sql.Double),  # when the owner last said so
    sql.Column("tries", sql.Integer, nullable=False, default=0),
    sql.Column("step", sql.Integer, nullable=False, default=0),  # steps that are done and stored
    sql.Column("seconds", sql.Double, nullable=False, default=0.0),  # of a worker's time
    sql.Column("started", sql.Double),
    sql.Column("ended", sql.Double),
    sql.Column(
        "known", sql.Boolean, nullable=False, default=False
    ),  # taken over from the same training in the same process
    sql.Column("message", sql.Text, nullable=False, default=""),
    sql.Column("torch", sql.String(40), nullable=False, default=""),
    sql.Column("numpy", sql.String(40), nullable=False, default=""),
    sql.Column("python", sql.String(40), nullable=False, default=""),
    sql.Column("code", sql.String(60), nullable=False, default=""),  # the commit
    sql.Column("device", sql.String(100), nullable=False, default=""),
    sql.UniqueConstraint("study", "hash"),
    sql.Index("runs_by_state", "study", "state", "place"),
    sqlite_autoincrement=True,
)

rows = sql.Table(
    "rows",
    metadata,
    sql.Column("run", sql.ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    sql.Column(
        "step", sql.Integer, primary_key=True, autoincrement=False
    ),  # so no row can stand twice
    *[sql.Column(name, Number) for name in Row._fields[1:-1]],
    sql.Column("note", sql.Text, nullable=False),
    sqlite_with_rowid=False,  # the key is the table: half the size
)
