"""Command line for studies: python -m core.study COMMAND (--help lists the commands).

Exit codes: 0 every run has its result (or diverged); 1 some have none, or (check) do not agree; 2 a
mistake in the file or the command; 3 the store or the cluster cannot be used; 128 + the signal's
number after Ctrl-C or a request to end.
"""

import argparse
import math
import shutil
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from core.export.sheets import slug, write_csv
from core.measure.power import LEAST_SEEDS
from core.measure.verdicts import DIFFERENCE
from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.settings.wording import count
from core.study import file
from core.study.conditions import (
    CONDITIONS,
    Conditions,
    conditions_of,
    describe_mixed_tasks,
    find_odd_runs,
)
from core.study.curves import read_curves, write_curves
from core.study.database.connection import (
    DEFAULT,
    VARIABLE,
    FullError,
    NoStoreError,
    StoreError,
    patiently,
)
from core.study.database.schema import DIVERGED, DONE, ENDED, FAILED, QUEUED, RUNNING
from core.study.database.store import Store, progress_of
from core.study.imports import import_curves
from core.study.ladder import (
    RULE,
    Ladder,
    count_ladders,
    describe_ladder,
    describe_verdict,
    shipped_ladders,
    stored_ladders,
)
from core.study.looks import enrol_needed, find_look
from core.study.picture import STYLE, count_verdicts, describe_cell, matrix_svg, shown_name
from core.study.plan import (
    NOTHING,
    NULL_ARMS,
    Study,
    StudyError,
    describe_plan,
    describe_stored,
    read_machine,
)
from core.study.report import report_html, shipped_report
from core.study.runner import Progress, Runner
from core.study.shipped import shipped, shipped_curves, table_of
from core.study.summary import lines, read_summary
from core.study.tables import export, find_source, made_of, rows_of, summary_with_guards
from core.study.verdict import (
    Document,
    has_missing_runs,
    shipped_document,
    study_document,
    write_document,
)
from core.train.budget import format_duration
from core.workers.cluster import ClusterError, ClusterLostError, create_pool
from core.workers.job import WorkerPool
from core.workers.pool import worker_count

COMPLETE, INCOMPLETE, MISTAKE, NO_STORE = range(4)  # exit codes
SHOWN = 10  # failed runs of which the reason is printed
SLOW = 1.0  # seconds of ending after which it is said
WIDTH = 20  # signs of the bar itself
WORKERS_WAIT = 60.0  # seconds in which a cluster must have a worker that says its versions
EVERY = 30.0  # seconds between two lines of progress where there is no terminal


