"""Store of studies: their runs, all results, and which process trains what.

Several processes may use it at once. A run belongs to the owner that has claimed it. An owner that
did not report for too long loses its runs, and can write nothing more to them. A queued run has no
rows, so none is stored twice.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql
from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from core.settings.process import is_alive, versions
from core.settings.wording import count
from core.study.curves import Made
from core.study.database import schema
from core.study.database.connection import (
    Connected,
    NoStoreError,
    StoreError,
    connect_to_read,
    patiently,
)
from core.study.database.schema import (
    DIVERGED,
    DONE,
    ENDED,
    FAILED,
    QUEUED,
    RUNNING,
    STOPPED,
    Clock,
    rows,
    runs,
    studies,
)
from core.study.plan import Run, Stored, Study
from core.train import Row
from core.train.match import late_loss

StoredRow = sql.Row[*tuple[Any, ...]]  # with its columns as attributes
StoredRun = StoredRow  # of Store.runs
HIDDEN = ("study", "place", "wanted")  # columns of a run that say nothing to a reader
MANY = 1000  # values in one IN (…)
LATEST = 100  # finished runs whose time says how fast trainings are here
EMPTY = {
    "step": 0,
    "seconds": 0.0,
    "started": None,
    "ended": None,
    "known": False,
    "message": "",
    "owner": None,
}


@dataclass(frozen=True)
class Report:
    """New results of a run from its owner; `rows` may begin with some that are already stored."""

    run: int
    state: str
    rows: list[Row] = field(default_factory=list)
    step: int = 0
    seconds: float = 0.0  # of a worker's time
    message: str = ""
    known: bool = False  # taken over from the same training, done before in the same process
    device: str = ""


@dataclass(frozen=True)
class Enrolled:
    """Counts of a study's runs that are new, finished, and no longer in its file."""

    study: int
    new: int
    ended: int
    unwanted: int


