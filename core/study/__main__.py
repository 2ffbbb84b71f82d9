"""Studies from the command line: python -m core.study run FILE; plan, status, resume, export and check beside it.

Exit codes: 0 every run has its result (that it diverged is one); 1 some have none, or (check) do not agree; 2 a mistake in the file or the command;
3 the store cannot be used, or the cluster is gone; 128 + the signal's number after Ctrl-C or a request to end.
"""

import argparse
import os
import signal
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

from core.export.sheets import write_csv
from core.export.slug import slug
from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.settings.wording import count
from core.study import file
from core.study.bar import Bar
from core.study.database.connection import DEFAULT, VARIABLE, Full, NoStore, StoreError
from core.study.database.schema import FAILED, QUEUED, RUNNING
from core.study.database.standing import standing
from core.study.database.store import Store, patiently
from core.study.picture import STYLE, matrix_svg
from core.study.plan import NOTHING, Study, StudyError, before, read_machine, told
from core.study.runner import Runner
from core.study.summary import read_summary
from core.study.tables import agreement, export, summary_table
from core.train.budget import duration
from core.workers.cluster import ClusterLost, pool
from core.workers.pool import worker_count
from core.workers.protocol import WorkerPool
from core.workers.scheduler import ClusterError

COMPLETE, INCOMPLETE, MISTAKE, NO_STORE = range(4)
SHOWN = 10  # failed runs of which the reason is printed
SLOW = 1.0  # seconds of ending after which it is said
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def main(arguments=None) -> int:
    given = parser().parse_args(arguments)
    try:
        return given.call(given)
    except StudyError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return MISTAKE
    except StoreError as error:
        more = " What was stored is safe: make room, and give the same command again." * isinstance(error, Full)
        print(f"{error}{more}", file=sys.stderr)
        return NO_STORE
    except ClusterError as error:
        print(error, file=sys.stderr)
        return NO_STORE if isinstance(error, ClusterLost) else MISTAKE
    except OSError as error:  # of a file that was named in the command
        print(f"{error.filename or 'A file'}: {error.strerror or error}.", file=sys.stderr)
        return MISTAKE


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "python -m core.study", description="Train a study, unattended, and keep its numbers."
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")

    def command(call, help, several=None, database=True, workers=False):
        added = commands.add_parser(call.__name__.rstrip("_"), help=help, description=help)
        added.set_defaults(call=call)
        if several:
            what = "the file of a study" + ("" if call in (run, plan) else ", or its name in the store")
            added.add_argument("studies", nargs=several, metavar="STUDY", help=what)
        if database:
            where = f"address of the store, or the path of a SQLite file (else {VARIABLE}, else {DEFAULT})"
            added.add_argument("--database", metavar="URL", help=where)
        if workers:
            words = (
                "processes that train (else ABLATION_WORKERS, else one per core up to two); on a cluster "
                "(DASK_SCHEDULER_ADDRESS) how many of its threads at most (else all)"
            )
            added.add_argument("--workers", type=_count, metavar="N", help=words)
        return added

    command(plan, "say what a study would train, and how long that takes, without training", "+", True, True)
    command(
        run,
        "train what is missing of a study; after Ctrl-C what is stored stays, and the runs in hand (at most two per worker) start again",
        "+",
        True,
        True,
    )
    command(resume, "go on with a study, from its file or from the store alone", "+", True, True)
    command(status, "say how far studies are", "*")
    added = command(
        export_,
        "write the tables runs, rows and summary, and the study's file; of several studies each into a folder of its own",
        "+",
    )
    added.add_argument("--csv", metavar="DIR", help="as CSV into this folder")
    added.add_argument("--parquet", metavar="DIR", help="as Parquet into this folder")
    added.add_argument("--summary", metavar="FILE", help="the summary alone, as CSV (of one study)")
    added.add_argument("--picture", metavar="FILE", help="what each variant costs on each task, as SVG (of one study)")
    added = command(check, "say whether a study agrees with a summary that was exported before", 1)
    added.add_argument("--with", dest="before", metavar="FILE", required=True, help="the summary, as CSV")
    return made


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1024):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to 1024")
    return int(text)


# Commands


def plan(given) -> int:
    workers = given.workers or worker_count()
    studies = [read(path) for path in given.studies]
    try:
        store = Store(given.database, create=False)
    except NoStore:
        store = None
    for study in studies:
        print(told(study, workers, store.stored(study) if store else NOTHING))
    return COMPLETE


def run(given) -> int:
    return train(given, [(read(path), None) for path in given.studies])


def resume(given) -> int:
    store = Store(given.database, create=False)
    named = [(read(each), None) if Path(each).is_file() else (None, found(store, each)) for each in given.studies]
    store.close()
    return train(given, named)


def status(given) -> int:
    store = Store(given.database, create=False)
    wanted = [found(store, each) for each in given.studies] or [each.id for each in store.studies()]
    complete = [state_of(store, number) for number in wanted]
    if not wanted:
        print(f"There are no studies in {store.name}.")
    return COMPLETE if all(complete) else INCOMPLETE


def export_(given) -> int:
    folders = {kind: folder for kind, folder in (("csv", given.csv), ("parquet", given.parquet)) if folder}
    alone = given.summary or given.picture
    if not folders and not alone:
        raise StudyError(["Say where to: --csv FOLDER, --parquet FOLDER, --summary FILE or --picture FILE."])
    if alone and len(given.studies) > 1:
        raise StudyError(["--summary and --picture are of one study: name one."])
    store = Store(given.database, create=False)
    numbers = list(dict.fromkeys(found(store, each) for each in given.studies))
    if alone:
        _write(summary_table(store, numbers[0]), given)
    names = {each.id: each.name for each in store.studies()}
    for number in numbers:
        for kind, folder in folders.items():
            into = Path(folder) / slug(names[number], number) if len(numbers) > 1 else folder
            print(*export(store, number, into, kind), sep="\n")
    return COMPLETE


