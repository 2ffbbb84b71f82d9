"""What stands around the views of the page "Trained model": the text, what is knocked out, the model's figures."""

import html

import streamlit as st

from core.experiments.trained.prompt import Prompt
from core.model import knockout as lesion
from core.settings.wording import KEY, count
from ui.kit import controls
from ui.kit.page import capital
from ui.kit.visitor import at, choice, one_of, some_of
from ui.shared import models as choose
from ui.trained.base import Looked

OWN = "Your own text"


def text_row(look):
    """The text, and the list of examples beside it."""
    offered = dict(choose.prompts(look.model))
    chosen = next((name for name, text in offered.items() if text == look.prompt), OWN)
    shown = one_of("prompts", chosen, [*offered, OWN])
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        st.text_input(
            "Prompt",
            **at("prompt", look.prompt),
            label_visibility="collapsed",
            placeholder="Type a text …",
            on_change=_moved,
        )
    with right:
        st.selectbox(
            "Example",
            [*offered, OWN],
            **shown,
            on_change=_chosen,
            args=(shown["key"], offered),
            label_visibility="collapsed",
        )


def _chosen(key, offered):
    chosen = choice("prompts", key)
    if chosen in offered:
        controls.put(prompt=offered[chosen])
        _moved()


def _moved():
    """Another text: what was marked in the old one means nothing in it."""
    controls.put(pairs="")


def knife_row(look, config, made: tuple[lesion.Cut, ...]):
    """What is knocked out, and what takes its place."""
    there = {cut.write(): cut for cut in lesion.cuts(config)}
    shown = some_of("cut_list", [cut.write() for cut in made], there)
    left, middle, right = st.columns([5, 2, 2], vertical_alignment="center")
    with left:
        st.multiselect(
            "Knock out", list(there), **shown, format_func=lambda text: f"− {there[text].name}", on_change=_cut, args=(shown["key"],),
            placeholder="Knock out a head, a sub-layer or a layer …", label_visibility="collapsed",
        )  # fmt: skip
    with middle:
        about = "\n".join(f"- **{lesion.mode.label(each)}**: {lesion.mode.help(each)}" for each in lesion.mode)
        st.selectbox(
            "What takes its place", list(lesion.mode), **one_of("mode", look.mode, lesion.mode), help=about, label_visibility="collapsed",
            format_func=lambda each: f"in its place: {lesion.mode.label(each).lower()}",
        )  # fmt: skip
    with right:
        st.button(
            "Put everything back",
            on_click=controls.put,
            kwargs={"out": ""},
            disabled=not made,
            icon=":material/undo:",
            width="stretch",
        )


def _cut(key):
    chosen = choice("cut_list", key)
    if chosen is not None:
        controls.put(out="~".join(chosen))


def unknown(prompt: Prompt):
    """Which words the model does not know."""
    if not prompt.unknown:
        return
    words = " ".join(
        f"<span style='border-bottom:2px dotted #D55E00'>{html.escape(label)}</span>"
        if at in prompt.unknown
        else html.escape(label)
        for at, label in enumerate(prompt.labels)
    )
    st.html(
        f"<div style='font-size:.9rem;line-height:1.5'>{words} &nbsp; <span style='opacity:.75'>{count(len(prompt.unknown), 'word')} "
        "that this model does not know (dotted): each is read as the same unknown word.</span></div>"
    )


def key():
    """What the names of heads mean, which stand in the row above from the first."""
    st.caption(f"{capital(KEY)}.")


def summary(looked: Looked):
    opened, config = looked.opened, looked.opened.config
    st.markdown(
        f"**{opened.parameters:,} parameters**, {count(config.n_layers, 'layer')} × {count(config.n_heads, 'head')}  \n"
        f"{len(opened.model.vocabulary):,} words · {count(len(looked.prompt.ids), 'token')} · {looked.whole.timing} on {looked.whole.machine.name}  \n"
        f":gray[Trained weights: {opened.task or 'from a file'}]"
    )