class Store(Connected):
    """Database that holds studies.

    Args:
        url: Its address or the path of a file; None for ABLATION_DATABASE_URL or the default.
        create: Whether to create the tables where there are none. Else a missing store raises
            NoStoreError.
        seconds: How long to try again while it is busy.

    Raises:
        StoreError: The database cannot be used; BusyError where that may pass.
    """

    def __init__(
        self, url: str | None = None, create: bool = True, seconds: float | None = None
    ) -> None:
        super().__init__(url)
        self.writable = True
        if self.path and not create and not os.path.exists(self.path):
            raise _no_store(self.name)
        patiently(lambda: self._open(create), seconds)

    def _open(self, create: bool) -> None:
        """Check the tables, or create them, and set `writable`; NoStoreError if not to be created.

        A read-only file is opened to read, and must have tables.
        """
        if self.path and os.path.isfile(self.path):
            folder = os.path.dirname(os.path.abspath(self.path))
            self.writable = os.access(self.path, os.W_OK) and os.access(folder, os.W_OK)
        if self.path and not self.writable:
            self._open_to_read(self.path)
            return
        with self.reading() as connection:
            present = check_tables(connection)
        if not present and not create:
            raise _no_store(self.name)
        if not present:
            with self.writing() as connection:
                if not check_tables(connection):
                    schema.metadata.create_all(connection)
                    connection.execute(
                        insert(schema.schema_version).values(only=1, version=schema.VERSION)
                    )
        if self.url.get_backend_name() == "postgresql":
            with self.reading() as connection:
                rights = [
                    (table, right)
                    for table in ("studies", "runs", "rows")
                    for right in ("INSERT", "UPDATE", "DELETE")
                ]
                privileges = " AND ".join(
                    f"has_table_privilege('{table}', '{right}')" for table, right in rights
                )
                may_write = connection.exec_driver_sql(
                    f"SELECT {privileges} AND NOT pg_is_in_recovery()"
                )
                self.writable = bool(may_write.scalar())

    def _open_to_read(self, path: str) -> None:
        """Open a SQLite file read-only, also on a disk that cannot be written.

        Raises NoStoreError for a file without tables.
        """
        for how in ("mode=ro", "immutable=1"):
            self.engine = connect_to_read(path, how)
            try:
                with self.reading() as connection:
                    present = check_tables(connection)
                break
            except StoreError:
                if how == "immutable=1":
                    raise
        if not present:
            raise _no_store(self.name)

    # What is there

    def find(self, name: str) -> int | None:
        """Return the id of the study of this name, or None."""
        with self.reading() as connection:
            number: int | None = connection.scalar(
                select(studies.c.id).where(studies.c.name == name)
            )
            return number

    def stored(self, study: Study) -> Stored:
        """Return hashes of a study's finished runs, number of runs it dropped, store's pace."""
        query = select(runs.c.hash, runs.c.state).join(studies).where(studies.c.name == study.name)
        with self.reading() as connection:
            states = {key: state for key, state in connection.execute(query)}
        hashes = {run.hash for run in study.runs}
        ended = frozenset(key for key in hashes & states.keys() if states[key] in (DONE, DIVERGED))
        return Stored(ended, len(states.keys() - hashes), self.pace())

    def pace(self) -> float:
        """Return seconds taken over expected by the store's 100 latest timed runs; 1 without any.

        Imported runs, of which no time is known, do not count.
        """
        latest = (
            select(runs.c.seconds, runs.c.expected)
            .where(runs.c.state == DONE, runs.c.seconds > 0)
            .order_by(runs.c.ended.desc())
            .limit(LATEST)
            .subquery()
        )
        query = select(func.sum(latest.c.seconds) / func.sum(latest.c.expected))
        with self.reading() as connection:
            return float(connection.scalar(query) or 1.0)

    def hashes(self, name: str) -> set[str]:
        """Return the hashes of all runs stored under a name, in any state; empty if unknown."""
        query = select(runs.c.hash).join(studies).where(studies.c.name == name)
        with self.reading() as connection:
            return set(connection.scalars(query))

    def count_unwanted(self, study: int) -> int:
        """Return how many stored runs, in any state, a study's file no longer contains."""
        unwanted_count = select(func.count()).where(runs.c.study == study, runs.c.wanted.is_(False))
        with self.reading() as connection:
            return connection.scalar(unwanted_count) or 0

    def stamp(self, study: int) -> str:
        """Return a text that changes with runs' states or the TOML, not rows; for one process."""
        query = select(
            runs.c.state, func.count(), func.max(runs.c.ended), func.sum(runs.c.place)
        ).where(runs.c.study == study, runs.c.wanted)
        with self.reading() as connection:
            source = connection.scalar(
                select(studies.c.source).where(studies.c.id == study)
            )  # the names stand there
            states = sorted(map(tuple, connection.execute(query.group_by(runs.c.state))), key=repr)
        return repr((hash(source), states))

    def studies(self) -> Sequence[StoredRow]:
        """Return id, name, question, source (TOML) and created of every study, the oldest first."""
        with self.reading() as connection:
            return connection.execute(select(studies).order_by(studies.c.created)).all()

    def counts(self, studies: list[int]) -> dict[str, tuple[int, float, float]]:
        """Return state -> (number of wanted runs, expected s, remaining s), summed over studies.

        States without runs are left out.
        """
        time_left = func.sum(runs.c.expected * (runs.c.steps - runs.c.step) / runs.c.steps)
        is_wanted = and_(runs.c.study.in_(studies), runs.c.wanted)
        query = select(runs.c.state, func.count(), func.sum(runs.c.expected), time_left).where(
            is_wanted
        )
        with self.reading() as connection:
            states = connection.execute(query.group_by(runs.c.state))
            return {state: (n, float(total), float(left)) for state, n, total, left in states}

    def runs(self, study: int, *states: str, spec: bool = True) -> Sequence[StoredRun]:
        """Return the runs in a study's current file, in order: those in these states, or all.

        Args:
            study: Id of the study.
            *states: States to select; none for all.
            spec: Whether to include the column spec, which is most of the data.
        """
        columns = [
            column
            for column in runs.c
            if column.name not in HIDDEN and (spec or column.name != "spec")
        ]
        query = select(*columns).where(runs.c.study == study, runs.c.wanted).order_by(runs.c.place)
        query = query.where(runs.c.state.in_(states)) if states else query
        with self.reading() as connection:
            return connection.execute(query).all()

    def specs(self, study: int) -> dict[tuple[str, str], str]:
        """Return (task, variant with its rate) -> spec (JSON) of one wanted run; any seed."""
        selected = and_(runs.c.study == study, runs.c.wanted)
        first = select(func.min(runs.c.id)).where(selected).group_by(runs.c.task, runs.c.variant)
        with self.reading() as connection:
            lines = connection.execute(
                select(runs.c.task, runs.c.variant, runs.c.spec).where(runs.c.id.in_(first))
            )
            return {(name, variant): spec for name, variant, spec in lines}

    def results(self, study: int) -> dict[int, float]:
        """Return run id -> final accuracy (share) of wanted runs that are done, not diverged."""
        end = and_(rows.c.run == runs.c.id, rows.c.step == runs.c.steps)
        done = and_(runs.c.study == study, runs.c.wanted, runs.c.state == DONE)
        with self.reading() as connection:
            return dict(
                connection.execute(
                    select(runs.c.id, rows.c.accuracy).join(rows, end).where(done)
                ).all()
            )

    def late_losses(self, study: int) -> dict[int, float]:
        """Return run id -> late loss (core.train.match) of wanted runs done, not diverged."""
        late = and_(rows.c.run == runs.c.id, 10 * rows.c.step > 9 * runs.c.steps)
        done = and_(runs.c.study == study, runs.c.wanted, runs.c.state == DONE)
        losses_by_cell: dict[tuple[int, int], list[tuple[int, float]]] = {}
        with self.reading() as connection:
            query = (
                select(runs.c.id, runs.c.steps, rows.c.step, rows.c.loss)
                .join(rows, late)
                .where(done)
            )
            for run, steps, step, loss in connection.execute(query.order_by(rows.c.step)):
                losses_by_cell.setdefault((run, steps), []).append((step, loss))
        return {run: late_loss(losses, steps) for (run, steps), losses in losses_by_cell.items()}

    def rows(self, study: int, run_ids: list[int] | None = None) -> Sequence[StoredRow]:
        """Return (run id, *Row) of a study's wanted runs (of these ids, if given), in its order.

        Rows of unfinished runs are included.
        """
        columns = [rows.c.run, *(rows.c[name] for name in Row._fields)]
        query = select(*columns).join(runs).where(runs.c.study == study, runs.c.wanted)
        query = query if run_ids is None else query.where(runs.c.id.in_(run_ids))
        with self.reading() as connection:
            return connection.execute(query.order_by(runs.c.place, rows.c.step)).all()

    # Who trains what

    def enrol(self, study: Study) -> Enrolled:
        """Add a study, or update that of its name with new queued runs; return its id and counts.

        Runs that it no longer contains stay stored but unwanted.
        """
        with self.writing() as connection:
            number = connection.scalar(
                select(studies.c.id).where(studies.c.name == study.name).with_for_update()
            )
            values = {"question": study.question, "source": study.source}
            if number is None:
                created = insert(studies).values(name=study.name, created=Clock(), **values)
                key: Any = connection.execute(created).inserted_primary_key
                number = key[0]
            connection.execute(update(studies).where(studies.c.id == number).values(values))
            present = connection.execute(
                select(runs.c.hash, runs.c.state).where(runs.c.study == number)
            )
            state_of = {key: state for key, state in present}
            connection.execute(update(runs).where(runs.c.study == number).values(wanted=False))
            described = [_run_columns(number, place, run) for place, run in enumerate(study.runs)]
            _execute_for_each(
                connection, insert(runs), [row for row in described if row["hash"] not in state_of]
            )
            names = "place", "task", "variant", "expected"
            requeued = [
                {"at": e["hash"], **{n: e[n] for n in names}}
                for e in described
                if e["hash"] in state_of
            ]
            same = and_(runs.c.study == number, runs.c.hash == bindparam("at"))
            _execute_for_each(
                connection,
                update(runs).where(same).values(wanted=True, **{n: bindparam(n) for n in names}),
                requeued,
            )
        states = [state_of.get(row["hash"]) for row in described]
        ended = sum(state in (DONE, DIVERGED) for state in states)
        return Enrolled(
            number, states.count(None), ended, len(state_of) + states.count(None) - len(described)
        )

    def requeue(self, study: int, states: Iterable[str] = (STOPPED, FAILED)) -> int:
        """Queue a study's wanted runs in these states again, deleting rows; return how many."""
        with self.writing() as connection:
            return _requeue(
                connection, and_(runs.c.study == study, runs.c.state.in_(states), runs.c.wanted)
            )

    def rerun(self, study: int, run_ids: Iterable[int]) -> int:
        """Queue these runs again if finished and wanted, deleting results; return how many."""
        queued = 0
        with self.writing() as connection:
            for some in _split_ids(list(run_ids)):
                ended = and_(runs.c.study == study, runs.c.id.in_(some), runs.c.state.in_(ENDED))
                queued += _requeue(connection, and_(ended, runs.c.wanted))
        return queued

    def add_results(self, study: int, results: Mapping[str, tuple[Sequence[Row], Made]]) -> int:
        """Store results trained elsewhere, for queued runs only; return how many were stored.

        Args:
            study: Id of the study.
            results: Run hash -> all its rows, and what trained it. Where several versions or
                devices did, it is not known which of them trained this run: they are left empty.
        """
        queued = select(runs.c.id, runs.c.hash).where(
            runs.c.study == study, runs.c.wanted, runs.c.state == QUEUED
        )
        with self.writing() as connection:
            run_ids = {key: run for run, key in connection.execute(queued) if key in results}
            for some in _split_ids(list(run_ids.values())):
                connection.execute(delete(rows).where(rows.c.run.in_(some)))
            new = [
                {"run": run, **row._asdict()}
                for key, run in run_ids.items()
                for row in results[key][0]
            ]
            _execute_for_each(connection, insert(rows), new)
            now = connection.execute(select(Clock())).scalar_one()
            changed = [_result_columns(run, *results[key], now) for key, run in run_ids.items()]
            names = [name for columns in changed[:1] for name in columns if name != "at"]
            values: dict[str, Any] = {name: bindparam(name) for name in names}
            _execute_for_each(
                connection, update(runs).where(runs.c.id == bindparam("at")).values(values), changed
            )
        return len(run_ids)

    def stop(self, study: int) -> int:
        """Mark queued and running runs as stopped, keeping rows; return how many.

        Their workers notice when they next store something.
        """
        going = and_(runs.c.study == study, runs.c.state.in_((QUEUED, RUNNING)))
        with self.writing() as connection:
            return connection.execute(
                update(runs).where(going).values(state=STOPPED, ended=Clock())
            ).rowcount

    def delete(self, study: int) -> None:
        """Delete a study and all its results, if it exists; its workers stop."""
        with self.writing() as connection:
            connection.execute(delete(studies).where(studies.c.id == study))

    def reclaim(self, studies: list[int], owner: str, running_runs: Iterable[int]) -> int:
        """Queue runs of dead owners, and those of `owner` not in `running_runs`; return how many.

        An owner is dead if its process has ended or has given no sign of life for too long.

        The latter were claimed when the connection broke.
        """
        running = and_(
            runs.c.study.in_(studies), runs.c.state == RUNNING, runs.c.id.not_in(list(running_runs))
        )
        query = (
            select(runs.c.owner, func.max(runs.c.heartbeat), Clock())
            .where(running)
            .group_by(runs.c.owner)
        )
        with self.reading() as connection:
            owners = connection.execute(query).all()
        dead = [
            (dead_owner, beat)
            for dead_owner, beat, now in owners
            if dead_owner == owner or not is_alive(dead_owner, beat, now)
        ]
        if not dead:
            return 0
        theirs = or_(
            *(and_(runs.c.owner == owner, runs.c.heartbeat <= beat) for owner, beat in dead)
        )
        with self.writing() as connection:
            return _requeue(connection, and_(running, theirs))

    def claim(
        self, study: int, owner: str, limit: int, trained_with: dict[str, str] | None = None
    ) -> list[tuple[int, str, str, str]]:
        """Mark up to `limit` queued runs as an owner's; return (id, task, variant, spec) of each.

        A list in the study's order; no two owners get the same.

        Args:
            study: Id of the study.
            owner: Name of the owner.
            limit: Number of runs at most.
            trained_with: versions() of the process that is to train them, where it is not this one.
        """
        queued = and_(runs.c.study == study, runs.c.state == QUEUED, runs.c.wanted)
        columns = runs.c.id, runs.c.task, runs.c.variant, runs.c.spec
        first = select(*columns).where(queued).order_by(runs.c.place).limit(limit)
        with self.writing() as connection:
            claimed = connection.execute(first.with_for_update(skip_locked=True)).all()
            now = connection.execute(select(Clock())).scalar_one()
            values = {
                "state": RUNNING,
                "owner": owner,
                "heartbeat": now,
                "started": now,
                "tries": runs.c.tries + 1,
            }
            for some in _split_ids([row.id for row in claimed]):
                connection.execute(
                    update(runs)
                    .where(runs.c.id.in_(some))
                    .values(**values, **(trained_with or versions()))
                )
        return [(row.id, row.task, row.variant, row.spec) for row in claimed]

    def store_reports(self, owner: str, reports: list[Report]) -> set[int]:
        """Store reports of an owner's runs; drop and return those no longer its own (ids).

        This is a sign of life. It may be repeated with the same reports.
        """
        by_run = {report.run: report for report in reports}
        numbers: set[int] = set()
        stored: dict[int, int] = {}
        with self.writing() as connection:
            for some in _split_ids(list(by_run)):
                is_own = and_(runs.c.id.in_(some), runs.c.owner == owner, runs.c.state == RUNNING)
                numbers.update(
                    connection.scalars(select(runs.c.id).where(is_own).with_for_update())
                )
                newest = (
                    select(rows.c.run, func.max(rows.c.step))
                    .where(rows.c.run.in_(some))
                    .group_by(rows.c.run)
                )
                stored |= {run: step for run, step in connection.execute(newest)}
            new = [
                (run, row)
                for run in numbers
                for row in by_run[run].rows
                if row.step > stored.get(run, 0)
            ]
            _execute_for_each(
                connection, insert(rows), [{"run": run, **row._asdict()} for run, row in new]
            )
            now = connection.execute(select(Clock())).scalar_one()
            changed = [_report_columns(by_run[run], now) for run in numbers]
            names = [name for name in _report_columns(Report(0, ""), now) if name != "at"]
            values: dict[str, Any] = {name: bindparam(name) for name in names}
            _execute_for_each(
                connection, update(runs).where(runs.c.id == bindparam("at")).values(values), changed
            )
        return set(by_run) - numbers


