"""Experiments that begin at a click: in a menu, and as cards while nothing has been started."""

import streamlit as st

from core.experiments.training.showcase import showcase
from ui.kit.page import capital
from ui.kit.store import change, reset


def menu(kinds):
    st.menu_button(
        "Experiments", list(showcase), key="experiments", icon=":material/science:", type="tertiary",
        format_func=showcase.label, on_click=_picked, args=(kinds,),
    )  # fmt: skip


def _picked(kinds):
    if st.session_state.experiments:
        _show(st.session_state.experiments, kinds)


def _show(name: str, kinds):
    reset(*kinds, **showcase[name]())
    change(begin=True, trained="learning")


def cards(kinds):
    """What there is to start."""
    st.markdown("**Press Start, or begin with an experiment**")
    with st.grid("auto", min_column_width=300):
        for name in showcase:
            with st.container(border=True, height="stretch", gap="xxsmall"):
                st.button(
                    f"**{showcase.label(name)}**", key=f"card_{name}", icon=":material/science:", on_click=_show,
                    args=(name, kinds), type="tertiary",
                )  # fmt: skip
                st.caption(capital(showcase.help(name)))
