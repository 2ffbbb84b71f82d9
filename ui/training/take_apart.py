"""The way from a training to the page "Trained model": one of its models is opened there."""

import streamlit as st

from core.checkpoints import own
from core.settings.memory import MemoryLimit
from ui.kit import jobs
from ui.kit.jobs import StartedTrainings
from ui.kit.page import literal
from ui.kit.pages import TRAINED_MODEL
from ui.shared.models import OPEN, add


def trained_models(trainings: StartedTrainings) -> list[tuple[str, int]]:
    """(arm, seed) of every model that learnt something and did not diverge."""
    states = trainings.job.states
    return [
        (arm.name, seed)
        for arm in trainings.plan.arms
        for seed in trainings.plan.seeds
        if states[arm.name, seed].step and not states[arm.name, seed].diverged
    ]


def menu(trainings: StartedTrainings):
    """Open one of the models on the page for that, where there are any."""
    offered = {f"{arm}, seed {seed}": (arm, seed) for arm, seed in trained_models(trainings)}
    if offered:
        st.menu_button(
            "Take one apart", list(offered), key="take_apart", icon=":material/content_cut:", type="tertiary",
            on_click=_chosen, args=(offered,), help=f"Open a trained model on the page {TRAINED_MODEL.name}: its heads, its answers, knock-outs.",
        )  # fmt: skip


def _chosen(offered: dict[str, tuple[str, int]]):
    trainings = jobs.started()
    if st.session_state.take_apart not in offered or not trainings:
        return
    arm, seed = offered[st.session_state.take_apart]
    state = trainings.job.states[arm, seed]
    name = f"{state.training.task}: {arm}, seed {seed}, step {state.step:,}"
    try:
        st.session_state[OPEN] = add(own.of_training(state, name))
    except MemoryLimit as error:
        st.toast(literal(error), icon=":material/block:", duration="long")
