"""Trained model: attention, predictions and ablations of a small language model."""

from functools import partial
from html import escape

import streamlit as st

from core.checkpoints import CheckpointError
from core.model.generate import Sampling
from core.model.knockout import Cut, read_cuts
from core.model.text import shorten_token
from ui.kit import side_by_side, takeaway
from ui.kit.page import draw_head, draw_notice, draw_sidebar, figure, page
from ui.kit.pages import TRAINED_MODEL
from ui.kit.panel.panel import first_row
from ui.kit.store import reset
from ui.pictures import drawing
from ui.shared.base import LOST, text_controls, views_of_tab
from ui.shared.models import OPEN, example_prompts, open_model
from ui.trained.context import TrainedContext, TrainedLook, toggle_part
from ui.trained.controls import (
    draw_reading_notes,
    knockout_menu,
    list_model_files,
    remove_head_button,
    script,
    summary_html,
    word_controls,
)
from ui.trained.model_list import draw_model_list, draw_model_opener

KINDS = (TrainedLook, Sampling)
GROUPS = {  # group of the sidebar -> the views that depend on it; none: every view
    "Model": (),
    "Ablation": (),
    "Next token": ("words",),
    "Evaluation": ("attention", "knockout", "sweep", "credit"),
}
DRAWN = ("attention", "steps")  # views beside which the block is drawn
SHOWN = (
    "attention",
    "steps",
    "layers",
    "pairs",
)  # views of the pass with the knock-out, or without it
READ = (*SHOWN, "words", "knockout")  # views of what the model makes of the text
OF_TABLES = ("without",)  # views that read no text: what they show was measured before


def _draw_open_view(context: TrainedContext):
    """Draw the open view, or a notice if its pass has infinite or NaN values."""
    look = context.look
    if look.taken in READ and not context.full_pass.finite:
        figure("No numbers to show", LOST)
        return
    if look.taken in SHOWN and not context.shown_pass.finite:
        figure("No numbers to show", LOST)
        return
    TRAINED_MODEL.open_view(context)


def _describe_task(context: TrainedContext) -> str:
    """Return HTML above the block: what to click, and what it changes."""
    label = escape(shorten_token(context.prompt.labels[context.after]))
    return (
        "<b>What does a trained model need to predict?</b><br>Click a component to remove it, and"
        f" see the prediction after “{label}” change."
    )


def _draw_view(context: TrainedContext, cuts: tuple[Cut, ...]):
    """Draw the open view with its selector; attention and steps stand next to the block diagram."""
    look = context.look
    if look.taken in DRAWN:
        picture, view = drawing.columns_with_diagram()
        with picture:
            layer = look.layer_of(context.full_pass)
            drawing.draw_block(
                context.full_pass,
                layer,
                cuts=cuts,
                above=_describe_task(context),
                below=summary_html(context),
                on_pick=toggle_part,
                locked_with="out",
            )
    else:
        view = st.container()
    with view:
        rows = st.container()
        with side_by_side.rows_in(rows), first_row(views_of_tab(TRAINED_MODEL)):
            _draw_open_view(context)


def draw():
    """Draw the page Trained model, in local scope since Streamlit keeps globals alive."""
    with page(TRAINED_MODEL):
        opened = st.session_state.pop(OPEN, None)
        if opened:
            TRAINED_MODEL.open_with(KINDS, {"model": opened})
        try:
            (look, sampling), notes = TRAINED_MODEL.settings(*KINDS)
        except CheckpointError:  # no model can be opened: there is what brings one
            draw_head(TRAINED_MODEL)
            with st.sidebar, st.expander("Model", expanded=True):
                draw_model_opener()
            raise
        model = open_model(look.model)
        # Another model is shown instead, and its components differ.
        is_replaced = any(note.startswith("model is ") for note in notes)
        cuts, wrong = read_cuts("" if is_replaced else look.out, model.config)
        groups = [group for group, views in GROUPS.items() if not views or look.taken in views]
        back = partial(reset, *KINDS, model=look.model)
        without = ["out"] if cuts and look.taken in SHOWN else ["out", "knocked"]
        draw_sidebar(
            groups,
            look,
            sampling,
            on_reset=back,
            without=without,
            draw_by_group={"Model": partial(draw_model_list, look)},
        )
        context = TrainedContext(model, cuts, sampling, look)
        reads = look.taken not in OF_TABLES
        # What every view has stands first: it stays under the hand that opens a view that reads no
        # text.
        text = (
            text_controls("Prompt", "prompt", "Type some text …", dict(example_prompts(look.model)))
            if reads
            else []
        )
        if reads:
            text += word_controls(look, model)
        knock_out = [*knockout_menu(model.config, cuts), *remove_head_button(look, model, cuts)]
        draw_head(TRAINED_MODEL, [TRAINED_MODEL.tabs(), *knock_out], beside_title=text)
        with st.container(gap="xxsmall"):
            if reads:
                draw_reading_notes(context.prompt)
            draw_notice(*notes, *wrong)
        _draw_view(context, cuts)
        takeaway.draw_export(TRAINED_MODEL.name, partial(script, context), list_model_files(model))


draw()
