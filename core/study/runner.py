"""Training of queued runs in workers: for a command (Runner), or behind a page (Service)."""

import logging
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from core.settings.environment import ServerError
from core.settings.process import new_owner
from core.study.database.connection import BusyError, StoreError, patiently
from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING, STOPPED
from core.study.database.store import Report, Store
from core.study.looks import add_next_look
from core.study.plan import read_run
from core.workers.job import Job, WorkerPool

TICK = 0.1  # seconds from one look at the jobs to the next
BEAT = 1.0  # seconds from one entry in the store to the next, if nothing ends meanwhile
FAREWELL = 5.0  # seconds that a busy store is waited for when work is broken off
SURE = 10.0  # seconds after which the speed so far tells more than the estimate
KNOWN = "Cached: this process has already done the same training."


@dataclass(frozen=True)
class Progress:
    """Progress of several studies."""

    counts: dict[str, int] = field(default_factory=dict)  # state -> runs
    share: float = 0.0  # of all the work, 0 to 1
    left: float | None = None  # seconds; None while workers start
    elsewhere: int = 0  # runs of other processes
    trouble: str = ""  # why nothing is stored
    absent: str = ""  # why no worker trains

    @property
    def is_over(self) -> bool:
        """Whether no run is queued or running; True, too, where there never was one."""
        return not self.counts.get(QUEUED) and not self.counts.get(RUNNING)


class Runner:
    """Training of studies until none of their runs is queued or running anywhere.

    Iterate over progress(). When the iteration ends early, results so far are stored, and the runs
    being trained are marked to run again.
    """

    def __init__(self, store: Store, studies: list[int], workers: WorkerPool) -> None:
        self.store = store
        self.studies = list(studies)
        self.workers = workers
        self.owner = new_owner()
        self.jobs: dict[int, Job] = {}  # run -> its training
        self.of: dict[int, int] = {}  # run -> its study
        self.ended: list[Report] = []  # not stored yet
        self.lost = 0  # runs that are no longer its own: stopped, deleted or taken over
        self.asked = True  # for a study, since it last saw what is in the store
        self._devices: dict[int, str] = {}
        self._written = -BEAT
        self._begun: tuple[float, float] | None = (
            None  # when, and with how many expected seconds of work to do
        )

    def add(self, study: int) -> None:
        """Add a study by its id, or look again for newly queued runs; from any thread.

        It queues nothing and does not check the id.
        """
        if study not in self.studies:
            self.studies = [*self.studies, study]
        self.asked = True

    def train(self) -> Generator[Progress, None, None]:
        """Train all queued runs; yield the progress ten times a second until all have ended.

        Closing the generator stores what there is and marks unfinished runs as stopped. Raises
        StoreError, and what WorkerPool.refresh_workers raises.
        """
        result = Progress()
        self._begun = None
        self.asked = True
        try:
            while self.asked or not result.is_over or self._add_next_looks():
                absent = self.workers.refresh_workers()
                for job in self.jobs.values():
                    job.poll()
                if (
                    any(job.done for job in self.jobs.values())
                    or time.monotonic() - self._written > BEAT
                ):
                    result = self._update_store(result)
                yield replace(result, absent=absent)
                time.sleep(TICK)
        finally:
            self.stop()

    def _add_next_looks(self) -> bool:
        """Queue the studies' next looks' runs; return whether any, True if the store is busy."""
        try:
            new = [study for study in self.studies if add_next_look(self.store, study)]
        except BusyError:
            self.asked = True
            return True
        self.asked = bool(new)
        return self.asked

    def _update_store(self, progress: Progress) -> Progress:
        """Store rows, reclaim and claim runs; return progress (if busy the last plus trouble)."""
        self._written = time.monotonic()
        self.asked = False
        try:
            self._store_and_drop()
            self.store.reclaim(self.studies, self.owner, self.jobs)
            self._claim_runs()
            return self._measure_progress()
        except BusyError as error:
            self.asked = True
            return Progress(
                progress.counts, progress.share, progress.left, progress.elsewhere, str(error)
            )

    def _store_and_drop(self, state: str = RUNNING) -> None:
        """Store all new results; stop and drop runs that ended or were lost to another process.

        Unfinished runs get this state; unless it is RUNNING, they are dropped, too.
        """
        reports = [self._report(run, job, state) for run, job in self.jobs.items()]
        lost = self.store.store_reports(self.owner, self.ended + reports)
        dropped = lost | {report.run for report in reports if report.state != RUNNING}
        self.lost += len(lost & self.jobs.keys())
        self.ended = []
        for run in dropped & self.jobs.keys():
            self.jobs.pop(run).stop()
            del self.of[run], self._devices[run]

    def _report(self, run: int, job: Job, state: str) -> Report:
        """Return a run's report: all rows, message, and its state, or `state` while unfinished."""
        with self.workers.lock:  # a chunk may land meanwhile
            rows = list(job.rows[run])
            now = job.states[run]
            error = job.error
            is_known = bool(job.known)
        if now.done:
            state = DIVERGED if now.diverged else DONE
            message = rows[-1].note
        elif error:
            state = FAILED
            message = f"{type(error).__name__}: {error}"
        else:
            message = ""
        message = f"{message}. {KNOWN}".lstrip(". ") if is_known else message
        return Report(
            run, state, rows, now.step, now.seconds, message, is_known, self._devices[run]
        )

    def _claim_runs(self) -> None:
        """Claim and start runs of each study in turn, up to two per worker; report failures."""
        empty: set[int] = set()
        while len(self.jobs) < 2 * self.workers.count and len(empty) < len(self.studies):
            held_by = list(self.of.values())
            study = min((study for study in self.studies if study not in empty), key=held_by.count)
            limit = max(
                1, (2 * self.workers.count - len(held_by)) // (len(self.studies) - len(empty))
            )
            claimed = self.store.claim(study, self.owner, limit, self.workers.versions())
            if len(claimed) < limit:
                empty.add(study)
            for number, task, variant, spec in claimed:
                try:
                    state = read_run(task, variant, spec).start()
                    self.workers.require(state.machine)
                    device = self.workers.device(state.machine)[1]
                    job = Job(self.workers, {number: state}, background=True)
                    self.jobs[number] = job
                    self.of[number] = study
                    self._devices[number] = device
                except Exception as error:  # of this run, and the others go on
                    self.ended.append(
                        Report(number, FAILED, message=f"{type(error).__name__}: {error}")
                    )

    def _measure_progress(self) -> Progress:
        """Return the progress: runs by state, share done and estimated remaining time."""
        by_state = self.store.counts(self.studies)
        counts = {state: n for state, (n, _, _) in by_state.items()}
        time_left = sum(by_state[state][2] for state in (QUEUED, RUNNING) if state in by_state)
        total = sum(expected for _, expected, _ in by_state.values())
        waiting = counts.get(QUEUED, 0) + counts.get(RUNNING, 0)
        return Progress(
            counts,
            share=(
                max(0.0, 1 - time_left / total) if total else 1.0
            ),  # all may have been deleted meanwhile
            left=self._estimate_time_left(time_left, waiting),
            elsewhere=counts.get(RUNNING, 0) - len(self.jobs),
        )

    def _estimate_time_left(self, time_left: float, waiting: int) -> float | None:
        """Estimate the remaining seconds, from the measured speed or the plan; None at the start.

        Args:
            time_left: Expected seconds of work on one core.
            waiting: Number of runs queued or running.
        """
        if waiting and self.jobs and not self.workers.has_trained:  # the workers start
            return None
        begun, total = self._begun = self._begun or (time.monotonic(), time_left)
        elapsed = time.monotonic() - begun
        if elapsed > SURE and time_left < 0.97 * total:
            return elapsed * time_left / (total - time_left)
        return self.workers.pace * time_left / max(1, min(self.workers.count, waiting))

    def stop(self) -> None:
        """Stop training, store what there is, and mark unfinished runs as stopped; wait for that.

        Errors of the store are ignored. train() calls it at its end.
        """
        for job in self.jobs.values():
            job.stop()
        with suppress(StoreError):  # then others will see that this process is gone
            if self.jobs or self.ended:
                patiently(lambda: self._store_and_drop(STOPPED), FAREWELL)
        self.jobs = {}
        self.of = {}
        self._devices = {}