def main(arguments: list[str] | None = None) -> int:
    """Run a command line (None: sys.argv's); return the exit code; SystemExit if not parsed."""
    arguments_given = parser().parse_args(arguments)
    try:
        code: int = arguments_given.call(arguments_given)
        return code
    except StudyError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return MISTAKE
    except StoreError as error:
        advice = " Stored results are safe: free some space and run the same command again."
        print(f"{error}{advice if isinstance(error, FullError) else ''}", file=sys.stderr)
        return NO_STORE
    except ClusterError as error:
        print(error, file=sys.stderr)
        return NO_STORE if isinstance(error, ClusterLostError) else MISTAKE
    except OSError as error:  # of a file that was named in the command
        print(f"{error.filename or 'A file'}: {error.strerror or error}.", file=sys.stderr)
        return MISTAKE


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with a subparser for each command."""
    arguments = argparse.ArgumentParser(
        "python -m core.study", description="Train a study in the background and store its results."
    )
    commands = arguments.add_subparsers(required=True, metavar="COMMAND")

    def add(
        call: Callable[[Namespace], int], help: str, studies: str | int, trains: bool = False
    ) -> Any:
        command = commands.add_parser(call.__name__.rstrip("_"), help=help, description=help)
        command.set_defaults(call=call)
        description = "the file of a study" + (
            "" if call in (run, plan, import_) else ", or its name in the store"
        )
        command.add_argument("studies", nargs=studies, metavar="STUDY", help=description)
        where = (
            f"address of the store, or the path of a SQLite file (else {VARIABLE}, else {DEFAULT})"
        )
        command.add_argument("--database", metavar="URL", help=where)
        if trains:
            words = (
                "worker processes (default ABLATION_WORKERS, else one per core up to two); on a"
                " cluster (DASK_SCHEDULER_ADDRESS) the maximum number of threads (default all)"
            )
            command.add_argument("--workers", type=_count, metavar="N", help=words)
        return command

    add(
        plan,
        "show what a study would train and how long it takes, without training",
        "+",
        trains=True,
    )
    train_missing = (
        "train the missing runs of a study; after Ctrl-C stored results stay, and unfinished runs "
        "(at most two per worker) start again"
    )
    add(run, train_missing, "+", trains=True)
    add(resume, "continue a study, from its file or from the store", "+", trains=True)
    add(
        import_,
        "store the results of built-in studies, to train only what they lack; runs of which it is"
        " not known what trained them are left out",
        "+",
    )
    train_odd = (
        "train again the runs that differ from the workers in versions or device; this removes"
        " their old results"
    )
    add(rerun, train_odd, "+", trains=True)
    add(status, "show the progress of studies", "*")
    write_tables = (
        "write the tables runs, rows and summary, and the study's file; several studies each get"
        " their own folder"
    )
    command = add(export_, write_tables, "+")
    command.add_argument("--csv", metavar="DIR", help="as CSV into this folder")
    command.add_argument("--parquet", metavar="DIR", help="as Parquet into this folder")
    command.add_argument(
        "--summary", metavar="FILE", help="the summary alone, as CSV (of one study)"
    )
    command.add_argument(
        "--picture", metavar="FILE", help="matrix of variants and tasks, as SVG (of one study)"
    )
    command.add_argument(
        "--report",
        metavar="FILE",
        help="question, rule, pictures and tables on one HTML page (of one study); also of"
        " built-in studies, by name",
    )
    command.add_argument(
        "--curves", metavar="FILE", help="learning curves of all runs, as NumPy .npz (of one study)"
    )
    besides = "curves of other studies, whose runs are skipped in --curves"
    command.add_argument("--besides", nargs="*", default=[], metavar="FILE", help=besides)
    command = add(check, "compare a study with an earlier exported summary", 1)
    command.add_argument(
        "--with", dest="before", metavar="FILE", required=True, help="the summary, as CSV"
    )
    print_verdicts = "print the verdict on each comparison; also of built-in studies, by name"
    command = add(verdict, print_verdicts, 1)
    words = "as one JSON document (described in core/study/verdict.schema.json)"
    command.add_argument("--json", action="store_true", help=words)
    return arguments


def _count(text: str) -> int:
    """Parse a number of workers, 1 to 1024; raise ArgumentTypeError for anything else."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1024):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to 1024")
    return int(text)


# Commands: from what was given on the command line to the exit code


def plan(arguments: Namespace) -> int:
    """Run the command plan: print what study files would still train, and how long; return 0."""
    workers = arguments.workers or worker_count()
    studies = [read_study(path) for path in arguments.studies]
    try:
        store = Store(arguments.database, create=False)
    except NoStoreError:
        store = None
    for study in studies:
        print(describe_plan(study, workers, store.stored(study) if store else NOTHING))
    return COMPLETE


def run(arguments: Namespace) -> int:
    """Run the command run: train files' missing runs; 0, 1 if some lack results, 128 + signal."""
    return train(arguments, [read_study(path) for path in arguments.studies])


def resume(arguments: Namespace) -> int:
    """Run the command resume: train missing runs of files or stored names; return as run()."""
    store = Store(arguments.database, create=False)
    studies = [
        read_study(name) if Path(name).is_file() else find_study_id(store, name)
        for name in arguments.studies
    ]
    store.close()
    return train(arguments, studies)


def import_(arguments: Namespace) -> int:
    """Run the command import: store shipped results of built-in studies; train nothing, return 0.

    Runs without a curve are stored as queued.
    """
    store = Store(arguments.database)
    for path in arguments.studies:
        study = read_study(path)
        stored = import_curves(store, study, shipped_curves(Path(path).stem))
        print(f"{study.name}: {count(stored, 'result')} stored in {store.name}.")
    return COMPLETE


