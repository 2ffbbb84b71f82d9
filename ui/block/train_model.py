"""Offer, on One block, to train a model that has no weights yet, and the progress of it."""

import streamlit as st

from core.checkpoints import family
from core.experiments.weights import weights
from core.model.config import Config
from core.settings.wording import lower_first
from core.train.budget import estimate_seconds, format_duration
from core.workers.job import Job
from ui.kit import jobs, model_job
from ui.kit.guard import fragment
from ui.kit.page import literal, warn


def draw_missing_model(config: Config, nearest: Config):
    """Say that no model has these settings and which is shown instead; offer to train one.

    Args:
        config: Settings of the panel.
        nearest: Settings of the model that is shown instead.
    """
    config = family.strip_config(config).replace(seed=config.seed)
    started = model_job.find_started()
    if started and started.config != config:
        model_job.show_model_elsewhere()
        started = None
    reason = weights["trained"].refused(config)
    nearest_model = lower_first(weights["trained"].describe(nearest))
    with st.container(horizontal=True, vertical_alignment="center", key="missing_model"):
        sentences = literal(f"{reason} Shown: {nearest_model}.")
        st.markdown(f":material/info: {sentences}", width="content")
        if started and started.job:
            fragment(_draw_progress, run_every=1.0)(started.job)
        else:
            seconds = jobs.workers().pace * estimate_seconds(config, family.TRAINING)
            st.button(
                f"Train this model (about {format_duration(seconds)})",
                key="train_model",
                icon=":material/model_training:",
                on_click=model_job.start_model,
                args=(config,),
            )
    if started and started.why_not:
        warn(started.why_not)


def _draw_progress(job: Job):
    """Draw the progress of a training and its stop button; at its end rerun the page."""
    if job.poll().done:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        words = f"Training: {model_job.describe_progress(job)}"
        st.progress(job.progress, text=words, width=220)
        st.button("Stop", key="stop_model", icon=":material/stop:", on_click=job.stop)