class Service:
    """Thread that trains studies in the background of a server.

    Progress stands in the store, where everybody can see it and stop a study (Store.stop).
    """

    def __init__(self, store: Store, workers: WorkerPool) -> None:
        self.store = store
        self.workers = workers
        self.seen = Progress()
        self.trouble = ""  # why it has ended before its time
        self._lock = threading.Lock()
        self._runner: Runner | None = None

    def start(self, study: int) -> None:
        """Train a study's queued runs in the background, with any under way; do not wait."""
        with self._lock:
            self.trouble = ""
            if self._runner:
                self._runner.add(study)
                return
            self._runner = Runner(self.store, [study], self.workers)
            threading.Thread(
                target=self._work, args=(self._runner,), name="studies", daemon=True
            ).start()

    def has(self, study: int) -> bool:
        """Return whether the background thread works on a study; False once it has ended."""
        with self._lock:
            return self._runner is not None and study in self._runner.studies

    def _work(self, runner: Runner) -> None:
        """Train the runner's studies until none asks for more; `trouble` gets a failure's text."""
        try:
            while True:
                for self.seen in runner.train():
                    pass
                with self._lock:
                    if not runner.asked:
                        self._runner = None
                        return
        except Exception as error:
            logging.error(
                "the studies' thread has ended: %s",
                error,
                exc_info=not isinstance(error, ServerError),
            )
            message = (
                error.public_message if isinstance(error, ServerError) else type(error).__name__
            )  # visitors see it
            with self._lock:
                self._runner = None
                self.trouble = message
