"""Training studies from the command line: they are queued, and trained with a bar until all is done or a signal comes."""

import os
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from functools import partial

from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.settings.wording import count
from core.study.command.bar import Bar
from core.study.command.codes import COMPLETE, INCOMPLETE
from core.study.command.signals import asked_to_end
from core.study.command.state import state_of
from core.study.database.opening import patiently
from core.study.database.schema import QUEUED, RUNNING
from core.study.database.store import Store
from core.study.plan import Study, StudyError, before, read_machine
from core.study.runner import Runner
from core.train.budget import duration
from core.workers.cluster import pool
from core.workers.protocol import WorkerPool

SLOW = 1.0  # seconds of ending after which it is said


def train(given: Namespace, studies: Sequence[Study | int]) -> int:
    """Train studies, each read from a file or known by its number in the store, until all is done or a signal comes."""
    with closing(pool(given.workers)) as workers:
        for study in (study for study in studies if isinstance(study, Study)):
            require(workers, study.name, study.runs[0].machine)
        store = Store(given.database)
        numbers = list(dict.fromkeys(queue(store, workers, each) for each in studies))
        return train_queued(store, workers, numbers)


def require(workers: WorkerPool, name: str, machine: Machine) -> None:
    """Raises StudyError for a study that must be trained on what there will never be."""
    try:
        workers.require(machine)
    except ConfigError as error:
        raise StudyError([f"{name}: {error}"]) from None


def queue(store: Store, workers: WorkerPool, study: Study | int) -> int:
    """Queue all of a study that has no result -> its number."""
    if isinstance(study, Study):
        print(f"{study.name}: {count(len(study.runs), 'run')}, kept in {store.name}.")
        if study.notes:
            print(f"  {count(len(study.notes), 'variant')} left out; python -m core.study plan says which, and why.")
        number = enter(store, study)
    else:
        number = study
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
    complete = [patiently(partial(state_of, store, number)) for number in numbers]
    store.close()
    return 128 + signals[0] if signals else COMPLETE if all(complete) else INCOMPLETE


def work(runner: Runner, signals: list[int]) -> None:
    """Let it run, with a bar, until all is done or there is a signal."""
    bar, steps = Bar(sys.stderr), runner.progress()
    spawn(runner.workers)
    try:
        for progress in steps:
            while runner.workers.news:
                bar.say(runner.workers.news.popleft())
            bar.draw(progress)
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


def say_when_slow(bar: Bar) -> None:
    """Say that it is ending, unless this process is gone by then: it waits for its workers after the last line."""
    slow = threading.Timer(SLOW, bar.say, ["Ending: the workers take a moment longer."])
    slow.daemon = True
    slow.start()


def spawn(workers: WorkerPool) -> None:
    """Start the processes now, deaf to Ctrl-C, which goes to every process of a terminal: it is for this one to end them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    for _ in range(workers.count):
        workers.submit(os.getpid)
    signal.signal(signal.SIGINT, before)
