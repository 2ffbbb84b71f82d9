"""What the views of the page "Training" share: their menu and what is looked at."""

from dataclasses import dataclass

import streamlit as st

from core.dial import dial
from core.experiments import training as results
from core.experiments.trained import contrast
from core.menu import Menu
from core.tasks import task
from core.text import PAD
from core.train import held_out
from ui import pins
from ui.jobs import Running

MOST = 64  # sequences of the test that can be looked at

views = Menu("Views of training")


@dataclass(frozen=True)
class TrainingLook:
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


def shown(running: Running) -> list:
    """The models that have a colour: the baseline and its variants, without their combinations."""
    return [arm for arm in running.plan.arms if arm.place is not None]


def label(arm) -> str:
    return f"{arm.name} ({arm.note})" if arm.note else arm.name


def legend(running: Running, said=None):
    """Who has which colour, and what all have in common."""
    plan = running.plan
    ended = {arm.name: gone(running, arm.name) for arm in shown(running)} if said is None else said
    first, last = plan.seeds[0], plan.seeds[-1]
    seeds = f"seeds {first} to {last}" if last > first else f"seed {first}"
    if last - first >= len(plan.seeds):  # a study may have any seeds
        seeds = f"{len(plan.seeds)} seeds from {first} to {last}"
    common = [
        f"{running.origin}, {seeds}. Paired: same seed, same data, and the same initial weights where shapes agree."
    ]
    if any("diverged" in (text or "") for text in ended.values()):
        common.append(pins.DIVERGED)
    marks = [(arm.place, label(arm), ended.get(arm.name)) for arm in shown(running)]
    pins.marks(marks, common)


def gone(running: Running, name: str) -> str | None:
    """ "diverged at step k, seed s", for all seeds that did."""
    steps = [(seed, running.runs[name, seed]) for seed in running.plan.seeds]
    lost = sorted((rows[-1].step, seed, results.diverged(rows)) for seed, rows in steps if results.diverged(rows))
    told = [f"{said}, seed {seed}" for _, seed, said in lost]  # the first to go comes first
    if len(told) > 2:
        return f"{told[0]}; {len(told)} of {len(steps)} seeds diverged"
    return "; ".join(told) or None


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


def pick_sequence(running: Running):
    learnt = task[running.plan.training.task]
    st.selectbox(
        "Sequence",
        range(min(MOST, learnt.test) + 1),
        format_func=lambda n: f"test sequence {n}" if n else "a test sequence on which the models differ",
        key="sequence",
        label_visibility="collapsed",
    )
