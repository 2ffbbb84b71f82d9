"""Compute the summaries of shipped studies again from their curves, after a change of the rule.

    python -m scripts.summaries

Writes results/*.csv. The seconds of a worker, which curves do not have, stay as they are.
"""

from types import SimpleNamespace

from core.export.sheets import write_csv
from core.study.database.schema import DIVERGED, DONE
from core.study.file import read
from core.study.shipped import shipped, study_of, table_of
from core.study.summary import read_summary
from core.study.tables import summary_with_guards
from core.teaching.claims import shipped_curves
from core.train.match import late_loss


class ShippedRuns:
    """Runs of one shipped study, with the methods of Store that a summary needs."""

    def __init__(self, name: str):
        self.study = read(study_of(name))
        curves = shipped_curves(name)
        found = [curves.find(run) for run in self.study.runs]
        self.rows = [rows for _, rows in found]
        self.made = [file.made for file, _ in found]

    def studies(self):
        """Return the study, with its id."""
        return [SimpleNamespace(id=0, source=self.study.source)]

    def runs(self, study: int, spec: bool = True):
        """Return every run with its id, and whether it diverged.

        A file that lists several versions does not say which run has which: then it is empty.
        """
        return [
            SimpleNamespace(
                id=number,
                task=run.task,
                variant=run.variant,
                seed=run.seed,
                state=DIVERGED if rows[-1].note else DONE,
                seconds=0.0,
                known=False,
                **{key: values[0] if len(values) == 1 else "" for key, values in made.items()},
            )
            for number, (run, rows, made) in enumerate(zip(self.study.runs, self.rows, self.made))
        ]

    def specs(self, study: int) -> dict[tuple[str, str], str]:
        """Return the spec of one run for each (task, variant)."""
        return {(run.task, run.variant): run.spec for run in reversed(self.study.runs)}

    def results(self, study: int) -> dict[int, float]:
        """Return run id -> accuracy at its end, of runs that did not diverge."""
        ends = {number: rows[-1] for number, rows in enumerate(self.rows)}
        return {number: row.accuracy for number, row in ends.items() if not row.note}

    def late_losses(self, study: int) -> dict[int, float]:
        """Return run id -> late loss, of runs that did not diverge."""
        return {
            number: late_loss([(row.step, row.loss) for row in rows], run.training.steps)
            for number, (run, rows) in enumerate(zip(self.study.runs, self.rows))
            if not rows[-1].note
        }


def main():
    """Write the summaries of all shipped studies."""
    for name in shipped:
        before = read_summary(table_of(name)).set_index(["task", "variant"])
        table = summary_with_guards(ShippedRuns(name), 0)
        seconds = [before.seconds[line.task, line.variant] for line in table.itertuples()]
        write_csv(table.assign(seconds=seconds), table_of(name))


if __name__ == "__main__":
    main()