def check_tables(connection: sql.Connection) -> bool:
    """Return whether the tables exist and are right; False if empty, StoreError if wrong.

    Nothing is created. Wrong are damaged tables, and those of another version or program.
    """
    look = sql.inspect(connection)
    names = set(look.get_table_names()) & set(schema.metadata.tables)
    columns = {name: {column["name"] for column in look.get_columns(name)} for name in names}
    if not columns:
        return False
    for table in schema.metadata.sorted_tables:
        missing = [
            column.name for column in table.c if column.name not in columns.get(table.name, ())
        ]
        if missing:
            missing_part = (
                f"column {missing[0]} of its table {table.name}"
                if table.name in columns
                else f"table {table.name}"
            )
            raise StoreError(
                "This store is damaged, has another version or belongs to another program: the"
                f" {missing_part} is missing. Restore it, or choose another."
            )
    versions = connection.scalars(select(schema.schema_version.c.version)).all()
    if versions != [schema.VERSION]:
        found_versions = ", ".join(map(str, versions)) or "none"
        raise StoreError(
            f"This store has schema version {found_versions}, but this version of the project"
            f" supports {schema.VERSION}: update the project, or choose another store."
        )
    return True


def _no_store(name: str) -> NoStoreError:
    """Return the error for an address without a store."""
    then = "yet; running a study creates the store."
    return NoStoreError(f"There are no studies at {name} {then}", f"There are no studies {then}")