def _write(summary, given):
    """The summary as a table, as a picture, or both."""
    made = {
        given.summary: lambda: write_csv(summary),
        given.picture: lambda: matrix_svg(summary, style=STYLE) + "\n",
    }
    for path, text in made.items():
        if path:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text(), encoding="utf-8")
            print(path)


def check(given) -> int:
    store = Store(given.database, create=False)
    now = summary_table(store, found(store, given.studies[0]))
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


# What they share


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


def train(given, studies: list[tuple[Study | None, int | None]]) -> int:
    """Train studies, each read from a file or known by its number in the store, until all is done or a signal comes."""
    with closing(pool(given.workers)) as workers:
        for study in (study for study, _ in studies if study):
            require(workers, study.name, study.runs[0].machine)
        store = Store(given.database)
        numbers = list(dict.fromkeys(queue(store, workers, *each) for each in studies))
        return train_queued(store, workers, numbers)


def require(workers: WorkerPool, name: str, machine: Machine):
    """Raises StudyError for a study that must be trained on what there will never be."""
    try:
        workers.require(machine)
    except ConfigError as error:
        raise StudyError([f"{name}: {error}"]) from None


def queue(store: Store, workers: WorkerPool, study: Study | None, number: int | None) -> int:
    """Queue all of a study that has no result -> its number."""
    if study:
        print(f"{study.name}: {count(len(study.runs), 'run')}, kept in {store.name}.")
        if study.notes:
            print(f"  {count(len(study.notes), 'variant')} left out; python -m core.study plan says which, and why.")
        number = enter(store, study)
    else:
        name = next(each.name for each in patiently(store.studies) if each.id == number)
        spec = next(
            iter(patiently(lambda: store.specs(number)).values()), None
        )  # all runs of a study are for one machine
        if spec:
            require(workers, name, read_machine(spec))
    again = patiently(lambda: store.requeue(number))
    if again:
        print(f"  {count(again, 'run')} that had stopped or failed will run again.")
    return number


def train_queued(store: Store, workers: WorkerPool, numbers: list[int]) -> int:
    begun = time.monotonic()
    with asked_to_end() as signals:
        if {QUEUED, RUNNING} & set(patiently(lambda: store.counts(numbers))):
            work(Runner(store, numbers, workers), signals)
            print(f"After {duration(time.monotonic() - begun)}:", flush=True)
    complete = [patiently(lambda number=number: state_of(store, number)) for number in numbers]
    store.close()
    return 128 + signals[0] if signals else COMPLETE if all(complete) else INCOMPLETE


def work(runner: Runner, signals: list):
    """Let it run, with a bar, until all is done or there is a signal."""
    bar, steps = Bar(sys.stderr), runner.progress()
    spawn(runner.workers)
    try:
        for seen in steps:
            while runner.workers.news:
                bar.say(runner.workers.news.popleft())
            bar.draw(seen)
            if signals:
                break
    finally:
        if signals:
            say_when_slow(bar)
        steps.close()  # what there is is stored now
        runner.workers.close()
        bar.clear()
    if runner.lost:
        bar.say(f"{count(runner.lost, 'run')} had been stopped or taken over by another process meanwhile.")


def enter(store: Store, study: Study) -> int:
    entered = patiently(lambda: store.enrol(study))
    for sentence in before(entered.ended, entered.unwanted):
        print(f"  {sentence}")
    return entered.study


def say_when_slow(bar: Bar):
    """Say that it is ending, unless this process is gone by then: it waits for its workers after the last line."""
    slow = threading.Timer(SLOW, bar.say, ["Ending: the workers take a moment longer."])
    slow.daemon = True
    slow.start()


def spawn(workers: WorkerPool):
    """Start the processes now, deaf to Ctrl-C, which goes to every process of a terminal: it is for this one to end them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    for _ in range(workers.count):
        workers.submit(os.getpid)
    signal.signal(signal.SIGINT, before)


@contextmanager
def asked_to_end():
    """A list in which the first signal to end appears; the second one ends as it would have without this."""
    seen, before = [], {}

    def note(number, _):
        seen.append(number)
        for each in SIGNALS:
            signal.signal(each, before[each])

    before.update({each: signal.signal(each, note) for each in SIGNALS})
    try:
        yield seen
    finally:
        for each in SIGNALS:
            signal.signal(each, before[each])


def state_of(store: Store, number: int) -> bool:
    """Print how far a study is -> whether every run has its result."""
    name = next((each.name for each in store.studies() if each.id == number), None)
    if name is None:
        print("The study has been deleted meanwhile.")
        return False
    found, failed = standing(store, number), store.runs(number, FAILED, spec=False)  # before anything is printed
    print(f"{name}: {found.words()}.")
    if found.lost:
        print(
            f"  {count(found.lost, 'running one')} without a process that trains it: it was ended, and resume runs them again."
        )
    for each in failed[:SHOWN]:
        print(f"  {each.task}, {each.variant}, seed {each.seed} failed: {each.message}")
    if len(failed) > SHOWN:
        print(f"  … and {len(failed) - SHOWN} more.")
    if found.open and not found.running:
        print(f"  To go on: python -m core.study resume {name!r}")
    return found.complete


if __name__ == "__main__":
    sys.exit(main())
