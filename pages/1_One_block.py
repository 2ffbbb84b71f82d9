"""One block: a sentence, one transformer block, and what each of its parts does to it."""

from functools import partial

import streamlit as st

from core import cost
from core.config import Config
from core.device import Machine
from core.experiments.forward import forward
from core.export import scripts as export
from core.text import Input, cut
from core.variants import Pins, lineup
from ui import controls, drawing, pins, takeaway
from ui.page import heading, literal, page
from ui.sentence import sentence
from ui.views import views
from ui.views.base import Look, count, weights


def sidebar(config, machine, look):
    with st.sidebar:
        for group in ("Size", "Parts", "More parts", "Machine"):
            with st.expander(group, expanded=group in ("Size", "Parts")):
                for settings in (config, machine):
                    controls.group(settings, group)
                if group == "More parts":
                    controls.control(look, "apply_dropout")
        st.button(
            "Back to the defaults",
            on_click=controls.reset,
            args=(Config, Machine),
            icon=":material/restart_alt:",
            width="stretch",
        )


def summary(seen):
    blocks = f"{seen.config.n_layers} blocks" if seen.config.n_layers > 1 else "the block"
    parameters = sum(cost.parameters(seen.config).values())
    operations = sum(cost.flops(seen.config, len(seen.tokens)).values())
    padding = f" + {seen.config.padding} padding" if seen.config.padding else ""
    st.markdown(
        f"**{parameters:,} parameters** in {blocks}  \n{count(seen.n_real, 'token')}{padding} · {operations / 1e6:.3g} MFLOP  \n"
        f"{seen.milliseconds:.2f} ms on {seen.machine.name}, {seen.machine.dtype}  \n:gray[{weights(seen)}]"
    )


def scripts(seen, view, pinned):
    """What writes the scripts of this page."""
    tokens = seen.tokens[: seen.n_real]
    write, what = export.block_script, seen.config
    if view == "compare":
        write, what = export.compare_script, lineup(seen.config, pinned)[0]
    given = what, tokens, seen.machine, seen.dropout
    return {label: partial(write, flavour, *given) for label, flavour in takeaway.FLAVOURS.items()}


with page("One block", ":material/view_agenda:"):
    (text, config, machine, look, pinned), notes = controls.settings("one_block", Input, Config, Machine, Look, Pins)
    sidebar(config, machine, look)
    corner = heading("One block")
    sentence()
    pins.row(config, pinned, on_choice={"view": "compare"})
    st.segmented_control(
        "View", list(views), format_func=views.label, key="view", label_visibility="collapsed", required=True, wrap=True
    )
    tokens, cuts = cut(text.text)
    for note in [*notes, *cuts]:
        st.warning(literal(note), icon=":material/info:")
    if tokens:
        seen = forward(config, tokens, machine, look.apply_dropout)
        if not seen.finite:
            st.warning(f"Some numbers have left the range of {machine.dtype}: they are infinite, or no numbers at all.")
        picture, view = st.columns([3, 7], gap="medium")
        with picture:
            drawing.block(seen, look.layer_of(seen))
            summary(seen)
        with view:
            views[look.view](seen, look)
        with corner:
            takeaway.offer("One block", scripts(seen, look.view, pinned))
    else:
        st.info("There is no word to work on. Type a sentence above, or choose an example.", icon=":material/edit:")