def rerun(arguments: Namespace) -> int:
    """Run the command rerun: retrain runs whose conditions differ from the workers'; as run()."""
    store = Store(arguments.database, create=False)
    studies = [find_study_id(store, name) for name in arguments.studies]
    store.close()
    return train(arguments, studies, again=True)


def status(arguments: Namespace) -> int:
    """Run the command status: print studies' progress, by default of all; return 1 if incomplete.

    A failed run is incomplete, a diverged one is not.
    """
    store = Store(arguments.database, create=False)
    numbers = [find_study_id(store, name) for name in arguments.studies] or [
        study.id for study in store.studies()
    ]
    complete = [print_state(store, number) for number in numbers]
    if not numbers:
        print(f"There are no studies in {store.name}.")
    return COMPLETE if all(complete) else INCOMPLETE


def export_(arguments: Namespace) -> int:
    """Run the command export: write only the outputs chosen; return 0, StudyError for none."""
    folders = {
        kind: folder
        for kind, folder in (("csv", arguments.csv), ("parquet", arguments.parquet))
        if folder
    }
    of_one = {"summary", "picture", "report", "curves"} & {
        name for name, value in vars(arguments).items() if value
    }
    if not folders and not of_one:
        where = (
            "--csv FOLDER, --parquet FOLDER, --summary FILE, --picture FILE, --report FILE or"
            " --curves FILE"
        )
        raise StudyError([f"Choose an output: {where}."])
    if of_one and len(arguments.studies) > 1:
        options = "--summary, --picture, --report and --curves"
        raise StudyError([f"{options} work on a single study: name exactly one."])
    if of_one == {"report"} and not folders:
        name = arguments.studies[0]
        if _is_only_built_in(name, arguments.database):
            _write_text(arguments.report, shipped_report(name))
            return COMPLETE
    store = Store(arguments.database, create=False)
    numbers = list(dict.fromkeys(find_study_id(store, name) for name in arguments.studies))
    if of_one:
        _write_files_of_one(arguments, store, numbers[0])
    names = {study.id: study.name for study in store.studies()}
    for number in numbers:
        for kind, folder in folders.items():
            into = Path(folder) / slug(names[number], number) if len(numbers) > 1 else folder
            print(*export(store, number, into, kind), sep="\n")
        print_mixed(store, number, sys.stderr)  # as the output is a list of paths
    return COMPLETE


def _write_files_of_one(arguments: Namespace, store: Store, study_id: int) -> None:
    """Write a study's summary, picture, report and curves, each if its option has a path.

    Print the path of each file.
    """
    if arguments.summary or arguments.picture:
        summary = summary_with_guards(store, study_id)
        if arguments.summary:
            _write_text(arguments.summary, write_csv(summary) or "")
        if arguments.picture:
            _write_text(arguments.picture, matrix_svg(summary, style=STYLE) + "\n")
    if arguments.report:
        _write_text(arguments.report, report_html(store, study_id))
    if arguments.curves:
        elsewhere = {key for other in arguments.besides for key in read_curves(other).hashes()}
        runs = [
            run for run in store.runs(study_id, *ENDED, spec=False) if run.hash not in elsewhere
        ]
        rows = rows_of(store, study_id, runs)
        Path(arguments.curves).parent.mkdir(parents=True, exist_ok=True)
        write_curves(
            arguments.curves,
            {run.hash: rows[run.id] for run in runs if run.id in rows},
            made_of(runs),
        )
        print(arguments.curves)


