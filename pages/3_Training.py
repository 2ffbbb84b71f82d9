"""Training: baseline and variants learn a small task side by side, several seeds each, live."""

from functools import partial

import streamlit as st

from core.experiments.training.plan import Trial, plan
from core.export.training import training_script
from core.model.variants import lineup
from core.settings.device import Machine
from core.train import Training
from core.train.learner import Learner, Removed
from ui.kit import controls, jobs, pins, takeaway
from ui.kit.page import heading, literal, page
from ui.shared.models import OPEN
from ui.training import frame
from ui.training.base import TrainingLook

KINDS = (Training, Learner, Machine, Removed, Trial)
HIDDEN = ("task", "padding")  # the task stands above; its sequences need no padding


def sidebar(training, *others):
    with st.sidebar:
        for group in ("Comparison", "Task", "Training", "Size", "Parts", "More parts", "More training", "Machine"):
            if group == "Task" and len(controls.choices(training, "length")) == 1:
                continue
            with st.expander(group, expanded=group in ("Comparison", "Training", "Size", "Parts")):
                for settings in (training, *others):
                    controls.group(settings, group, without=HIDDEN)
        st.button(
            "Back to the task's settings",
            on_click=controls.take,
            args=({"task": training.task}, *KINDS),
            icon=":material/restart_alt:",
            width="stretch",
        )


with page("Training"):
    if OPEN in st.session_state:
        st.switch_page("pages/5_Trained_model.py")
    (training, learner, machine, pinned, trial, look), notes = controls.settings("training", *KINDS, TrainingLook)
    config = learner.plain()
    sidebar(training, learner, machine, trial)
    corner = heading("Training")
    frame.task_row(training)
    pins.row(config, pinned)
    variants, left_out = lineup(config, pinned, padding=0)
    planned, not_combined = plan(variants, training, trial, machine)
    for note in notes:
        st.warning(literal(note), icon=":material/info:")
    for reason in [*left_out, *not_combined]:
        st.caption(literal(reason))
    if look.begin:
        controls.amend(look, begin=False)
        if not notes:  # else it would be something else than what the link asked for
            jobs.begin(planned)
            st.rerun()
    frame.bar(planned, KINDS)
    frame.body(planned, look, KINDS)
    with corner:
        takeaway.offer(
            "Training",
            {label: partial(training_script, flavour, planned) for label, flavour in takeaway.FLAVOURS.items()},
            frame.models(jobs.running()),
        )
