"""The widgets of settings: a switch, a slider or a choice, as each setting says of itself."""

import streamlit as st

from ui.kit.session.values import value
from ui.kit.session.visitor import at, one_of, shows


def choices(settings, name: str) -> list:
    """What the control of a setting offers now: the entries of its menu, or the ends of its slider."""
    known, value = settings.settings()[name], getattr(settings, name)
    if known.menu:
        return settings.choices(name)
    if known.among:
        return known.among(settings)
    if known.kind in (bool, str):
        return []
    top = known.top or (8 * settings.d_model if known.follows else known.high)
    # pushed to its end, a slider opens up to all that is allowed
    top = known.high if value >= top else min(top, known.high)
    low = min(value, known.step) if known.kind is int and known.step > 1 else known.low
    return [low, top]


def control(settings, name: str, **more):
    """The widget of one setting: a switch, a slider or a choice, as it says of itself. more: words for Streamlit's widget."""
    known, offered, now = settings.settings()[name], choices(settings, name), getattr(settings, name)
    words = {"help": known.help, **more}
    if known.kind is bool:
        st.toggle(known.label, **at(name, now), **words)
    elif known.menu:
        about = "\n".join(f"- **{known.menu.label(o)}**: {known.menu.help(o)}" for o in offered)
        words = {**words, "help": f"{known.help}\n\n{about}", "format_func": known.menu.label}
        st.selectbox(known.label, offered, **one_of(name, now, offered), **words)
    elif not known.among:
        st.slider(known.label, *offered, step=known.step, **at(name, now, tuple(offered)), **words)
    elif len(offered) > 1:
        st.select_slider(known.label, offered, **at(name, now, tuple(offered)), **words)


def buttons(label: str, menu, name: str, **more):
    """The setting `name` as a row of buttons, one for each entry of its menu. more: words for Streamlit's widget."""
    shown = shows(name, value(name))
    st.segmented_control(
        label, list(menu), default=shown.first, key=shown.key, format_func=menu.label, label_visibility="collapsed",
        required=True, **more
    )  # fmt: skip
