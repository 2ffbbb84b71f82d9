"""Training: baseline and variants learn a small task, with several seeds each, live."""

from functools import partial

import streamlit as st

from core.experiments.training.plan import Trial, plan
from core.export.scripts import make_training_script
from core.model.variants import lineup
from core.settings.device import Machine
from core.train import Training
from core.train.dial import model_size, steps_at
from core.train.settings import Learner, Removed
from ui.kit import jobs, pins, takeaway
from ui.kit.address import go_to
from ui.kit.page import draw_head, draw_notice, draw_sidebar, page
from ui.kit.pages import TRAINED_MODEL, TRAINING
from ui.kit.panel import panel
from ui.kit.panel.control import choices
from ui.kit.store import change, change_quietly, reset
from ui.shared.dial import dial_controls
from ui.shared.models import OPEN
from ui.shared.published import draw_published_note, published_controls
from ui.training.context import TrainingContext, TrainingLook
from ui.training.controls import (
    draw_live_view,
    draw_preset_cards,
    draw_training_bar,
    model_files,
    task_row,
)
from ui.training.finished import (
    DAMAGED,
    FinishedTrainings,
    find_finished,
    read_shipped_curves,
    select_trainings,
    verdict_files,
)

KINDS = (Training, Learner, Machine, Removed, Trial)
MORE = ("Attention details", "More components", "Training details", "Machine")
GROUPS = ("Comparison", "Task", "Training", "Size", "Components", *MORE)
FOLDED = ("Task", *MORE)
HIDDEN = ("task", "padding")  # the task stands above; its sequences need no padding


def groups(training: Training) -> list[str]:
    """Return the labels of the sidebar's groups, in order; no "Task" if its length is fixed."""
    return [group for group in GROUPS if group != "Task" or len(choices(training, "length")) > 1]


def _open_size(task_name: str, size: int):
    """Set width, heads, layers and steps to those of a size of the dial (a callback)."""
    change(**model_size(size), steps=steps_at(task_name, size))


with page(TRAINING):
    if OPEN in st.session_state:
        go_to(TRAINED_MODEL.path)
    (training, learner, machine, pinned, trial, look), notes = TRAINING.settings(
        *KINDS, TrainingLook
    )
    config = learner.plain()
    back = partial(reset, *KINDS, task=training.task)
    draw_sidebar(
        groups(training),
        training,
        learner,
        machine,
        trial,
        folded=FOLDED,
        without=HIDDEN,
        on_reset=back,
        controls_above={"Size": dial_controls(config, partial(_open_size, training.task))},
        label="Reset to task defaults",
    )
    chosen_task, about = task_row(training)
    draw_head(
        TRAINING,
        [about],
        beside_title=[
            chosen_task,
            *published_controls(
                config,
                lambda settings: reset(Learner, task=training.task, **settings),
                own_mask=False,
            ),
            *pins.variant_controls(config, pinned),
        ],
    )
    draw_published_note(config, own_mask=False)
    take_away = takeaway.draw_export_button()
    variants, left_out = lineup(config, pinned, padding=0)
    planned, not_combined = plan(variants, training, trial, machine)
    draw_notice(*notes, left_out=[*left_out, *not_combined])
    if look.begin:
        change_quietly(begin=False)
        if not notes:  # else it would be something else than what the link asked for
            finished_trainings = find_finished(planned)
            # What is known need not be trained; with its models at hand it is done at once.
            if not finished_trainings or finished_trainings.states:
                jobs.start_training(planned)
            st.rerun()
    draw_training_bar(planned, KINDS)
    trainings = select_trainings(planned)
    if trainings:
        empty = TrainingContext(trainings, look).empty_views()
        panel.draw_bar("views", [TRAINING.tabs(without=empty)])
        draw_live_view(trainings, planned, look)
        if isinstance(trainings, FinishedTrainings):
            st.caption(trainings.source)
    else:
        if None in read_shipped_curves():
            st.caption(DAMAGED)
        draw_preset_cards(KINDS)
    # The settings may have changed since the training began.
    shown_plan = trainings.plan if trainings else planned
    takeaway.draw_export(
        TRAINING.name,
        partial(make_training_script, shown_plan),
        verdict_files(trainings) | model_files(trainings),
        button=take_away,
    )