def _run_columns(study: int, place: int, run: Run) -> dict[str, Any]:
    """Return the values of a planned run's line in the table of runs."""
    return {
        "study": study,
        "place": place,
        "wanted": True,
        "task": run.task,
        "variant": run.variant,
        "seed": run.seed,
        "hash": run.hash,
        "spec": run.spec,
        "steps": run.training.steps,
        "expected": run.expected,
        "state": QUEUED,
    }


def _report_columns(report: Report, now: float) -> dict[str, Any]:
    """Return the values that a report changes in the run's line; "at" is the run's id."""
    return {
        "at": report.run,
        "state": report.state,
        "heartbeat": now,
        "step": report.step,
        "seconds": report.seconds,
        "ended": None if report.state == RUNNING else now,
        "message": report.message,
        "known": report.known,
        "device": report.device,
    }


def _result_columns(
    run: int, rows_of_run: Sequence[Row], provenance: Made, now: float
) -> dict[str, Any]:
    """Return the values of a run's line that come with a result from elsewhere; "at" is its id."""
    last = rows_of_run[-1]
    return {
        "at": run,
        "state": DIVERGED if last.note else DONE,
        "step": last.step,
        "ended": now,
        "known": True,
        "message": last.note,
        **{name: values[0] if len(values) == 1 else "" for name, values in provenance.items()},
    }