def _write_text(path: str, text: str) -> None:
    """Write a text file (UTF-8), creating its folder or replacing it, and print its path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    print(path)


def check(arguments: Namespace) -> int:
    """Run the command check: compare with a CSV summary; 1 if it or a null arm differs, else 0."""
    store = Store(arguments.database, create=False)
    number = find_study_id(store, arguments.studies[0])
    now = summary_with_guards(store, number)
    agreed = compare_summaries(now, read_summary(arguments.before))
    summary = f"{agreed.same} identical, {len(agreed.off)} outside their earlier interval"
    summary += f", {agreed.empty} without a value in both" if agreed.empty else ""
    print(f"{count(agreed.cells, 'cell')}: {summary}.", *agreed.off, sep="\n")
    this_name = "this study"
    other_name = arguments.before
    for names, present, lacking in (
        (agreed.new, this_name, other_name),
        (agreed.missing, other_name, this_name),
    ):
        if names:
            first = "; ".join(names[:SHOWN]) + ("; …" if len(names) > SHOWN else "")
            verb = "is" if len(names) == 1 else "are"
            print(f"{count(len(names), 'cell')} of {present} {verb} not in {lacking}: {first}.")
    print_mixed(store, number)
    wrong = [
        line for line in lines(now) if line.variant in NULL_ARMS and line.verdict == DIFFERENCE
    ]
    for line in wrong:
        print(
            f"{line.task}: the null arm “{line.variant}” differs from the baseline"
            f" (p = {line.p:.2g}), although it is the same model. Do not trust the differences of"
            " this task."
        )
    return COMPLETE if agreed.agrees and not wrong else INCOMPLETE


def verdict(arguments: Namespace) -> int:
    """Run the command verdict: print verdicts as text or JSON; return 1 if runs are missing."""
    name = arguments.studies[0]
    table, document, ladders = _read_verdicts(name, arguments.database)
    if arguments.json:
        print(write_document(document), end="")
    else:
        print(f"{document['study']}: {document['question']}")
        print(count_verdicts(table), document["rule"]["words"], sep="\n")
        is_null_arm = table.variant.isin(NULL_ARMS)
        print(*map(describe_cell, lines(table[~is_null_arm])), sep="\n")
        if any(is_null_arm):
            print("Null arms:", *map(describe_cell, lines(table[is_null_arm])), sep="\n")
        if ladders:
            print("Effects by size:", count_ladders(ladders), RULE, sep="\n")
        for ladder in ladders:
            words = f"{describe_verdict(ladder)}. {describe_ladder(ladder)}"
            print(f"{shown_name(ladder.variant)}, {ladder.task}: {words}")
    return INCOMPLETE if has_missing_runs(document) else COMPLETE


def _read_verdicts(name: str, database: str | None) -> tuple[pd.DataFrame, Document, list[Ladder]]:
    """Return a study's summary, verdicts and ladders, stored or else built-in; StudyError if none.

    [] for the ladders of a study at one size.
    """
    if _is_only_built_in(name, database):
        return read_summary(table_of(name)), shipped_document(name), shipped_ladders(name)
    store = Store(database, create=False)
    try:
        number = find_study_id(store, name)
    except StudyError as error:
        built_in = f"Built-in studies: {', '.join(shipped)}."
        raise StudyError([*error.problems, built_in]) from None
    ladders = stored_ladders(store, number, find_source(store, number))
    return summary_with_guards(store, number), study_document(store, number), ladders


def _is_only_built_in(name: str, database: str | None) -> bool:
    """Return whether a name is that of a built-in study, and of none in the store."""
    if name not in shipped:
        return False
    try:
        store = Store(database, create=False)
    except NoStoreError:
        return True
    with closing(store):
        return store.find(name) is None


def read_study(path: str) -> Study:
    """Read a study's file; StudyError (the file's name before every mistake) or OSError."""
    try:
        return file.read(path)
    except StudyError as error:
        raise StudyError([f"{path}: {problem}" for problem in error.problems]) from None


def find_study_id(store: Store, name: str) -> int:
    """Return a stored study's id, given its name or a file that states it; else StudyError."""
    name = read_study(name).name if Path(name).is_file() else name
    number = store.find(name)
    if number is None:
        names = ", ".join(f"“{study.name}”" for study in store.studies()) or "none"
        raise StudyError(
            [f"“{name}” is neither a file nor a study in {store.name}; studies there: {names}."]
        )
    return number


def print_state(store: Store, study_id: int) -> bool:
    """Print a study's progress; return whether all runs are done or diverged; False if deleted."""
    name = next((study.name for study in store.studies() if study.id == study_id), None)
    if name is None:
        print("The study has been deleted in the meantime.")
        return False
    # before anything is printed
    now = progress_of(store, study_id)
    failed = store.runs(study_id, FAILED, spec=False)
    print(f"{name}: {now.describe()}.")
    look = find_look(store, study_id)
    if look:
        print(f"  {look.describe(worker_count())}")
    if now.lost:
        lost = count(now.lost, "running run")
        print(f"  {lost} interrupted, because the process ended; resume reruns them.")
    for run in failed[:SHOWN]:
        print(f"  {run.task}, {run.variant}, seed {run.seed} failed: {run.message}")
    if len(failed) > SHOWN:
        print(f"  … and {len(failed) - SHOWN} more.")
    if now.open and not now.running:
        print(f"  To continue: python -m core.study resume {name!r}")
    print_mixed(store, study_id)
    return now.complete


