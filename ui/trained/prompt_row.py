"""The row with the text that the model reads, and which of its words the model does not know."""

import html

import streamlit as st

from core.experiments.trained.prompt import Prompt
from core.settings.wording import count
from ui.kit.session import values
from ui.kit.session.visitor import at, choice, one_of
from ui.shared.model_defaults import prompts

OWN = "Your own text"


def prompt_row(look):
    """The text, and the list of examples beside it."""
    offered = dict(prompts(look.model))
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
        values.put(prompt=offered[chosen])
        _moved()


def _moved():
    """Another text: what was marked in the old one means nothing in it."""
    values.put(pairs="")


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
