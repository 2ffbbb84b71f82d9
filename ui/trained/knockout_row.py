"""The row that says what is knocked out, and what takes its place."""

import streamlit as st

from core.model import knockout as lesion
from core.settings.wording import KEY
from ui.kit.page import capital
from ui.kit.store import bind, change


def knockout_row(look, config, cuts: tuple[lesion.Cut, ...]):
    """What is knocked out, and what takes its place."""
    there = {cut.write(): cut for cut in lesion.cuts(config)}
    left, middle, right = st.columns([4, 2, 3], vertical_alignment="center")
    with left:
        st.multiselect(
            "Knock out", list(there), **bind("cut_list", [cut.write() for cut in cuts], _cut), format_func=lambda text: f"− {there[text].name}",
            placeholder="Knock out a head, a sub-layer or a layer …", label_visibility="collapsed",
        )  # fmt: skip
    with middle:
        about = "\n".join(f"- **{lesion.mode.label(each)}**: {lesion.mode.help(each)}" for each in lesion.mode)
        st.selectbox(
            "What takes its place", list(lesion.mode), **bind("mode", look.mode), help=about, label_visibility="collapsed",
            format_func=lambda each: f"{lesion.mode.label(each).lower()} in its place",
        )  # fmt: skip
    with right:
        st.button(
            "Put everything back",
            on_click=change,
            kwargs={"out": ""},
            disabled=not cuts,
            icon=":material/undo:",
            width="stretch",
        )
    st.caption(f"{capital(KEY)}.")  # what the names of heads mean, which stand in this row from the first


def _cut(chosen: list[str]):
    change(out="~".join(chosen))
