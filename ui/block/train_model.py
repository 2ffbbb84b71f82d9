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


def draw_missing_model(config: Config, nearest: Config):
    """Say that no model has these settings and which is shown instead; offer to train one.

    Args:
        config: Settings of the panel.
        nearest: Settings of the model that is shown instead.
    """
    config = family.strip_config(config).replace(seed=config.seed)
    started = _find_started(config)
    if started.job and started.job.done:
        if _store(started.job):
            st.rerun()
        started = _find_started(config)
    reason = weights["trained"].refused(config)
    nearest_model = lower_first(weights["trained"].describe(nearest))
    with st.container(horizontal=True, vertical_alignment="center", key="missing_model"):
        sentences = literal(f"{reason} Shown: {nearest_model}.")
        st.markdown(f":material/info: {sentences}", width="content")
        if started.job:
            fragment(_draw_progress, run_every=1.0)(started.job)
        else:
            seconds = jobs.workers().pace * estimate_seconds(config, family.TRAINING)
            st.button(
                f"Train this model (about {format_duration(seconds)})",
                key="train_model",
                icon=":material/model_training:",
                on_click=_start,
                args=(config,),
            )
    if started.why_not:
        warn(started.why_not)


def _find_started(config: Config) -> Started:
    """Return this user's training of a config, or why it failed; one without a job if none."""
    started = session().kept.get(STARTED)
    return started if started and started.config == config else Started(config, None)


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
