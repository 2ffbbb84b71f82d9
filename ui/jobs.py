"""A visitor's training: started, shown, stopped. One at a time for each visitor, all in the same few worker processes."""

import threading
import time
from dataclasses import dataclass

import streamlit as st

from core.dial import ConfigError
from core.experiments.training import Plan
from core.jobs import Job, Workers
from core.memory import MemoryLimit
from core.train.budget import TimeLimit, check, duration

RUNNING, REFUSED, SHOWN = "_running", "_refused", "_shown"  # keys in the session
TICK = 0.4  # seconds between two looks at a job
PATIENCE = 0.3  # seconds for which a page just begun waits for its first point, rather than for the next look


@dataclass(frozen=True)
class Running:
    """What was started, and the job that does it."""

    plan: Plan
    job: Job
    since: float
    origin = "Trained here"

    @property
    def runs(self) -> dict:
        return self.job.rows

    @property
    def going(self) -> bool:
        return not self.job.done


@st.cache_resource
def workers() -> Workers:
    """The worker processes, for all visitors."""
    return Workers()


@st.cache_resource
def warm():
    """Start them as soon as the first page has been drawn, before anybody asks for a training."""
    made = workers()
    timer = threading.Timer(1.0, made.warm)
    timer.daemon = True
    timer.start()


def first_point(made: Running):
    """Wait a little for the first point of what was started a moment ago."""
    end = made.since + PATIENCE
    while made.going and not any(made.runs.values()) and time.monotonic() < end:
        time.sleep(0.01)


def running() -> Running | None:
    return st.session_state.get(RUNNING)


def begin(plan: Plan):
    """Start what is planned; what this visitor had going ends. What cannot be started is said in words by refused()."""
    pool, old = workers(), running()
    try:
        states = plan.states()
        check(list(states.values()), pool.count, pool.best_pace)
    except (ConfigError, MemoryLimit, TimeLimit) as error:
        st.session_state[REFUSED] = plan, str(error)
        return
    st.session_state.pop(REFUSED, None)
    if old:
        old.job.stop()
    st.session_state[RUNNING] = Running(plan, Job(pool, states), time.monotonic())


def refused(plan: Plan) -> str:
    """Why the plan was not started when that was asked for, or nothing."""
    asked, why = st.session_state.get(REFUSED, (None, ""))
    return why if asked == plan else ""


def stop():
    if running():
        running().job.stop()


def resume():
    if running():
        running().job.resume()


def status(job: Job) -> str:
    """What the job is doing, in few words."""
    if job.error is not None:
        return f"This training failed ({type(job.error).__name__}: {str(job.error)[:200]})."
    if job.stopped:
        return f"Stopped at {job.progress:.0%}."
    if job.done:
        known = f", {job.known} of them known from before" if job.known else ""
        return f"Done: {count(job)}{known}."
    before = job.workers.place(job)
    if before:
        return f"Waiting: {before} before you."
    left = job.seconds_left()
    return f"{job.progress:.0%} of {count(job)}" + (f", about {duration(left)} left" if left is not None else "")


def count(job: Job) -> str:
    return f"{len(job.states)} training{'s' * (len(job.states) > 1)}"


def elsewhere():
    """On other pages: goes on, and says how far it is, until its own page has shown the end."""
    made = running()
    if made and made.going:
        st.fragment(run_every=2.0)(_elsewhere)(made.job)
    elif made and st.session_state.get(SHOWN) is not made.job:
        _say(made.job)


def _elsewhere(job: Job):
    _say(job.poll())
    if job.done:
        st.rerun()


def _say(job: Job):
    st.caption(f":material/model_training: {'Trained' if job.done else 'Training'}: {status(job)}")


def shown(made: Running):
    """Its own page has drawn it: other pages need not speak of its end any more."""
    if not made.going:
        st.session_state[SHOWN] = made.job
