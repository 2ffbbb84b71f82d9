"""What the views of the page "Training" share: their menu and what is looked at."""

from dataclasses import dataclass

import streamlit as st

from core.experiments.training.trained import contrast
from core.model.text import PAD
from core.settings.menu import Menu
from core.settings.setting import Settings, dial
from core.tasks import task
from core.train import held_out
from ui.kit.jobs import Running
from ui.kit.visitor import one_of
from ui.shared.trainings import shown

MOST = 64  # sequences of the test that can be looked at

views = Menu("Views of training")


@dataclass(frozen=True)
class TrainingLook(Settings):
    """What is looked at on the page "Training". Counted from 1, as on screen; more than there is means the last."""

    trained: str = dial("learning", "View", "What to look at.", group="Look", menu=views)
    trained_layer: int = dial(1, "Layer", "Which block of the stack.", group="Look", low=1, high=100, step=1)
    trained_head: int = dial(0, "Head", "Which head; 0: the average over all.", group="Look", low=0, high=64, step=1)
    sequence: int = dial(
        0,
        "Sequence",
        "Which sequence of the test; 0: one on which the models differ.",
        group="Look",
        low=0,
        high=64,
        step=1,
    )
    begin: bool = dial(False, "Begin", "Whether the training begins when the link is opened.", group="Look")


def sequence(running: Running, look: TrainingLook):
    """One sequence of the test of the first seed, without padding -> (task, tokens (T,), targets (T,)). The longest come
    first; number 0 is one on which the models differ most."""
    training, seed = running.plan.training, running.plan.seeds[0]
    learnt = task[training.task]
    tokens, targets = held_out(training.task, seed, training.length)
    empty = tokens == (learnt.vocabulary.index(PAD) if PAD in learnt.vocabulary else -1)
    order = empty.sum(1).argsort(stable=True)[:MOST]
    if look.sequence:
        at = order[min(look.sequence, len(order)) - 1]
    else:
        states = [running.job.states[arm.name, seed] for arm in shown(running)]
        at = order[contrast(states, tokens[order], targets[order])]
    return learnt, tokens[at, ~empty[at]], targets[at, ~empty[at]]


def pick_sequence(running: Running, look: TrainingLook):
    offered = range(min(MOST, task[running.plan.training.task].test) + 1)
    st.selectbox(
        "Sequence",
        offered,
        format_func=lambda n: f"test sequence {n}" if n else "a test sequence on which the models differ",
        **one_of("sequence", min(look.sequence, offered[-1]), offered),
        label_visibility="collapsed",
    )