def print_mixed(store: Store, study_id: int, stream: TextIO | None = None) -> None:
    """Print which conditions a study mixes within a task, to stdout by default; nothing if none."""
    mixed = describe_mixed_tasks(store.runs(study_id, *ENDED, spec=False))
    if not mixed:
        return
    name = next((study.name for study in store.studies() if study.id == study_id), "")
    command = f"python -m core.study rerun {name!r}"
    print(
        f"  Comparisons mix conditions: {mixed}. To train the odd runs again: {command}",
        file=stream,
    )


# Training, with a progress bar, until all is done or a signal comes


def train(arguments: Namespace, studies: Sequence[Study | int], again: bool = False) -> int:
    """Train missing (`again`: odd) runs with a bar; return 0, 1 if any lacks results, 128 + n.

    Args:
        arguments: The command line.
        studies: Studies read from files, or ids of studies in the store.
        again: Whether to queue the odd runs of stored studies, not the missing ones.
    """
    queue: Callable[[Store, WorkerPool, Any], int] = _queue_odd_runs if again else _queue_runs
    with closing(create_pool(arguments.workers)) as workers:
        for study in studies:
            if isinstance(study, Study):
                _require_machine(workers, study.name, study.runs[0].machine)
        store = Store(arguments.database)
        numbers = list(dict.fromkeys(queue(store, workers, study) for study in studies))
        begun = time.monotonic()
        with _catch_end_signals() as signals:
            if {QUEUED, RUNNING} & set(patiently(lambda: store.counts(numbers))):
                _train_with_bar(Runner(store, numbers, workers), signals)
                print(f"After {format_duration(time.monotonic() - begun)}:", flush=True)
        complete = [patiently(partial(print_state, store, number)) for number in numbers]
        store.close()
        if signals:
            return 128 + signals[0]
        return COMPLETE if all(complete) else INCOMPLETE


def _require_machine(workers: WorkerPool, name: str, machine: Machine) -> None:
    """Raise StudyError if the workers will never have the machine; a cluster accepts every one."""
    try:
        workers.require(machine)
    except ConfigError as error:
        raise StudyError([f"{name}: {error}"]) from None


def _queue_runs(store: Store, workers: WorkerPool, study: Study | int) -> int:
    """Store a study if given, queue its runs without a result, failed ones too; return its id.

    Raises StudyError for a machine that the workers never have.

    Args:
        store: The store.
        workers: The workers that are to train it.
        study: A study read from a file, or the id of one in the store.
    """
    if isinstance(study, Study):
        print(f"{study.name}: {count(len(study.runs), 'run')}, stored in {store.name}.")
        if study.notes:
            print(
                f"  {count(len(study.notes), 'variant')} skipped; python -m core.study plan shows"
                " which and why."
            )
        enrolled = patiently(lambda: enrol_needed(store, study))
        for sentence in describe_stored(enrolled.ended, enrolled.unwanted):
            print(f"  {sentence}")
        number = enrolled.study
    else:
        number = study
        name = next(line.name for line in patiently(store.studies) if line.id == number)
        spec = next(
            iter(patiently(lambda: store.specs(number)).values()), None
        )  # all runs are for one machine
        if spec:
            _require_machine(workers, name, read_machine(spec))
    requeued = patiently(lambda: store.requeue(number))
    if requeued:
        print(f"  {count(requeued, 'run')} that had stopped or failed will be rerun.")
    return number


