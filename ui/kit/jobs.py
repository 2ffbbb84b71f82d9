"""A visitor's training: started, shown, stopped. One at a time for each visitor, all in the same few worker processes."""

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st

from core.experiments.training.judged import Compared, Judge
from core.experiments.training.plan import Plan
from core.settings.cache import once
from core.settings.environment import whole_number
from core.settings.errors import without_paths
from core.settings.memory import MemoryLimit, machine_mb, max_mb
from core.settings.setting import ConfigError
from core.train.budget import TimeLimit, check, duration, expected
from core.train.budget import kept as weights_kept
from core.train.run import State
from core.workers.job import Job
from core.workers.pool import ProcessPool
from core.workers.protocol import WorkerPool
from ui.kit.guard import fragment, literal
from ui.kit.store import session

RUNNING, REFUSED, SHOWN = "running", "refused", "shown"  # what is kept for a visitor
MOST = 32  # trainings of visitors at a time
TICK = 0.4  # seconds between two looks at a job
PATIENCE = 0.3  # seconds for which a page just begun waits for its first point, rather than for the next look
_begun: weakref.WeakSet[Job] = weakref.WeakSet()  # by all visitors; a job is gone with its visitor's session


@dataclass(frozen=True)
class StartedTrainings(Compared):
    """The trainings of a plan that a visitor has started, and the job that does them."""

    plan: Plan
    job: Job
    since: float
    judge: Judge = field(init=False, compare=False)
    origin = "Trained here"

    def __post_init__(self):
        object.__setattr__(self, "judge", Judge(self.plan, self.job.rows))

    @property
    def every_state(self) -> dict:
        return self.job.states

    @property
    def going(self) -> bool:
        return not self.job.done


@once
def workers() -> ProcessPool:
    """The worker processes, for all visitors. They start with the first training, not with the first page."""
    return ProcessPool()


def first_point(trainings: StartedTrainings):
    """Wait a little for the first point of what was started a moment ago."""
    end = trainings.since + PATIENCE
    while trainings.going and not any(trainings.runs.values()) and time.monotonic() < end:
        time.sleep(0.01)


def started() -> StartedTrainings | None:
    """What this visitor started last, whether or not it has ended."""
    return session().kept.get(RUNNING)


def begin(plan: Plan):
    """Start what is planned; what this visitor had going ends. What cannot be started is said in words by refused()."""
    pool, kept = workers(), session().kept
    try:
        states = plan.states()
        check(list(states.values()), pool.count, pool.pace.best)
        with pool.lock:  # or many who come at once would all see the same room
            _check_queue(pool, kept.get(RUNNING))
            _check_room(list(states.values()), kept.get(RUNNING))
            if RUNNING in kept:
                kept[RUNNING].job.stop()
            job = Job(pool, states)
            _begun.add(job)
    except (ConfigError, MemoryLimit, TimeLimit) as error:
        kept[REFUSED] = plan, str(error)
        return
    kept.pop(REFUSED, None)
    kept[RUNNING] = StartedTrainings(plan, job, time.monotonic())


def _check_queue(pool: WorkerPool, own: StartedTrainings | None):
    """One training for each visitor, whose last one ends; and so many for all. Called under the lock. Raises TimeLimit."""
    most, own_job = whole_number("ABLATION_MAX_JOBS", MOST), own.job if own else None
    others = sum(job.alive and not job.background and job is not own_job for job in pool.jobs)
    if others >= most:
        raise TimeLimit(
            f"{most} training{'s' * (most > 1)} of other visitors {'are' if most > 1 else 'is'} going on, and more are not taken on "
            "at a time (set by ABLATION_MAX_JOBS). Try again in a few minutes."
        )


