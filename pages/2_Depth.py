"""Depth: the same block again and again, or many on top of each other, with and without its parts."""

from functools import partial

import streamlit as st

from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.export import scripts as export
from core.model.config import Config
from core.model.text import Input, cut
from core.model.variants import Pins, lineup
from core.settings.device import Machine
from ui.depth import views
from ui.depth.base import DepthLook, Seen
from ui.kit import controls, pins, takeaway
from ui.kit.page import heading, literal, page
from ui.kit.sentence import sentence

HIDDEN = ("n_layers", "dropout")  # depth is set by the passes; nothing is dropped here


def sidebar(config, machine, depth):
    with st.sidebar:
        for group in ("Depth", "Size", "Parts", "More parts", "Machine"):
            with st.expander(group, expanded=group in ("Depth", "Size", "Parts")):
                for settings in (depth, config, machine):
                    controls.group(settings, group, without=HIDDEN)
        st.button(
            "Back to the defaults",
            on_click=controls.reset,
            args=(Depth, Config, Machine, Pins, Axes),
            icon=":material/restart_alt:",
            width="stretch",
        )


def scripts(seen):
    """What writes the scripts of this page."""
    if seen.look.show == "grid":
        given = seen.baseline, seen.axes, seen.tokens, seen.machine, seen.depth
        return {label: partial(export.grid_script, flavour, *given) for label, flavour in takeaway.FLAVOURS.items()}
    given = seen.variants, seen.tokens, seen.machine, seen.depth
    return {label: partial(export.depth_script, flavour, *given) for label, flavour in takeaway.FLAVOURS.items()}


with page("Depth"):
    (text, config, machine, depth, pinned, look, axes), notes = controls.settings(
        "depth", Input, Config, Machine, Depth, Pins, DepthLook, Axes
    )
    sidebar(config, machine, depth)
    corner = heading("Depth")
    sentence()
    pins.row(config, pinned)
    controls.buttons("View", views, "show", wrap=True)
    tokens, cuts = cut(text.text)
    variants, left_out = lineup(config, pinned, n_layers=1, dropout=0.0)
    for note in [*notes, *cuts]:
        st.warning(literal(note), icon=":material/info:")
    for reason in left_out:
        st.caption(literal(reason))
    if tokens:
        seen = Seen(variants, tuple(tokens), machine, depth, pinned, look, axes)
        views[look.show](seen)
        with corner:
            takeaway.offer("Depth", scripts(seen))
    else:
        st.info("There is no word to work on. Type a sentence above, or choose an example.", icon=":material/edit:")
