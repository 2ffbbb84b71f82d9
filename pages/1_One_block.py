"""One block: a sentence, one transformer block, and what each of its parts does to it."""

from functools import partial

import streamlit as st

from core.experiments.forward import forward
from core.model.config import Config
from core.model.text import Input, cut
from core.model.variants import Pins
from core.settings.device import Machine
from ui.block.context import BlockContext, BlockLook
from ui.block.summary import summary
from ui.block.taken_away import scripts
from ui.kit import pins, takeaway
from ui.kit.page import heading, notice, page, sidebar
from ui.kit.pages import ONE_BLOCK
from ui.kit.session import values
from ui.pictures import drawing
from ui.shared.sentence import NO_WORD, sentence

GROUPS = ("Size", "Parts", "More parts", "Machine")

with page(ONE_BLOCK):
    (text, config, machine, look, pinned), notes = ONE_BLOCK.settings(Input, Config, Machine, BlockLook, Pins)
    back = partial(values.reset, Config, Machine)
    sidebar(GROUPS, config, machine, look, folded=("More parts", "Machine"), back=back)
    corner = heading(ONE_BLOCK)
    sentence()
    pins.row(config, pinned, on_choice={"view": "compare"})
    ONE_BLOCK.view_buttons()
    tokens, cuts = cut(text.text)
    notice(*notes, *cuts)
    if tokens:
        context = BlockContext(text.text, forward(config, tokens, machine, look.apply_dropout), pinned, look)
        if not context.forward_pass.finite:
            st.warning(f"Some numbers became infinite or NaN: they left the range of {machine.dtype}.")
        picture, view = st.columns([3, 7], gap="medium")
        with picture:
            drawing.block(context.forward_pass, look.layer_of(context.forward_pass))
            summary(context.forward_pass)
        with view:
            ONE_BLOCK.open_view(context)
        with corner:
            takeaway.offer(ONE_BLOCK.name, scripts(context))
    else:
        st.info(NO_WORD, icon=":material/edit:")