def _check_room(states: list[State], own: StartedTrainings | None):
    """All visitors' trainings together, stopped and ended ones too, as long as somebody can still see them, may keep a
    quarter of the machine's memory, and what one visitor may in any case. Raises MemoryLimit."""
    most, own_job = max(max_mb(), machine_mb() // 4) << 20, own.job if own else None
    others = [state for job in list(_begun) if job is not own_job for state in list(job.states.values())]
    needed = sum(weights_kept(state.config, state.training) for state in [*others, *states])
    if needed > most:
        raise MemoryLimit(
            f"With those of other visitors, {needed >> 20:,} MB of trained weights would be kept; all together may keep "
            f"{most >> 20:,} MB here. Try again in a few minutes, or train a smaller model."
        )


def refused(plan: Plan) -> str:
    """Why the plan was not started when that was asked for, or why what had been started could not go on; or nothing."""
    asked, why = session().kept.get(REFUSED, (None, ""))
    own = started()
    return why if asked == plan or (own and own.job.stopped and asked == own.plan) else ""


def stop():
    if started():
        started().job.stop()


def resume():
    if started():
        _back_in_line(started(), started().job.resume)


def look(trainings: StartedTrainings) -> Job:
    """Ask about it, which keeps it going. Where nobody did for a while, and others have taken its place, it stops, and can be continued."""
    job = trainings.job
    if trainings.going and not job.alive:
        said = f"Nobody looked at this training for a while, and it was stopped at {job.progress:.0%}. "
        if not _back_in_line(trainings, job.poll, said):
            job.stop()
    return job.poll()


def _back_in_line(trainings: StartedTrainings, come: Callable[[], object], said: str = "") -> bool:
    """Whether there was room for it among those of others. Where there was none, refused() says so in words, after what is said."""
    pool, kept = workers(), session().kept
    try:
        with pool.lock:
            _check_queue(pool, trainings)
            come()
    except TimeLimit as error:
        kept[REFUSED] = trainings.plan, said + str(error)
        return False
    kept.pop(REFUSED, None)
    return True


def status(job: Job) -> str:
    """What the job is doing, in few words."""
    if job.error is not None:
        return f"This training failed ({type(job.error).__name__}: {without_paths(str(job.error))[:200]})."
    if job.stopped:
        return f"Stopped at {job.progress:.0%}, about {duration(seconds_left(job))} before the end."
    if job.done:
        known = f", {job.known} of them known from before" if job.known else ""
        return f"Done: {count(job)}{known}."
    before = job.workers.position(job)
    if before:
        return f"Waiting: {before} before you, then about {duration(seconds_left(job))}."
    turns = job.workers.beside()
    shared = f", in turn with {turns - 1} other{'s' * (turns > 2)}" if turns > 1 else ""
    return (
        f"{job.progress:.0%} of {count(job)}, about {duration(seconds_left(job))} left"
        + shared
        + f". {job.workers.silence}".rstrip(". ")
    )


def seconds_left(job: Job) -> float:
    """Return how long a job will still take: as it goes by now, or before its second chunk as trainings here go."""
    measured = job.seconds_left()
    if measured is not None:
        return measured
    return expected(list(job.states.values()), max(1, job.workers.count), job.workers.pace.median)


def count(job: Job) -> str:
    return f"{len(job.states)} training{'s' * (len(job.states) > 1)}"


def elsewhere():
    """On other pages: goes on, and says how far it is, until its own page has shown the end."""
    trainings = started()
    if trainings and trainings.going:
        fragment(_elsewhere, run_every=2.0)(trainings)
    elif trainings and session().kept.get(SHOWN) is not trainings.job:
        _say(trainings)


def _elsewhere(trainings: StartedTrainings):
    look(trainings)
    _say(trainings)
    if not trainings.going:
        st.rerun()


def _say(trainings: StartedTrainings):
    job, why = trainings.job, refused(trainings.plan)
    said = f"{'Trained' if job.done else 'Training'}: {status(job)} {literal(why)}"
    st.caption(f":material/model_training: {said.strip()}")


def shown(trainings: StartedTrainings):
    """Its own page has drawn it: other pages need not speak of its end any more."""
    if not trainings.going:
        session().kept[SHOWN] = trainings.job
