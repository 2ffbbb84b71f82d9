"""The commands: what was given to each on the command line -> the code with which it ends."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from core.export.sheets import slug, write_csv
from core.settings.wording import count
from core.study import file
from core.study.command.agreement import agreement
from core.study.command.codes import COMPLETE, INCOMPLETE
from core.study.command.state import SHOWN, state_of
from core.study.command.train import train
from core.study.curves import read_curves, write_curves
from core.study.database.connection import NoStore
from core.study.database.schema import ENDED
from core.study.database.store import Store
from core.study.database.stored import made_of
from core.study.picture import STYLE, matrix_svg
from core.study.plan import NOTHING, Study, StudyError, told
from core.study.summary import read_summary
from core.study.tables import export, judged_table
from core.train import Row
from core.workers.pool import worker_count


def plan(given: Namespace) -> int:
    workers = given.workers or worker_count()
    studies = [read(path) for path in given.studies]
    try:
        store = Store(given.database, create=False)
    except NoStore:
        store = None
    for study in studies:
        print(told(study, workers, store.stored(study) if store else NOTHING))
    return COMPLETE


def run(given: Namespace) -> int:
    return train(given, [read(path) for path in given.studies])


def resume(given: Namespace) -> int:
    store = Store(given.database, create=False)
    named = [read(each) if Path(each).is_file() else found(store, each) for each in given.studies]
    store.close()
    return train(given, named)


def status(given: Namespace) -> int:
    store = Store(given.database, create=False)
    wanted = [found(store, each) for each in given.studies] or [each.id for each in store.studies()]
    complete = [state_of(store, number) for number in wanted]
    if not wanted:
        print(f"There are no studies in {store.name}.")
    return COMPLETE if all(complete) else INCOMPLETE


def export_(given: Namespace) -> int:
    folders = {kind: folder for kind, folder in (("csv", given.csv), ("parquet", given.parquet)) if folder}
    alone = given.summary or given.picture or given.curves
    if not folders and not alone:
        raise StudyError(
            ["Say where to: --csv FOLDER, --parquet FOLDER, --summary FILE, --picture FILE or --curves FILE."]
        )
    if alone and len(given.studies) > 1:
        raise StudyError(["--summary, --picture and --curves are of one study: name one."])
    store = Store(given.database, create=False)
    numbers = list(dict.fromkeys(found(store, each) for each in given.studies))
    if given.summary or given.picture:
        _write(judged_table(store, numbers[0]), given)
    if given.curves:
        _write_curves(store, numbers[0], Path(given.curves), [Path(each) for each in given.besides])
    names = {each.id: each.name for each in store.studies()}
    for number in numbers:
        for kind, folder in folders.items():
            into = Path(folder) / slug(names[number], number) if len(numbers) > 1 else folder
            print(*export(store, number, into, kind), sep="\n")
    return COMPLETE


def _write(summary: pd.DataFrame, given: Namespace) -> None:
    """The summary as a table, as a picture, or both."""
    writers: dict[str | None, Callable[[], str | None]] = {
        given.summary: lambda: write_csv(summary),
        given.picture: lambda: matrix_svg(summary, style=STYLE) + "\n",
    }
    for path, text in writers.items():
        if path:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text() or "", encoding="utf-8")
            print(path)


def _write_curves(store: Store, study: int, path: Path, besides: list[Path]) -> None:
    """Write every row of every run that has its result and stands in none of the files besides, and what made them."""
    elsewhere = {key for file in besides for key in read_curves(file).hashes()}
    runs = {run.id: run for run in store.runs(study, *ENDED, spec=False) if run.hash not in elsewhere}
    rows: dict[str, list[Row]] = {}
    for number, *row in store.rows(study, list(runs)):
        rows.setdefault(runs[number].hash, []).append(Row(*row))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_curves(path, rows, made_of(list(runs.values())))
    print(path)


def check(given: Namespace) -> int:
    store = Store(given.database, create=False)
    now = judged_table(store, found(store, given.studies[0]))
    agreed = agreement(now, read_summary(given.before))
    said = f"{agreed.same} the same to the last digit, {len(agreed.off)} not within the interval they had"
    said += f", {agreed.empty} without a value in either" * bool(agreed.empty)
    print(f"{count(agreed.cells, 'cell')}: {said}.", *agreed.off, sep="\n")
    for names, there, lacking in (
        (agreed.new, "this study", given.before),
        (agreed.gone, given.before, "this study"),
    ):
        if names:
            first = "; ".join(names[:SHOWN]) + "; …" * (len(names) > SHOWN)
            verb = "is" if len(names) == 1 else "are"
            print(f"{count(len(names), 'cell')} of {there} {verb} not in {lacking}: {first}.")
    return COMPLETE if agreed.whole else INCOMPLETE


def read(path: str) -> Study:
    """The study of a file. Raises StudyError with the file's name before every mistake."""
    try:
        return file.read(path)
    except StudyError as error:
        raise StudyError([f"{path}: {problem}" for problem in error.problems]) from None


def found(store: Store, name: str) -> int:
    """The number of the study of a file, or of that name."""
    name = read(name).name if Path(name).is_file() else name
    number = store.find(name)
    if number is None:
        known = ", ".join(f"“{each.name}”" for each in store.studies()) or "none"
        raise StudyError([f"“{name}” is no file, and no study in {store.name}; there: {known}."])
    return number
