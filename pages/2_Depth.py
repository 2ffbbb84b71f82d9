"""Depth: one block applied repeatedly, or many stacked, with and without its components."""

from functools import partial

import streamlit as st

from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.model.config import Config
from core.model.text import Input, split_up_to_limit
from core.model.variants import Pins, lineup
from core.settings.device import Machine
from ui.depth.context import DepthContext, DepthLook, script
from ui.kit import pins, takeaway
from ui.kit.page import draw_head, draw_notice, draw_sidebar, page
from ui.kit.pages import DEPTH
from ui.kit.store import reset
from ui.shared.base import NO_WORD, sentence_controls

GROUPS = ("Depth", "Size", "Components", "Attention details", "More components", "Machine")
FOLDED = ("Attention details", "More components", "Machine")
HIDDEN = (
    "n_layers",
    "dropout",
    "ffn_dropout",
)  # depth is set by the passes; nothing is dropped here
WHOSE = "Random weights: this shows the effect of the architecture alone."


def draw():
    """Draw the page Depth, in local scope since Streamlit keeps globals alive."""
    with page(DEPTH):
        (text, config, machine, depth, pinned, look, axes), notes = DEPTH.settings(
            Input, Config, Machine, Depth, Pins, DepthLook, Axes
        )
        back = partial(reset, Depth, Config, Machine, Pins, Axes)
        notes_below = {"Depth": WHOSE}
        draw_sidebar(
            GROUPS,
            depth,
            config,
            machine,
            folded=FOLDED,
            without=HIDDEN,
            notes=notes_below,
            on_reset=back,
        )
        draw_head(
            DEPTH,
            [DEPTH.tabs(), *pins.variant_controls(config, pinned)],
            beside_title=sentence_controls(),
        )
        tokens, cuts = split_up_to_limit(text.text)
        variants, left_out = lineup(config, pinned, n_layers=1, dropout=0.0, ffn_dropout=False)
        draw_notice(*notes, *cuts, left_out=left_out)
        if tokens:
            context = DepthContext(variants, tuple(tokens), machine, depth, pinned, axes, look)
            DEPTH.open_view(context)
            takeaway.draw_export(DEPTH.name, partial(script, context))
        else:
            st.info(NO_WORD, icon=":material/edit:")


draw()
