"""Trained model: a small language model that ships, or one of your own; what its heads do, and what becomes of it without them."""

from functools import partial

import streamlit as st

from core.checkpoints import CheckpointError
from core.experiments.trained import prompt
from core.experiments.trained.knockout import bench
from core.export.knockout import knockout_script
from core.model.generate import Sampling
from core.model.knockout import read_cuts
from ui.kit import controls, takeaway
from ui.kit.page import heading, literal, page
from ui.pictures import drawing
from ui.shared import models as choose
from ui.trained import frame, views
from ui.trained.base import Looked, ModelLook

KINDS = (ModelLook, Sampling)


def sidebar(look, sampling):
    with st.sidebar:
        with st.expander("Model", expanded=True):
            choose.controls(look)
        if look.taken == "words":
            with st.expander("Next word", expanded=True):
                controls.group(sampling, "Next word")
        if look.taken in ("attention", "knockout", "sweep", "credit"):
            with st.expander("Measured on", expanded=True):
                controls.control(look, "texts")
        st.button(
            "Back to the defaults",
            on_click=controls.take,
            args=({"model": look.model}, *KINDS),
            icon=":material/restart_alt:",
            width="stretch",
        )


def without():
    """What there is where no model can be opened: what brings one."""
    heading("Trained model")
    with st.sidebar, st.expander("Model", expanded=True):
        choose.bring()


with page("Trained model"):
    opened = st.session_state.pop(choose.OPEN, None)
    if opened:
        controls.take({"model": opened}, *KINDS)
    try:
        (look, sampling), notes = controls.settings("model", *KINDS)
    except CheckpointError:
        without()
        raise
    model = choose.known(look.model)
    gone = any(note.startswith("model is ") for note in notes)  # another one is shown, and its parts are other parts
    cuts, wrong = read_cuts("" if gone else look.out, model.config)
    sidebar(look, sampling)
    corner = heading("Trained model")
    frame.text_row(look)
    frame.knife_row(look, model.config, cuts)
    frame.key()
    controls.buttons("View", views, "taken", wrap=True)
    for note in [*notes, *wrong]:
        st.warning(literal(note), icon=":material/info:")
    read = prompt.read(model, look.prompt)
    for note in read.notes:
        st.caption(literal(note))
    frame.unknown(read)
    looked = Looked(bench(model, look.texts), read, cuts, look.mode, look)
    if look.taken in ("attention", "steps"):
        picture, view = st.columns([3, 7], gap="medium")
        with picture:
            drawing.block(looked.whole, look.layer_of(looked.whole), knocked=cuts)
            frame.summary(looked)
        with view:
            views[look.taken](looked, look)
    else:
        views[look.taken](looked, look)
    with corner:
        takeaway.offer(
            "Trained model",
            {
                "Python script with core (save it in the repository)": partial(
                    knockout_script, choose.folder_of(look.model), cuts, look.mode, look.texts
                )
            },
            choose.taken_away(model),
        )
