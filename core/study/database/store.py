"""The store of studies: what is to be trained, by whom it is being trained, and every number that came out.

Several processes may use it at once. A run belongs to the owner that has claimed it; whoever has lost it, because it gave
no sign of life for too long, can write nothing more of it. A queued run has no rows: so none is ever there twice.
"""

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import and_, bindparam, delete, exc, func, insert, or_, select, update

from core.settings.process import alive, versions
from core.study.database.connection import Busy, NoStore, StoreError, address, connect, in_words, shown, writable
from core.study.database.schema import (
    DIVERGED,
    DONE,
    FAILED,
    QUEUED,
    RUNNING,
    STOPPED,
    VERSION,
    bring_up_to_date,
    check,
    clock,
    rows,
    runs,
    studies,
    version,
)
from core.study.plan import NOTHING, Stored, Study
from core.train import Row

MANY = 1000  # values in one IN (…)
BEGIN_WITHIN = 15.0  # seconds that a busy store is waited for when it is opened
HIDDEN = ("study", "place", "wanted")  # columns of a run that say nothing to a reader
EMPTY = {"step": 0, "seconds": 0.0, "started": None, "ended": None, "known": False, "message": "", "owner": None}


@dataclass(frozen=True)
class Report:
    """What its owner has to say about a run. rows may begin with some that are stored already."""

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
    """How many runs of a study are new to the store, have their result, and are there but no longer asked for."""

    study: int
    new: int
    ended: int
    unwanted: int


