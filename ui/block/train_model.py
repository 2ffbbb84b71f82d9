"""Offer, on One block, to train a model that has no weights yet, and the progress of it."""

from typing import NamedTuple

import streamlit as st

from core.checkpoints import family
from core.experiments.weights import weights
from core.model.config import Config
from core.settings.memory import MemoryLimitError
from core.settings.setting import ConfigError
from core.settings.wording import lower_first
from core.train import start
from core.train.budget import TimeLimitError, estimate_seconds, format_duration
from core.workers.job import Job
from ui.kit import jobs
from ui.kit.guard import fragment
from ui.kit.page import literal, warn
from ui.kit.store import session

STARTED = "model_in_training"  # in a session's `kept`


class Started(NamedTuple):
    """Model that a user trains: its settings and seed, and the job, or why there is none."""

    config: Config
    job: Job | None
    why_not: str = ""


def draw_missing_model(wanted: Config, shown: Config):
    """Say that no model has the wanted settings and which is shown; offer to train it.

    Args:
        wanted: Settings of the panel.
        shown: Settings of the model that is shown instead.
    """
    wanted = family.strip_config(wanted).replace(seed=wanted.seed)
    started = session().kept.get(STARTED)
    if started is None or started.config != wanted:
        started = Started(wanted, None)
    if started.job and started.job.done and _store(started.job):
        st.rerun()
    why = weights["trained"].refused(wanted)
    shown_model = lower_first(weights["trained"].describe(shown))
    with st.container(horizontal=True, vertical_alignment="center", key="missing_model"):
        st.markdown(f":material/info: {literal(f'{why} Shown: {shown_model}.')}", width="content")
        if started.job and not started.job.done:
            fragment(_draw_progress, run_every=1.0)(started.job)
        else:
            seconds = jobs.workers().pace * estimate_seconds(wanted, family.TRAINING)
            st.button(
                f"Train this model (about {format_duration(seconds)})",
                key="train_model",
                icon=":material/model_training:",
                on_click=_start,
                args=(wanted,),
            )
    why_not = session().kept.get(STARTED, started).why_not
    if why_not:
        warn(why_not)


def _start(config: Config):
    """Start the training in place of this user's last one, or store why not (a callback)."""
    before = session().kept.get(STARTED)
    try:
        state = start(config, family.TRAINING, config.seed)
        job = jobs.start_job({"model": state}, before.job if before else None)
    except (ConfigError, MemoryLimitError, TimeLimitError) as error:
        session().kept[STARTED] = Started(config, None, str(error))
        return
    session().kept[STARTED] = Started(config, job)


def _draw_progress(job: Job):
    """Draw the progress of a training and its stop button; at its end rerun the page."""
    if job.poll().done:
        st.rerun()
    left = f"about {format_duration(job.seconds_left())} left" if job.progress else "starting"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(job.progress, text=f"Training: {100 * job.progress:.0f} %, {left}", width=220)
        st.button("Stop", key="stop_model", icon=":material/stop:", on_click=job.stop)


def _store(job: Job) -> bool:
    """Store the model of a job that is done, for all users; note why and return False if not."""
    (state,) = job.states.values()
    why_not = jobs.describe_status(job) if job.error else ""
    if state.diverged:
        why_not = f"The training diverged at step {state.step:,}, so there is no model to show."
    elif state.done:
        try:
            family.save_trained(state)
            return True
        except OSError as error:
            why_not = f"The trained model could not be stored ({error.strerror})."
    session().kept[STARTED] = Started(state.config, None, why_not)
    return False
