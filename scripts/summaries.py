"""Compute the summaries of shipped studies again from their curves, after a change of the rule.

    python -m scripts.summaries

Writes results/*.csv. The seconds of a worker, which curves do not have, stay as they are.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from core.export.sheets import write_csv
from core.study.database.store import Store
from core.study.file import read
from core.study.imports import import_curves
from core.study.shipped import shipped, shipped_curves, study_of, table_of
from core.study.summary import read_summary
from core.study.tables import summary_with_guards


def main():
    """Compute and write the summaries of the menu `shipped` from curves; keep their seconds."""
    with TemporaryDirectory() as folder:
        store = Store(str(Path(folder) / "shipped.sqlite"))
        for name in shipped:
            study = read(study_of(name))
            import_curves(store, study, shipped_curves(name), certain=False)
            before = read_summary(table_of(name)).set_index(["task", "variant"])
            table = summary_with_guards(store, store.find(study.name))
            seconds = [before.seconds[line.task, line.variant] for line in table.itertuples()]
            write_csv(table.assign(seconds=seconds), table_of(name))
        store.close()


if __name__ == "__main__":
    main()