class Store:
    """Raises StoreError, in words, for a database that cannot be used; Busy where that may pass.

    seconds: for how long one that is busy, or does not answer, is tried again.
    """

    def __init__(self, given: str | None = None, create: bool = True, seconds: float | None = None):
        self.url = address(given)
        self.name = shown(self.url)
        if not create and self.url.get_backend_name() == "sqlite" and not os.path.exists(self.url.database or ""):
            raise NoStore(*_nothing("is no store", self.name, "study that is run makes it"))
        self.writable = True
        self._use(connect(self.url))
        patiently(lambda: self._begin(create), seconds)

    def _use(self, engine):
        self.engine, self._writer = engine, engine.execution_options(writes=True)

    def _begin(self, create: bool):
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
                    return self._open(False)
                except StoreError:
                    if how != "mode=ro":
                        raise error from None

    def _open(self, create: bool):
        with self.reading() as connection:
            found = version(connection)
        check(found)
        if found is None and not create:
            raise NoStore(*_nothing("are no studies", self.name, "one that is run makes the tables"))
        if found != VERSION:
            with self.writing() as connection:
                bring_up_to_date(connection)

    @contextmanager
    def reading(self):
        """A transaction that sees one state of the store and changes nothing."""
        with in_words(self.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self):
        """A transaction: all of it happens, or nothing."""
        with in_words(self.url), self._writer.begin() as connection:
            yield connection

    def close(self):
        self.engine.dispose()

    def now(self) -> float:
        """What the database's clock shows: every time in the store is by it, wherever the machine is that wrote it."""
        with self.reading() as connection:
            return connection.scalar(select(clock()))

    # What is to be done

    def enrol(self, study: Study) -> Enrolled:
        """Enter a study, or what is new in it. Runs that it no longer asks for stay, and are no longer counted."""
        with self.writing() as connection:
            number = connection.scalar(select(studies.c.id).where(studies.c.name == study.name).with_for_update())
            values = {"question": study.question, "source": study.source}
            if number is None:
                created = insert(studies).values(name=study.name, created=clock(), **values)
                number = connection.execute(created).inserted_primary_key[0]
            connection.execute(update(studies).where(studies.c.id == number).values(values))
            found = connection.execute(select(runs.c.hash, runs.c.state).where(runs.c.study == number))
            there = {key: state for key, state in found}
            connection.execute(update(runs).where(runs.c.study == number).values(wanted=False))
            given = [_described(number, place, run) for place, run in enumerate(study.runs)]
            _each(connection, insert(runs), [each for each in given if each["hash"] not in there])
            names = "place", "task", "variant", "expected"
            again = [{"at": e["hash"], **{n: e[n] for n in names}} for e in given if e["hash"] in there]
            same = and_(runs.c.study == number, runs.c.hash == bindparam("at"))
            _each(connection, update(runs).where(same).values(wanted=True, **{n: bindparam(n) for n in names}), again)
        states = [there.get(each["hash"]) for each in given]
        ended = sum(state in (DONE, DIVERGED) for state in states)
        return Enrolled(number, states.count(None), ended, len(there) + states.count(None) - len(given))

    def requeue(self, study: int, states=(STOPPED, FAILED)) -> int:
        """Have the runs of a study that were stopped, or failed, run again -> how many."""
        with self.writing() as connection:
            return _queue(connection, and_(runs.c.study == study, runs.c.state.in_(states), runs.c.wanted))

    def stop(self, study: int) -> int:
        """Have nothing more of a study trained, whoever is at it: they see it when they next store something -> how many."""
        going = and_(runs.c.study == study, runs.c.state.in_((QUEUED, RUNNING)))
        with self.writing() as connection:
            return connection.execute(update(runs).where(going).values(state=STOPPED, ended=clock())).rowcount

    def delete(self, study: int):
        """Forget a study and all its numbers; whoever trains it stops."""
        with self.writing() as connection:
            connection.execute(delete(studies).where(studies.c.id == study))

    def reclaim(self, of: list[int], owner: str, held) -> int:
        """Queue the runs whose owners have died, and those of this owner that it does not know to be its own (the
        connection broke when it claimed them) -> how many."""
        running = and_(runs.c.study.in_(of), runs.c.state == RUNNING, runs.c.id.not_in(list(held)))
        query = select(runs.c.owner, func.max(runs.c.heartbeat), clock()).where(running).group_by(runs.c.owner)
        with self.reading() as connection:
            owners = connection.execute(query).all()
        dead = [(who, beat) for who, beat, now in owners if who == owner or not alive(who, beat, now)]
        if not dead:
            return 0
        theirs = or_(*(and_(runs.c.owner == who, runs.c.heartbeat <= beat) for who, beat in dead))
        with self.writing() as connection:
            return _queue(connection, and_(running, theirs))

    def claim(self, study: int, owner: str, most: int, trained_with=None) -> list[tuple[int, str, str, str]]:
        """Take up to so many queued runs -> [(run, task, variant, spec), …]. No two owners get the same.

        trained_with: versions() of the process that is to train them, where it is not this one.
        """
        queued = and_(runs.c.study == study, runs.c.state == QUEUED, runs.c.wanted)
        columns = runs.c.id, runs.c.task, runs.c.variant, runs.c.spec
        first = select(*columns).where(queued).order_by(runs.c.place).limit(most)
        with self.writing() as connection:
            taken = connection.execute(first.with_for_update(skip_locked=True)).all()
            now = connection.scalar(select(clock()))
            values = {"state": RUNNING, "owner": owner, "heartbeat": now, "started": now, "tries": runs.c.tries + 1}
            for some in _portions([each.id for each in taken]):
                connection.execute(
                    update(runs).where(runs.c.id.in_(some)).values(**values, **(trained_with or versions()))
                )
        return [tuple(each) for each in taken]

    def keep(self, owner: str, reports: list[Report]) -> set[int]:
        """Store what is new of these runs, and that their owner lives -> those that are no longer its own.

        May be repeated with the same reports when it is not known whether it has succeeded.
        """
        given = {each.run: each for each in reports}
        mine, stored = set(), {}
        with self.writing() as connection:
            for some in _portions(list(given)):
                held = and_(runs.c.id.in_(some), runs.c.owner == owner, runs.c.state == RUNNING)
                mine.update(connection.scalars(select(runs.c.id).where(held).with_for_update()))
                newest = select(rows.c.run, func.max(rows.c.step)).where(rows.c.run.in_(some)).group_by(rows.c.run)
                stored |= {run: step for run, step in connection.execute(newest)}
            new = [(run, row) for run in mine for row in given[run].rows if row.step > stored.get(run, 0)]
            _each(connection, insert(rows), [{"run": run, **row._asdict()} for run, row in new])
            now = connection.scalar(select(clock()))
            changed = [_changes(given[run], now) for run in mine]
            names = [name for name in _changes(Report(0, ""), now) if name != "at"]
            values = {name: bindparam(name) for name in names}
            _each(connection, update(runs).where(runs.c.id == bindparam("at")).values(values), changed)
        return set(given) - mine

    # What is there

    def find(self, name: str) -> int | None:
        """The number of a study."""
        with self.reading() as connection:
            return connection.scalar(select(studies.c.id).where(studies.c.name == name))

    def stored(self, study: Study) -> Stored:
        """What is there already of a study that may be entered under its name."""
        query = select(runs.c.hash, runs.c.state).join(studies).where(studies.c.name == study.name)
        with self.reading() as connection:
            there = {key: state for key, state in connection.execute(query)}
        if not there:
            return NOTHING
        given = {run.hash for run in study.runs}
        ended = frozenset(key for key in given & there.keys() if there[key] in (DONE, DIVERGED))
        return Stored(ended, len(there.keys() - given))

    def unwanted(self, study: int) -> int:
        """How many runs of a study are there that it no longer asks for."""
        gone = select(func.count()).where(runs.c.study == study, runs.c.wanted.is_(False))
        with self.reading() as connection:
            return connection.scalar(gone)

    def stamp(self, study: int) -> str:
        """Something that is another when what is stored of the results of a study is."""
        query = select(runs.c.state, func.count(), func.max(runs.c.ended), func.sum(runs.c.place)).where(
            runs.c.study == study, runs.c.wanted
        )
        with self.reading() as connection:
            source = connection.scalar(select(studies.c.source).where(studies.c.id == study))  # the names stand there
            found = sorted(map(tuple, connection.execute(query.group_by(runs.c.state))), key=repr)
        return repr((hash(source), found))

    def studies(self) -> list:
        """id, name, question, source, created of each, the oldest first."""
        with self.reading() as connection:
            return connection.execute(select(studies).order_by(studies.c.created)).all()

    def counts(self, of: list[int]) -> dict[str, tuple[int, float, float]]:
        """State -> (runs that are asked for, seconds on one core that they are expected to take, and the rest of them)"""
        rest = func.sum(runs.c.expected * (runs.c.steps - runs.c.step) / runs.c.steps)
        wanted = and_(runs.c.study.in_(of), runs.c.wanted)
        query = select(runs.c.state, func.count(), func.sum(runs.c.expected), rest).where(wanted)
        with self.reading() as connection:
            found = connection.execute(query.group_by(runs.c.state))
            return {state: (many, float(whole), float(left)) for state, many, whole, left in found}

    def runs(self, study: int, *states: str, spec: bool = True) -> list:
        """The runs of a study that are asked for, in its order, of these states or all; every column but those that say
        nothing to a reader, and spec, which is most of it, only if asked for."""
        columns = [column for column in runs.c if column.name not in HIDDEN and (spec or column.name != "spec")]
        query = select(*columns).where(runs.c.study == study, runs.c.wanted).order_by(runs.c.place)
        query = query.where(runs.c.state.in_(states)) if states else query
        with self.reading() as connection:
            return connection.execute(query).all()

    def specs(self, study: int) -> dict[tuple[str, str], str]:
        """(task, variant) -> the spec of one of its runs; those of the others differ in the seed alone."""
        asked = and_(runs.c.study == study, runs.c.wanted)
        first = select(func.min(runs.c.id)).where(asked).group_by(runs.c.task, runs.c.variant)
        with self.reading() as connection:
            found = connection.execute(select(runs.c.task, runs.c.variant, runs.c.spec).where(runs.c.id.in_(first)))
            return {(name, variant): spec for name, variant, spec in found}

    def results(self, study: int) -> dict[int, float]:
        """Run -> accuracy in its last row, of those that were trained to the end and did not diverge."""
        end = and_(rows.c.run == runs.c.id, rows.c.step == runs.c.steps)
        done = and_(runs.c.study == study, runs.c.wanted, runs.c.state == DONE)
        with self.reading() as connection:
            return dict(connection.execute(select(runs.c.id, rows.c.accuracy).join(rows, end).where(done)).all())

    def rows(self, study: int, of: list[int] | None = None) -> list:
        """(run, *Row) of every run of a study that is asked for (or of these), in the order of runs and steps."""
        columns = [rows.c.run, *(rows.c[name] for name in Row._fields)]
        query = select(*columns).join(runs).where(runs.c.study == study, runs.c.wanted)
        query = query if of is None else query.where(runs.c.id.in_(of))
        with self.reading() as connection:
            return connection.execute(query.order_by(runs.c.place, rows.c.step)).all()


