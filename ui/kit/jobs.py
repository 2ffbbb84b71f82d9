"""A user's training job: start, stop, resume and status. All users share the workers."""

import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core.experiments.training.judged import Compared, Judge
from core.experiments.training.plan import Plan
from core.settings.cache import make_once
from core.settings.environment import remove_paths
from core.settings.memory import MemoryLimitError
from core.settings.setting import ConfigError
from core.settings.wording import count
from core.train import State
from core.train.budget import TimeLimitError, check_budget, format_duration
from core.workers.job import Job
from core.workers.pool import ProcessPool
from ui.kit.guard import fragment, literal
from ui.kit.store import session

# keys of a session's `kept`
RUNNING = "running"
REFUSED = "refused"
SHOWN = "shown"
TICK = 0.4  # seconds between two looks at a job
PATIENCE = 0.3  # seconds for which a page waits for the first point of a new training
_jobs: weakref.WeakSet[Job] = weakref.WeakSet()  # of all users; a job is gone with its session


@dataclass(frozen=True)
class StartedTrainings(Compared):
    """Trainings of a plan that a user has started, and the job that trains them."""

    plan: Plan
    job: Job
    since: float
    judge: Judge = field(init=False, compare=False)
    origin = "Trained here"

    def __post_init__(self):
        object.__setattr__(self, "judge", Judge(self.plan, self.job.rows))

    @property
    def every_state(self) -> dict:  # type: ignore[override]  # a field of a finished comparison
        """State of each training, by (model's name, seed)."""
        return self.job.states

    @property
    def going(self) -> bool:
        """Whether the job still runs: not complete, stopped or failed."""
        return not self.job.done


@make_once
def workers() -> ProcessPool:
    """Return the pool of worker processes of all users; its processes start when first used."""
    return ProcessPool()


def wait_for_first_point(trainings: StartedTrainings):
    """Block until a training started less than 0.3 s ago has its first point, 0.3 s at most."""
    end = trainings.since + PATIENCE
    while trainings.going and not any(trainings.runs.values()) and time.monotonic() < end:
        time.sleep(0.01)


def last_trainings() -> StartedTrainings | None:
    """Return the trainings that this user started last, of any plan; None without any."""
    return session().kept.get(RUNNING)


def start_job(states: Mapping[Any, State], replaced: Job | None = None) -> Job:
    """Start a job for these states and stop the one it replaces.

    Raises:
        MemoryLimitError: All jobs together would take too much memory.
        TimeLimitError: It would take too long.
    """
    pool = workers()
    with pool.lock:  # or many who start at once would all see the same room
        running = [state for job in _jobs if job is not replaced for state in job.states.values()]
        check_budget(list(states.values()), pool.count, pool.pace, running)
        if replaced:
            replaced.stop()
        job = Job(pool, states)
        _jobs.add(job)
    return job


def start_training(plan: Plan):
    """Start a plan in place of the user's training, or store why not, for reason_refused().

    Refused is what exceeds time or memory; then the old training goes on.
    """
    remembered = session().kept
    before = last_trainings()
    try:
        job = start_job(plan.states(), before.job if before else None)
    except (ConfigError, MemoryLimitError, TimeLimitError) as error:
        remembered[REFUSED] = plan, str(error)
        return
    remembered.pop(REFUSED, None)
    remembered[RUNNING] = StartedTrainings(plan, job, time.monotonic())


def reason_refused(plan: Plan) -> str:
    """Return why start_training() last refused exactly this plan, or ""."""
    refused_job, why = session().kept.get(REFUSED, (None, ""))
    return why if refused_job == plan else ""


def stop():
    """Stop the user's training, if there is one."""
    if last_trainings():
        last_trainings().job.stop()


def resume():
    """Continue the user's stopped training where it was; do nothing without one."""
    if last_trainings():
        last_trainings().job.resume()


def describe_status(job: Job) -> str:
    """Describe a job in words: its progress and remaining time, its end or its error."""
    n_runs = count(len(job.states), "run")
    left = format_duration(job.seconds_left())
    if job.error is not None:
        return (
            f"Training failed ({type(job.error).__name__}: {remove_paths(str(job.error))[:200]})."
        )
    if job.stopped:
        return f"Stopped at {100 * job.progress:.0f} %, about {left} remaining."
    if job.done:
        cached = f" ({job.known} cached)" if job.known else ""
        return f"Done: {n_runs}{cached}."
    others = job.workers.sharing - 1
    shared = (
        f", sharing the workers with {count(others, 'other training job')}"
        if others >= job.workers.count
        else ""
    )
    if not job.progress:
        return f"Starting {n_runs}{shared}"
    return f"{100 * job.progress:.0f} % of {n_runs}, about {left} left{shared}"


def show_progress_elsewhere():
    """Draw the last training's progress until its page has shown the end; not for that page."""
    trainings = last_trainings()
    if trainings and trainings.going:
        fragment(_show_progress, run_every=2.0)(trainings)
    elif trainings and session().kept.get(SHOWN) is not trainings.job:
        _draw_status(trainings)


def _show_progress(trainings: StartedTrainings):
    """Poll the job, which keeps it alive, and draw its status; rerun the page at its end."""
    trainings.job.poll()
    _draw_status(trainings)
    if not trainings.going:
        st.rerun()


def _draw_status(trainings: StartedTrainings):
    """Draw a caption with the training's status, and why its plan was refused, if it was."""
    job = trainings.job
    text = describe_status(job)
    if job.error is None:
        is_over = job.stopped or job.done
        text = f"Training {text[0].lower()}{text[1:]}" if is_over else f"Training: {text}"
    words = f"{text} {literal(reason_refused(trainings.plan))}"
    st.caption(f":material/model_training: {words.strip()}")


def mark_as_shown(trainings: StartedTrainings):
    """Record that the page has drawn the training's end; do nothing while it still runs."""
    if not trainings.going:
        session().kept[SHOWN] = trainings.job
