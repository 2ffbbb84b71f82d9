"""One block: a sentence, one transformer block, and what each of its parts does to it."""

from functools import partial

import streamlit as st

from core.experiments.block import attention as experiment
from core.experiments.forward import forward
from core.export import scripts as export
from core.model import cost
from core.model.config import Config
from core.model.text import Input, cut
from core.model.variants import Pins, lineup
from core.settings.device import Machine
from core.settings.wording import KEY, count
from ui.block import views
from ui.block.base import Look
from ui.kit import controls, pins, takeaway
from ui.kit.page import capital, heading, literal, page
from ui.kit.sentence import sentence
from ui.pictures import drawing
from ui.shared.base import weights


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
    blocks = count(seen.config.n_layers, "block") if seen.config.n_layers > 1 else "the block"
    parameters = sum(cost.parameters(seen.config).values())
    operations = sum(cost.flops(seen.config, len(seen.tokens)).values())
    padding = f" + {seen.config.padding} padding" if seen.config.padding else ""
    key = f"  \n:gray[{capital(KEY)}]" if seen.layered else ""
    st.markdown(
        f"**{parameters:,} parameters** in {blocks}  \n{count(seen.n_real, 'token')}{padding} · {operations / 1e6:.3g} MFLOP  \n"
        f"{seen.timing} on {seen.machine.name}, {seen.machine.dtype}  \n:gray[{weights(seen)}]{key}"
    )


def scripts(seen, look, pinned):
    """What writes the scripts of this page."""
    tokens = seen.tokens[: seen.n_real]
    write, what = export.block_script, seen.config
    if look.view == "compare":
        write, what = export.compare_script, lineup(seen.config, pinned)[0]
    given = what, tokens, seen.machine, seen.dropout
    if look.view == "heads" and look.compare and seen.config.attention:
        recut = {count(number, "head"): made for number, made in experiment.recut(seen.config).items() if made}
        write, given = export.heads_script, (seen.config, recut, *given[1:])
    return {label: partial(write, flavour, *given) for label, flavour in takeaway.FLAVOURS.items()}


with page("One block"):
    (text, config, machine, look, pinned), notes = controls.settings("one_block", Input, Config, Machine, Look, Pins)
    sidebar(config, machine, look)
    corner = heading("One block")
    sentence()
    pins.row(config, pinned, on_choice={"view": "compare"})
    controls.buttons("View", views, "view", wrap=True)
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
            takeaway.offer("One block", scripts(seen, look, pinned))
    else:
        st.info("There is no word to work on. Type a sentence above, or choose an example.", icon=":material/edit:")
