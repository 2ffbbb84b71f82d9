"""One block: a sentence, one transformer block, and what each of its parts does to it."""

import streamlit as st

from core import cost
from core.config import Config
from core.device import Machine
from core.experiments.forward import forward
from core.text import EXAMPLES, Input, cut
from ui import controls, drawing
from ui.page import literal, page
from ui.views import views
from ui.views.base import Look, count, weights

OWN = "Your own text"


def choose_example():
    chosen = next((example for example in EXAMPLES if example.name == st.session_state.example), None)
    if chosen:
        controls.put(text=chosen.text, pairs="")


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


def sentence():
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names = [example.name for example in EXAMPLES]
    st.session_state.example = next(
        (example.name for example in EXAMPLES if example.text == st.session_state.text), OWN
    )
    with left:
        st.text_input(
            "Sentence",
            key="text",
            on_change=controls.put,
            kwargs={"pairs": ""},
            label_visibility="collapsed",
            placeholder="Type a sentence …",
        )
    with right:
        st.selectbox("Example", [*names, OWN], key="example", on_change=choose_example, label_visibility="collapsed")


def summary(seen):
    blocks = f"{seen.config.n_layers} blocks" if seen.config.n_layers > 1 else "the block"
    parameters = sum(cost.parameters(seen.config).values())
    operations = sum(cost.flops(seen.config, len(seen.tokens)).values())
    padding = f" + {seen.config.padding} padding" if seen.config.padding else ""
    st.markdown(
        f"**{parameters:,} parameters** in {blocks}  \n{count(seen.n_real, 'token')}{padding} · {operations / 1e6:.3g} MFLOP  \n"
        f"{seen.milliseconds:.2f} ms on {seen.machine.name}, {seen.machine.dtype}  \n:gray[{weights(seen)}]"
    )


with page("One block", ":material/view_agenda:"):
    (text, config, machine, look), notes = controls.settings("one_block", Input, Config, Machine, Look)
    sidebar(config, machine, look)
    st.title("One block", anchor=False)
    sentence()
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
    else:
        st.info("There is no word to work on. Type a sentence above, or choose an example.", icon=":material/edit:")
