"""A user's training of a model for One block. It goes on while the user looks at other pages."""

from typing import NamedTuple

import streamlit as st

from core.checkpoints import family
from core.experiments.weights import weights
from core.model.config import Config
from core.settings.memory import MemoryLimitError
from core.settings.setting import ConfigError
from core.train import start
from core.train.budget import TimeLimitError, format_duration
from core.workers.job import Job
from ui.kit import jobs
from ui.kit.guard import fragment, literal
from ui.kit.store import session

STARTED = "model_in_training"  # in a session's `kept`


class Started(NamedTuple):
    """Model that a user trains: its settings and seed, and the job, or why there is none."""

    config: Config
    job: Job | None
    why_not: str = ""


def find_started() -> Started | None:
    """Return what this user has started last; None for nothing."""
    return session().kept.get(STARTED)


def start_model(config: Config):
    """Start the training in place of this user's last one, or store why not (a callback)."""
    before = find_started()
    try:
        state = start(config, family.TRAINING, config.seed)
        job = jobs.start_job({"model": state}, before.job if before else None)
    except (ConfigError, MemoryLimitError, TimeLimitError) as error:
        session().kept[STARTED] = Started(config, None, str(error))
        return
    session().kept[STARTED] = Started(config, job)


def store_finished():
    """Store the model for all users if its training has ended, and say so; else note why not."""
    started = find_started()
    if not started or not started.job or not started.job.done:
        return
    (state,) = started.job.states.values()
    why_not = jobs.describe_status(started.job) if started.job.error else ""
    if state.diverged:
        why_not = f"The training diverged at step {state.step:,}, so there is no model to show."
    elif state.done:
        try:
            family.save_trained(state)
            model = literal(weights["trained"].describe(state.config))
            st.toast(f"{model}: done. *Trained model* lists it.", icon=":material/check:")
        except OSError as error:
            why_not = f"The trained model could not be stored ({error.strerror})."
    session().kept[STARTED] = Started(state.config, None, why_not)


def show_model_elsewhere():
    """Draw the progress of the user's training where it is not shown itself; nothing without."""
    started = find_started()
    if started and started.job:
        fragment(_show_status, run_every=2.0)(started)


def describe_progress(job: Job) -> str:
    """Describe how far a training is: "14 %, about 2 min left"."""
    left = f"about {format_duration(job.seconds_left())} left" if job.progress else "starting"
    return f"{100 * job.progress:.0f} %, {left}"


def _show_status(started: Started):
    """Poll the job, which keeps it alive, and draw its progress; rerun the page at its end."""
    if started.job.poll().done:
        st.rerun()
    label = literal(family.label(family.member_of(started.config)))
    st.caption(f":material/model_training: Training {label}: {describe_progress(started.job)}")
