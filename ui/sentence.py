"""The sentence on top of a page: a field to type in, and the list of examples beside it."""

import streamlit as st

from core.text import EXAMPLES
from ui import controls

OWN = "Your own text"


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
        st.selectbox("Example", [*names, OWN], key="example", on_change=_choose, label_visibility="collapsed")


def _choose():
    chosen = next((example for example in EXAMPLES if example.name == st.session_state.example), None)
    if chosen:
        controls.put(text=chosen.text, pairs="")
