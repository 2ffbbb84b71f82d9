"""What is in the store of studies."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy
from sqlalchemy import and_, func, select

from core.study.database.opening import Database
from core.study.database.schema import DIVERGED, DONE, rows, runs, studies
from core.study.plan import NOTHING, Stored, Study
from core.train import Row
from core.train.search import late_loss

Line = sqlalchemy.Row[*tuple[Any, ...]]  # of a result, with its columns as attributes
HIDDEN = ("study", "place", "wanted")  # columns of a run that say nothing to a reader


class Queries(Database):
    """A store, as far as it is read."""

    def find(self, name: str) -> int | None:
        """The number of a study."""
        with self.reading() as connection:
            number: int | None = connection.scalar(select(studies.c.id).where(studies.c.name == name))
            return number

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
            return connection.scalar(gone) or 0

    def stamp(self, study: int) -> str:
        """Something that is another when what is stored of the results of a study is."""
        query = select(runs.c.state, func.count(), func.max(runs.c.ended), func.sum(runs.c.place)).where(
            runs.c.study == study, runs.c.wanted
        )
        with self.reading() as connection:
            source = connection.scalar(select(studies.c.source).where(studies.c.id == study))  # the names stand there
            states = sorted(map(tuple, connection.execute(query.group_by(runs.c.state))), key=repr)
        return repr((hash(source), states))

    def studies(self) -> Sequence[Line]:
        """id, name, question, source, created of each, the oldest first."""
        with self.reading() as connection:
            return connection.execute(select(studies).order_by(studies.c.created)).all()

    def counts(self, of: list[int]) -> dict[str, tuple[int, float, float]]:
        """State -> (runs that are asked for, seconds on one core that they are expected to take, and the rest of them)"""
        rest = func.sum(runs.c.expected * (runs.c.steps - runs.c.step) / runs.c.steps)
        wanted = and_(runs.c.study.in_(of), runs.c.wanted)
        query = select(runs.c.state, func.count(), func.sum(runs.c.expected), rest).where(wanted)
        with self.reading() as connection:
            states = connection.execute(query.group_by(runs.c.state))
            return {state: (many, float(whole), float(left)) for state, many, whole, left in states}

    def runs(self, study: int, *states: str, spec: bool = True) -> Sequence[Line]:
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
            lines = connection.execute(select(runs.c.task, runs.c.variant, runs.c.spec).where(runs.c.id.in_(first)))
            return {(name, variant): spec for name, variant, spec in lines}

    def results(self, study: int) -> dict[int, float]:
        """Run -> accuracy in its last row, of those that were trained to the end and did not diverge."""
        end = and_(rows.c.run == runs.c.id, rows.c.step == runs.c.steps)
        done = and_(runs.c.study == study, runs.c.wanted, runs.c.state == DONE)
        with self.reading() as connection:
            return dict(connection.execute(select(runs.c.id, rows.c.accuracy).join(rows, end).where(done)).all())

    def late_losses(self, study: int) -> dict[int, float]:
        """Run -> core.train.search.late_loss, of those that were trained to the end and did not diverge."""
        late = and_(rows.c.run == runs.c.id, 10 * rows.c.step > 9 * runs.c.steps)
        done = and_(runs.c.study == study, runs.c.wanted, runs.c.state == DONE)
        found: dict[tuple[int, int], list[tuple[int, float]]] = {}
        with self.reading() as connection:
            query = select(runs.c.id, runs.c.steps, rows.c.step, rows.c.loss).join(rows, late).where(done)
            for run, steps, step, loss in connection.execute(query.order_by(rows.c.step)):
                found.setdefault((run, steps), []).append((step, loss))
        return {run: late_loss(losses, steps) for (run, steps), losses in found.items()}

    def rows(self, study: int, of: list[int] | None = None) -> Sequence[Line]:
        """(run, *Row) of every run of a study that is asked for (or of these), in the order of runs and steps."""
        columns = [rows.c.run, *(rows.c[name] for name in Row._fields)]
        query = select(*columns).join(runs).where(runs.c.study == study, runs.c.wanted)
        query = query if of is None else query.where(runs.c.id.in_(of))
        with self.reading() as connection:
            return connection.execute(query.order_by(runs.c.place, rows.c.step)).all()