def _queue_odd_runs(store: Store, workers: WorkerPool, study_id: int) -> int:
    """Requeue finished runs trained unlike here, deleting their results; return the study id.

    Here: with the versions and the device of these workers. Runs without a result stay.

    Args:
        store: The store.
        workers: The workers that are to train them.
        study_id: Id of the study.
    """
    name = next(line.name for line in patiently(store.studies) if line.id == study_id)
    specs = patiently(lambda: store.specs(study_id))
    if not specs:
        return study_id
    machine = read_machine(next(iter(specs.values())))
    _require_machine(workers, name, machine)
    here = _wait_for_conditions(workers, name, machine)
    odd = find_odd_runs(patiently(lambda: store.runs(study_id, *ENDED, spec=False)), here)
    queued = patiently(lambda: store.rerun(study_id, odd))
    words = ", ".join(f"{condition} {here[condition]}" for condition in CONDITIONS)
    print(f"{name}: {count(queued, 'run')} to train again with {words}.")
    return study_id


def _wait_for_conditions(workers: WorkerPool, name: str, machine: Machine) -> Conditions:
    """Return the conditions of the workers; wait for one up to 60 s, then StudyError."""
    end = time.monotonic() + WORKERS_WAIT
    while True:
        absent = workers.refresh_workers()
        try:
            return conditions_of(workers, machine)
        except ConfigError as error:
            if time.monotonic() > end:
                raise StudyError([f"{name}: {absent or error}"]) from None
        time.sleep(0.2)


def _train_with_bar(runner: Runner, signals: list[int]) -> None:
    """Train with a progress bar until done, or until a signal handler adds to `signals`; then stop.

    Unfinished runs are stored as stopped.
    """
    bar = Bar(sys.stderr)
    steps = runner.train()
    # Start the processes now, deaf to Ctrl-C, which goes to every process of a terminal: this one
    # ends them.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner.workers.warm()
    signal.signal(signal.SIGINT, handler)
    try:
        for progress in steps:
            bar.draw(progress)
            if signals:
                break
    finally:
        if signals:  # this process waits for its workers after the last line
            slow = threading.Timer(SLOW, bar.print_above, ["Stopping: waiting for the workers."])
            slow.daemon = True
            slow.start()
        steps.close()  # what there is is stored now
        runner.workers.close()
        bar.clear()
    if runner.lost:
        verb = "was" if runner.lost == 1 else "were"
        bar.print_above(
            f"{count(runner.lost, 'run')} {verb} stopped or taken over by another process in the"
            " meantime."
        )


@contextmanager
def _catch_end_signals() -> Iterator[list[int]]:
    """Yield a list that gets the first SIGINT, SIGTERM or SIGHUP; then old handlers are back."""
    signals: list[int] = []
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: object) -> None:
        signals.append(number)
        restore()

    before.update(
        {getattr(signal, name): signal.signal(getattr(signal, name), note) for name in names}
    )
    try:
        yield signals
    finally:
        restore()


class Bar:
    """Progress bar: redrawn on a terminal, otherwise a line now and then.

    The stream may go away: a study does not end with its terminal's window.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self._drawn = -EVERY
        self._said = ""

    def draw(self, progress: Progress) -> None:
        """Print progress, at most twice a second (no terminal: every 30 s); new trouble at once."""
        now = time.monotonic()
        if now - self._drawn >= (0.5 if self.terminal else EVERY):
            self._drawn = now
            self._write(
                self._overwrite(format_progress(progress))
                if self.terminal
                else format_progress(progress) + "\n"
            )
        if progress.trouble and progress.trouble != self._said:
            self.print_above(
                f"{progress.trouble} Training continues; results are stored as soon as possible."
            )
        self._said = progress.trouble

    def print_above(self, words: str) -> None:
        """Print a sentence on its own line in the bar's place; the next draw() is below it."""
        self._write((self._overwrite("") if self.terminal else "") + words + "\n")

    def clear(self) -> None:
        """Remove the bar from a terminal; elsewhere do nothing."""
        self._write(self._overwrite("") if self.terminal else "")

    def _overwrite(self, words: str) -> str:
        """Return the control text that replaces the current line of the terminal by these words."""
        room = shutil.get_terminal_size().columns - 1
        return "\r" + words[:room].ljust(room) + ("" if words else "\r")

    def _write(self, words: str) -> None:
        """Write to the stream; ignore a closed one."""
        with suppress(OSError, ValueError):
            self.stream.write(words)
            self.stream.flush()


