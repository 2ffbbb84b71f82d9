"""Which sequence of the test a view shows."""

import streamlit as st

from core.experiments.training.trained import contrast
from core.model.text import PAD
from core.tasks import task
from core.train import held_out
from ui.kit.store import bind
from ui.shared.trainings import arms_shown
from ui.training.context import TrainingContext

MOST = 64  # sequences of the test that can be looked at


def without_models(context: TrainingContext) -> bool:
    """Whether only the numbers are there, and none of the models that a view would ask; then says so."""
    if context.trainings.states:
        return False
    st.info(
        "These results came without their models, and only a model can answer. Train it here to ask one.",
        icon=":material/model_training:",
    )
    return True


def sequence(context: TrainingContext):
    """One sequence of the test of the first seed, without padding -> (task, tokens (T,), targets (T,)). The longest come
    first; number 0 is one on which the models differ most."""
    plan, look = context.trainings.plan, context.look
    training, seed = plan.training, plan.seeds[0]
    learnt = task[training.task]
    tokens, targets = held_out(training.task, seed, training.length)
    empty = tokens == (learnt.vocabulary.index(PAD) if PAD in learnt.vocabulary else -1)
    order = empty.sum(1).argsort(stable=True)[:MOST]
    if look.sequence:
        at = order[min(look.sequence, len(order)) - 1]
    else:
        states = [context.trainings.states[arm.name, seed] for arm in arms_shown(context.trainings)]
        at = order[contrast(states, tokens[order], targets[order])]
    return learnt, tokens[at, ~empty[at]], targets[at, ~empty[at]]


def pick_sequence(context: TrainingContext):
    offered = range(min(MOST, task[context.trainings.plan.training.task].test) + 1)
    st.selectbox(
        "Sequence",
        offered,
        format_func=lambda n: f"test sequence {n}" if n else "a test sequence on which the models differ",
        **bind("sequence", min(context.look.sequence, offered[-1])),
        label_visibility="collapsed",
    )
