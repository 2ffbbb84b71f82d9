"""Trained model: a small language model that ships, or one of your own; what its heads do, and what becomes of it without them."""

from functools import partial

import streamlit as st

from core.checkpoints import CheckpointError
from core.model.generate import Sampling
from core.model.knockout import read_cuts
from ui.kit import takeaway
from ui.kit.page import figure, head, notice, page, sidebar
from ui.kit.pages import TRAINED_MODEL
from ui.kit.panel.panel import bar
from ui.kit.store import reset
from ui.pictures import drawing
from ui.shared.base import LOST, typed
from ui.shared.models import OPEN, known, prompts
from ui.trained.context import TrainedContext, TrainedLook, switch, with_knockout
from ui.trained.controls import as_read, knockout_row, model_file, script, summary, words_row
from ui.trained.model_list import bring, model_list

KINDS = (TrainedLook, Sampling)
GROUPS = {  # group of the sidebar -> the views that depend on it; none: every view
    "Model": (),
    "Next word": ("words",),
    "Measured on": ("attention", "knockout", "sweep", "credit"),
}
DRAWN = ("attention", "steps")  # views beside which the block is drawn
SHOWN = ("attention", "steps", "layers", "pairs")  # views of the pass with the knock-out, or without it
READ = (*SHOWN, "words", "knockout")  # views of what the model makes of the text
OF_TABLES = ("without",)  # views that read no text: what they show was measured before


def _opened(context, cuts):
    """The view that is open, beside the drawing where it is about what is drawn."""
    look = context.look
    if look.taken in READ and not context.whole.finite:
        figure("No numbers to show", LOST)
        return
    if look.taken in SHOWN and not context.shown.finite:
        with_knockout(context)  # the switch back to the whole model
        figure("No numbers to show", LOST)
        return
    if look.taken not in DRAWN:
        TRAINED_MODEL.open_view(context)
        return
    picture, view = st.columns([3, 7], gap="medium")
    with picture:
        drawing.block(context.whole, look.layer_of(context.whole), knocked=cuts, below=summary(context), on_pick=switch)
    with view:
        TRAINED_MODEL.open_view(context)


def draw():
    """In names of its own: what a script has named at its top is kept as long as a callback of it, and so the passes were."""
    with page(TRAINED_MODEL):
        opened = st.session_state.pop(OPEN, None)
        if opened:
            TRAINED_MODEL.open_with(KINDS, {"model": opened})
        try:
            (look, sampling), notes = TRAINED_MODEL.settings(*KINDS)
        except CheckpointError:  # no model can be opened: there is what brings one
            head(TRAINED_MODEL)
            with st.sidebar, st.expander("Model", expanded=True):
                bring()
            raise
        model = known(look.model)
        # Another one is shown, and its parts are other parts.
        gone = any(note.startswith("model is ") for note in notes)
        cuts, wrong = read_cuts("" if gone else look.out, model.config)
        groups = [group for group, views in GROUPS.items() if not views or look.taken in views]
        back = partial(reset, *KINDS, model=look.model)
        sidebar(groups, look, sampling, back=back, drawn={"Model": partial(model_list, look)})
        context = TrainedContext(model, cuts, sampling, look)
        reads = look.taken not in OF_TABLES
        # What every view has stands first: it stays under the hand that opens a view that reads no text.
        head(TRAINED_MODEL, [TRAINED_MODEL.tabs()])
        knockout_row(look, model.config, cuts)
        with st.container(gap="xxsmall"):
            if reads:
                text = typed("Prompt", "prompt", "Type a text …", dict(prompts(look.model)))
                bar("prompt", text, words_row(look, model))
                as_read(context.prompt)
            notice(*notes, *wrong)
        _opened(context, cuts)
        takeaway.offer(TRAINED_MODEL.name, partial(script, context), model_file(model))


draw()