def _requeue(connection: sql.Connection, condition: sql.ColumnElement[bool]) -> int:
    """Queue runs that meet an SQL condition, in any state, deleting results; return how many."""
    numbers = list(connection.scalars(select(runs.c.id).where(condition).with_for_update()))
    for some in _split_ids(numbers):
        connection.execute(delete(rows).where(rows.c.run.in_(some)))
        connection.execute(update(runs).where(runs.c.id.in_(some)).values(state=QUEUED, **EMPTY))
    return len(numbers)


def _execute_for_each(
    connection: sql.Connection, statement: sql.Executable, values: list[dict[str, Any]]
) -> None:
    """Execute a statement with each dict of parameters; do nothing without any."""
    if values:
        connection.execute(statement, values)


def _split_ids(numbers: list[int]) -> Iterator[list[int]]:
    """Split ids into lists of at most 1000, which fit one SQL statement."""
    return (numbers[start : start + MANY] for start in range(0, len(numbers), MANY))


@dataclass(frozen=True)
class Standing:
    """Progress of a study, from the store alone."""

    counts: dict[str, int]  # state -> runs
    share: float  # of all the work, 0 to 1
    left: float  # seconds of work, on one core
    lost: int  # runs of processes that have died
    ahead: int = 0  # runs that a process has claimed, and not begun

    @property
    def n_runs(self) -> int:
        """Number of wanted runs, in all states."""
        return sum(self.counts.values())

    @property
    def n_ended(self) -> int:
        """Number of runs that have a result (diverged ones, too) or failed."""
        return sum(self.counts.get(state, 0) for state in (DONE, DIVERGED, FAILED))

    @property
    def running(self) -> bool:
        """Whether a living process has claimed a run, begun or not."""
        return self.counts.get(RUNNING, 0) > self.lost

    @property
    def queued(self) -> bool:
        """Whether any run is queued; claimed ones are not."""
        return bool(self.counts.get(QUEUED))

    @property
    def complete(self) -> bool:
        """Whether every run has its result; a diverged run has one, a failed run has none."""
        return not set(self.counts) - set(ENDED)

    @property
    def open(self) -> bool:
        """Whether there are queued, stopped or failed runs, or some of processes that have died."""
        return bool(self.lost or any(self.counts.get(state) for state in (QUEUED, STOPPED, FAILED)))

    def describe(self) -> str:
        """Describe as "8 runs: 5 done, 3 queued"; runs claimed but not begun count as queued."""
        ahead = min(self.ahead, self.counts.get(RUNNING, 0))  # which was read a moment before
        totals = Counter(self.counts) + Counter({QUEUED: ahead})
        totals[RUNNING] -= ahead
        parts = [f"{totals[state]:,} {state}" for state in schema.STATES if totals[state]]
        return f"{count(self.n_runs, 'run')}: {', '.join(parts)}"


def progress_of(store: Store, study: int) -> Standing:
    """Return the progress of a study; one without runs, or an unknown id, counts as complete.

    Raises:
        StoreError: The store cannot be read.
    """
    by_state = store.counts([study])
    counts = {state: n for state, (n, _, _) in by_state.items()}
    total = sum(expected for _, expected, _ in by_state.values())
    left = sum(
        by_state[state][2] for state in (QUEUED, RUNNING, STOPPED, FAILED) if state in by_state
    )
    now = store.now()
    running = store.runs(study, RUNNING, spec=False)
    lost = sum(not is_alive(run.owner, run.heartbeat, now) for run in running)
    share = (
        max(0.0, 1 - left / total) if total else 1.0
    )  # sums of floats: what is left may come to more than all
    return Standing(counts, share, left, lost, len(taken_ahead(running, now)))


def taken_ahead(lines: Iterable[StoredRun], now: float) -> set[int]:
    """Return the ids of runs that a living process claimed but has not begun (step 0).

    `now` is the time of the database (Store.now).
    """
    running = (run for run in lines if run.state == RUNNING and not run.step)
    return {run.id for run in running if is_alive(run.owner, run.heartbeat, now)}
