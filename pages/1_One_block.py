"""Page One block: a sentence, one transformer block, and the effect of its parts."""

from functools import partial

import streamlit as st

from core.checkpoints import family
from core.experiments.forward import forward
from core.model.generate import Sampling
from core.model.text import Input, split_up_to_limit
from core.model.variants import Pins
from core.settings.device import Machine
from core.train.dial import model_size
from ui.block.context import BlockConfig, BlockContext, BlockLook
from ui.block.controls import (
    NOTES,
    availability_check,
    baseline,
    carried_settings,
    draw_unknown_tokens,
    open_block,
    script,
    weights_controls,
)
from ui.block.side_by_side import draw_with_and_without
from ui.block.train_model import draw_missing_model
from ui.kit import model_job, pins, takeaway
from ui.kit.page import draw_head, draw_notice, draw_sidebar, page, warn
from ui.kit.pages import ONE_BLOCK
from ui.kit.store import change, reset
from ui.shared.base import NO_WORD, sentence_controls
from ui.shared.dial import dial_controls
from ui.shared.published import draw_published_note, published_controls

GROUPS = ("Next token", "Size", "Components", "Attention details", "More components", "Machine")
FOLDED = ("Attention details", "More components", "Machine")


def _open_size(size: int):
    """Set width, heads and layers to those of a size of the dial (a callback)."""
    change(**model_size(size))


def draw():
    """Draw the page One block, in local scope since Streamlit keeps globals alive."""
    with page(ONE_BLOCK):
        kinds = (Input, BlockConfig, Machine, BlockLook, Pins, Sampling)
        (text, chosen, machine, look, pinned, sampling), notes = ONE_BLOCK.settings(*kinds)
        config = chosen.config_shown
        kind = chosen.weights
        back = partial(reset, BlockConfig, Machine, weights=kind)
        dial = dial_controls(chosen.plain, _open_size) if kind != "cut" else []
        draw_sidebar(
            GROUPS if look.view == "text" else GROUPS[1:],
            chosen,
            machine,
            look,
            sampling,
            folded=FOLDED,
            on_reset=back,
            without=[name for name in chosen.unavailable if name not in family.SIZES],
            fixed=chosen.fixed_sizes,
            carried=carried_settings(chosen),
            notes=NOTES[kind],
            controls_above={"Size": dial},
        )
        compared = pins.variant_controls(
            baseline(kind, config),
            pinned,
            lambda text: change(beside=text),
            availability_check(kind),
        )
        draw_head(
            ONE_BLOCK,
            [ONE_BLOCK.tabs(), *compared],
            beside_title=[
                *sentence_controls(),
                *weights_controls(),
                *published_controls(config, open_block),
            ],
        )
        if kind == "random":
            draw_published_note(config)
        tokens, cuts = split_up_to_limit(text.text)
        if not tokens:
            draw_notice(*notes, *cuts)
            st.info(NO_WORD, icon=":material/edit:")
            return
        try:
            forward_pass = forward(config, tokens, machine, look.apply_dropout, kind)
        except Exception:
            draw_notice(*notes, *cuts)
            raise
        context = BlockContext(text.text, forward_pass, pinned, look, sampling)

        def draw_warnings():
            warn(*notes, *cuts)
            if config != chosen.plain:
                draw_missing_model(chosen.plain, config)
            else:
                model_job.show_model_elsewhere()
            draw_unknown_tokens(kind, tokens)
            if not forward_pass.finite:
                warn(
                    "Some values became infinite or NaN: they exceeded the range of"
                    f" {machine.dtype}."
                )

        draw_with_and_without(context, draw_warnings)
        takeaway.draw_export(ONE_BLOCK.name, partial(script, context))


draw()
