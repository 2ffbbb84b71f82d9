"""The way from a training to the page "Trained model": one of its models is opened there."""

import streamlit as st

from core.checkpoints import own
from core.experiments.training.plan import Plan
from core.settings.memory import MemoryLimit
from ui.kit.jobs import StartedTrainings
from ui.kit.page import literal
from ui.kit.pages import TRAINED_MODEL
from ui.shared.models import OPEN, add
from ui.training.finished import FinishedTrainings, to_show


def trained_models(trainings: StartedTrainings | FinishedTrainings) -> list[tuple[str, int]]:
    """(arm, seed) of every model that learnt something and did not diverge."""
    states = trainings.states
    return [
        (arm.name, seed)
        for arm in trainings.plan.arms
        for seed in trainings.plan.seeds
        if (arm.name, seed) in states and states[arm.name, seed].step and not states[arm.name, seed].diverged
    ]


def menu(trainings: StartedTrainings | FinishedTrainings):
    """Open one of the models on the page for that, where there are any."""
    offered = {f"{arm}, seed {seed}": (arm, seed) for arm, seed in trained_models(trainings)}
    if offered:
        st.menu_button(
            "Take one apart", list(offered), key="take_apart", icon=":material/content_cut:", type="tertiary",
            on_click=_chosen, args=(offered, trainings.plan), help=f"Open a trained model on the page {TRAINED_MODEL.name}: its heads, its answers, knock-outs.",
        )  # fmt: skip


def _chosen(offered: dict[str, tuple[str, int]], plan: Plan):
    trainings = to_show(plan)
    state = trainings.states.get(offered.get(st.session_state.take_apart)) if trainings else None
    if state is None:  # it has been forgotten since
        return
    arm, seed = offered[st.session_state.take_apart]
    name = f"{state.training.task}: {arm}, seed {seed}, step {state.step:,}"
    try:
        st.session_state[OPEN] = add(own.of_training(state, name))
    except MemoryLimit as error:
        st.toast(literal(error), icon=":material/block:", duration="long")