def format_progress(progress: Progress) -> str:
    """Format progress: "[######··············] 37 of 385 runs · 31 % · 12 min left · 1 failed".

    The percentage is that of the expected work; numbers of 0 runs are left out.
    """
    counts = progress.counts
    full = int(WIDTH * progress.share)
    ended = sum(counts.get(state, 0) for state in (DONE, DIVERGED, FAILED))
    words = [f"{ended} of {sum(counts.values())} runs", f"{100 * progress.share:.0f} %"]
    if counts.get(QUEUED) or counts.get(RUNNING):
        left = (
            "workers are starting"
            if progress.left is None
            else f"{format_duration(progress.left)} left"
        )
        words.append(progress.absent or left)
    words += [f"{counts[state]} {state}" for state in (DIVERGED, FAILED) if counts.get(state)]
    words += [f"{progress.elsewhere} in other processes"] if progress.elsewhere > 0 else []
    return f"[{'#' * full}{'·' * (WIDTH - full)}] {' · '.join(words)}"


# Whether a study agrees with an earlier summary, cell by cell, within the intervals that it had

# of an accuracy: closer than that is the same where all seeds agreed and there is no interval
CLOSE = 0.01
COMPARED = [("accuracy", "low", "high"), ("difference", "difference_low", "difference_high")]


@dataclass(frozen=True)
class Agreement:
    """Comparison of a summary with an earlier one, cell by cell."""

    cells: int  # in both
    same: int  # of them, equal to the last digit
    off: list[str]  # sentences on cells that differ
    empty: int = 0  # cells without a value in either
    new: tuple[str, ...] = ()  # names of cells of this one only
    missing: tuple[str, ...] = ()  # names of cells of the earlier one only

    @property
    def agrees(self) -> bool:
        """Whether both have the same cells, with values in the earlier intervals (± CLOSE)."""
        return not (self.off or self.new or self.missing)


def compare_summaries(now: pd.DataFrame, before: pd.DataFrame) -> Agreement:
    """Compare a summary with an earlier one: is each value in the earlier interval ± 0.01?

    Cells in only one of them are listed by name.
    """
    cells = {(cell.task, cell.variant): cell for cell in lines(before)}
    same = 0
    empty = 0
    total = 0
    off = []
    new = []
    for cell in lines(now):
        name = f"{cell.task}, {cell.variant}"
        old = cells.pop((cell.task, cell.variant), None)
        if old is None:
            new.append(name)
            continue
        total += 1
        # Two groups of runs have a mean without an interval: there the accuracy alone is compared.
        has_groups = old.seeds >= LEAST_SEEDS and math.isnan(old.difference_low)
        moved = [
            _compare_value(cell, old, *columns)
            for columns in (COMPARED[:1] if has_groups else COMPARED)
        ]
        words = [sentence for _, sentence in moved if sentence]
        if words:
            off.append(f"{name}: {'; '.join(words)}.")
        elif math.isnan(cell.accuracy) and not (cell.diverged or old.diverged):
            empty += 1
        else:
            same += all(equal for equal, _ in moved) and cell.diverged == old.diverged
    return Agreement(
        total, same, off, empty, tuple(new), tuple(f"{task}, {variant}" for task, variant in cells)
    )


def _compare_value(cell: Any, old: Any, column: str, lowest: str, highest: str) -> tuple[bool, str]:
    """Return (equal to the earlier cell's?, a sentence if outside its interval ± CLOSE, or "")."""
    value = getattr(cell, column)
    mean, low, high = (getattr(old, name) for name in (column, lowest, highest))
    if math.isnan(value) or math.isnan(mean):
        if math.isnan(value) and math.isnan(mean):
            return True, ""
        now, then = (
            "has no value" if math.isnan(number) else f"{number:.3f}" for number in (value, mean)
        )
        return False, f"{column} {now} now, {then} before"
    span = "" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]"
    low, high = (low, high) if span else (mean, mean)
    if low - CLOSE <= value <= high + CLOSE:
        return value == mean, ""
    return False, f"{column} {value:.3f} now, {mean:.3f}{span} before"


if __name__ == "__main__":
    sys.exit(main())
