"""The store of studies: what is to be trained, by whom it is being trained, and every number that came out.

Several processes may use it at once. A run belongs to the owner that has claimed it; whoever has lost it, because it gave
no sign of life for too long, can write nothing more of it. A queued run has no rows: so none is ever there twice.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, and_, bindparam, delete, func, insert, or_, select, update

from core.settings.process import alive, versions
from core.study.database.queries import Queries
from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING, STOPPED, clock, rows, runs, studies
from core.study.plan import Run, Study
from core.train import Row

MANY = 1000  # values in one IN (…)
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


class Store(Queries):
    """What is to be done, who does it, and what has come of it, as it is written; what there is, as Queries.

    Raises StoreError, in words, for a database that cannot be used; Busy where that may pass.
    """

    def enrol(self, study: Study) -> Enrolled:
        """Enter a study, or what is new in it. Runs that it no longer asks for stay, and are no longer counted."""
        with self.writing() as connection:
            number = connection.scalar(select(studies.c.id).where(studies.c.name == study.name).with_for_update())
            values = {"question": study.question, "source": study.source}
            if number is None:
                created = insert(studies).values(name=study.name, created=clock(), **values)
                number = connection.execute(created).inserted_primary_key[0]  # type: ignore[index]  # of one line there is one
            connection.execute(update(studies).where(studies.c.id == number).values(values))
            present = connection.execute(select(runs.c.hash, runs.c.state).where(runs.c.study == number))
            there = {key: state for key, state in present}
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

    def requeue(self, study: int, states: Iterable[str] = (STOPPED, FAILED)) -> int:
        """Have the runs of a study that were stopped, or failed, run again -> how many."""
        with self.writing() as connection:
            return _queue(connection, and_(runs.c.study == study, runs.c.state.in_(states), runs.c.wanted))

    def stop(self, study: int) -> int:
        """Have nothing more of a study trained, whoever is at it: they see it when they next store something -> how many."""
        going = and_(runs.c.study == study, runs.c.state.in_((QUEUED, RUNNING)))
        with self.writing() as connection:
            return connection.execute(update(runs).where(going).values(state=STOPPED, ended=clock())).rowcount

    def delete(self, study: int) -> None:
        """Forget a study and all its numbers; whoever trains it stops."""
        with self.writing() as connection:
            connection.execute(delete(studies).where(studies.c.id == study))

    def reclaim(self, of: list[int], owner: str, held: Iterable[int]) -> int:
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

    def claim(
        self, study: int, owner: str, most: int, trained_with: dict[str, str] | None = None
    ) -> list[tuple[int, str, str, str]]:
        """Take up to so many queued runs -> [(run, task, variant, spec), …]. No two owners get the same.

        trained_with: versions() of the process that is to train them, where it is not this one.
        """
        queued = and_(runs.c.study == study, runs.c.state == QUEUED, runs.c.wanted)
        columns = runs.c.id, runs.c.task, runs.c.variant, runs.c.spec
        first = select(*columns).where(queued).order_by(runs.c.place).limit(most)
        with self.writing() as connection:
            taken = connection.execute(first.with_for_update(skip_locked=True)).all()
            now = connection.execute(select(clock())).scalar_one()
            values = {"state": RUNNING, "owner": owner, "heartbeat": now, "started": now, "tries": runs.c.tries + 1}
            for some in _portions([each.id for each in taken]):
                connection.execute(
                    update(runs).where(runs.c.id.in_(some)).values(**values, **(trained_with or versions()))
                )
        return [(each.id, each.task, each.variant, each.spec) for each in taken]

    def keep(self, owner: str, reports: list[Report]) -> set[int]:
        """Store what is new of these runs, and that their owner lives -> those that are no longer its own.

        May be repeated with the same reports when it is not known whether it has succeeded.
        """
        given = {each.run: each for each in reports}
        numbers: set[int] = set()
        stored: dict[int, int] = {}
        with self.writing() as connection:
            for some in _portions(list(given)):
                held = and_(runs.c.id.in_(some), runs.c.owner == owner, runs.c.state == RUNNING)
                numbers.update(connection.scalars(select(runs.c.id).where(held).with_for_update()))
                newest = select(rows.c.run, func.max(rows.c.step)).where(rows.c.run.in_(some)).group_by(rows.c.run)
                stored |= {run: step for run, step in connection.execute(newest)}
            new = [(run, row) for run in numbers for row in given[run].rows if row.step > stored.get(run, 0)]
            _each(connection, insert(rows), [{"run": run, **row._asdict()} for run, row in new])
            now = connection.execute(select(clock())).scalar_one()
            changed = [_changes(given[run], now) for run in numbers]
            names = [name for name in _changes(Report(0, ""), now) if name != "at"]
            values: dict[str, Any] = {name: bindparam(name) for name in names}
            _each(connection, update(runs).where(runs.c.id == bindparam("at")).values(values), changed)
        return set(given) - numbers


def _described(study: int, place: int, run: Run) -> dict[str, Any]:
    return {
        "study": study, "place": place, "wanted": True, "task": run.task, "variant": run.variant, "seed": run.seed,
        "hash": run.hash, "spec": run.spec, "steps": run.training.steps, "expected": run.expected, "state": QUEUED,
    }  # fmt: skip


def _changes(report: Report, now: float) -> dict[str, Any]:
    return {
        "at": report.run, "state": report.state, "heartbeat": now, "step": report.step, "seconds": report.seconds,
        "ended": None if report.state == RUNNING else now, "message": report.message, "known": report.known,
        "device": report.device,
    }  # fmt: skip


def _queue(connection: Connection, which: ColumnElement[bool]) -> int:
    """Queue these runs again, and throw away the rows they had -> how many"""
    numbers = list(connection.scalars(select(runs.c.id).where(which).with_for_update()))
    for some in _portions(numbers):
        connection.execute(delete(rows).where(rows.c.run.in_(some)))
        connection.execute(update(runs).where(runs.c.id.in_(some)).values(state=QUEUED, **EMPTY))
    return len(numbers)


def _each(connection: Connection, statement: Executable, values: list[dict[str, Any]]) -> None:
    """Execute a statement for each of the values, of which there may be none."""
    if values:
        connection.execute(statement, values)


def _portions(numbers: list[int]) -> Iterator[list[int]]:
    return (numbers[at : at + MANY] for at in range(0, len(numbers), MANY))
