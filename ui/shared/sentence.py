"""The sentence on top of a page: a field to type in, and the list of examples beside it."""

import streamlit as st

from core.model.text import EXAMPLES
from ui.kit.session import values
from ui.kit.session.visitor import at, choice, one_of

OWN = "Your own text"
NO_WORD = "There is no word to work on. Type a sentence above, or choose an example."


def sentence():
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names, text = [example.name for example in EXAMPLES], values.value("text")
    example = next((example.name for example in EXAMPLES if example.text == text), OWN)
    shown = one_of("example", example, [*names, OWN])
    with left:
        st.text_input(
            "Sentence",
            **at("text", text),
            on_change=values.put,
            kwargs={"pairs": ""},
            label_visibility="collapsed",
            placeholder="Type a sentence …",
        )
    with right:
        st.selectbox(
            "Example",
            [*names, OWN],
            **shown,
            on_change=_choose,
            args=(shown["key"],),
            label_visibility="collapsed",
        )


def _choose(key):
    chosen = next((example for example in EXAMPLES if example.name == choice("example", key)), None)
    if chosen:
        values.put(text=chosen.text, pairs="")