def patiently(call, seconds: float | None = None):
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


def _described(study: int, place: int, run) -> dict:
    return {
        "study": study, "place": place, "wanted": True, "task": run.task, "variant": run.variant, "seed": run.seed,
        "hash": run.hash, "spec": run.spec, "steps": run.training.steps, "expected": run.expected, "state": QUEUED,
    }  # fmt: skip


def _changes(report: Report, now: float) -> dict:
    return {
        "at": report.run, "state": report.state, "heartbeat": now, "step": report.step, "seconds": report.seconds,
        "ended": None if report.state == RUNNING else now, "message": report.message, "known": report.known,
        "device": report.device,
    }  # fmt: skip


def _queue(connection, which) -> int:
    """Queue these runs again, and throw away the rows they had -> how many"""
    found = list(connection.scalars(select(runs.c.id).where(which).with_for_update()))
    for some in _portions(found):
        connection.execute(delete(rows).where(rows.c.run.in_(some)))
        connection.execute(update(runs).where(runs.c.id.in_(some)).values(state=QUEUED, **EMPTY))
    return len(found)


def _each(connection, statement, values: list[dict]):
    """Execute a statement for each of the values, of which there may be none."""
    if values:
        connection.execute(statement, values)


def _portions(numbers: list[int]):
    return (numbers[at : at + MANY] for at in range(0, len(numbers), MANY))
