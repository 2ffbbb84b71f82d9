"""All controls of a page's sidebar as one component (panel.js). What is moved is told while it is moved, the newest value as soon
as the pictures of the last one have come; a Streamlit slider tells it when it is let go, and draws itself again with each run.

What comes from the browser is one message for all controls: numbers and places in lists by the keys of widgets
(ui/kit/session/visitor.py), each of which is checked against what was offered when it is read.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from ui.kit import controls
from ui.kit.session import values
from ui.kit.session.visitor import PANEL, message, picked_in, shows, state

HERE = Path(__file__).parent
_panel = st.components.v2.component(
    "ablation_panel",
    html='<div class="ablation-panel"></div>',
    css=(HERE / "panel.css").read_text(),
    js=(HERE / "panel.js").read_text(),
    isolate_styles=False,  # a part of the page as all others, for whoever reads or steers it
)


def panel(groups, *settings, back: Callable, folded=(), without=(), label: str):
    """Draw the controls of these groups; see ui.kit.page.sidebar."""
    seen = state()
    drawn, names = [], set(without)
    for group in groups:
        members = []
        for one in settings:
            mine = [name for name in _members(one, group) if name not in names]
            members += [_control(one, name, seen) for name in mine]
            names.update(mine)  # two kinds may share a setting
        if members:
            drawn.append({"name": group, "folded": group in folded, "controls": members})
    # The controls as they are drawn answer this message: the browser waits for it before it sends the next.
    answer = {"groups": drawn, "back": label, "answers": message(seen).get("number", 0)}
    _panel(key=PANEL, data=answer, on_moved_change=lambda: None, on_back_change=partial(_back, settings, back))


def _back(settings, everything: Callable):
    """One setting, or all of them, back to its default, or to what it takes from others (a callback)."""
    name = picked_in(PANEL, "back")
    if name == "":
        everything()
    for one in settings:
        if name in one.settings():
            values.free(one, name)


def _members(settings, group: str) -> list[str]:
    """The settings of a group that have a control: those from menus last, which stand in pairs."""
    names = [name for name, known in settings.settings().items() if known.group == group and _kind(settings, name)]
    return sorted(names, key=lambda name: settings.settings()[name].menu is not None)


def _kind(settings, name: str) -> str:
    """What a setting is moved with; "" where there is nothing to choose."""
    known = settings.settings()[name]
    if known.menu:
        return "choice"
    if known.kind is bool:
        return "switch"
    return "stops" if known.among and len(known.among(settings)) > 1 else "" if known.among else "range"


def _control(settings, name: str, seen: dict) -> dict:
    """One control as panel.js draws it."""
    known, kind, now = settings.settings()[name], _kind(settings, name), getattr(settings, name)
    offered = controls.choices(settings, name)
    shown = shows(name, now, (kind, *offered), reader=_reader(known, kind, offered), seen=seen)
    made = {"name": name, "key": shown.key, "kind": kind, "label": known.label, "help": known.help, "value": now}
    if kind in ("choice", "stops"):
        made |= {
            "value": offered.index(now),
            "options": [known.menu.label(each) if known.menu else str(each) for each in offered],
        }
    if kind == "choice":
        made["about"] = [known.menu.help(each) for each in offered]
    if kind == "range":
        low, high = offered
        made |= {"low": low, "high": high, "step": known.step}
    fresh = values.default(settings, name)
    if now != fresh:
        made["back"] = known.menu.label(fresh) if known.menu else known.write(fresh)
    return made


def _reader(known, kind: str, offered) -> Callable:
    """-> what makes a value of the setting of what the browser says. Raises ValueError for what was not offered."""

    def read(told):
        if kind == "switch":
            good = isinstance(told, bool)
        else:
            low, high = offered if kind == "range" else (0, len(offered) - 1)
            number = int | float if kind == "range" and known.kind is float else int
            good = isinstance(told, number) and not isinstance(told, bool) and low <= told <= high
        if not good:
            raise ValueError(told)
        return told if kind == "switch" else known.kind(told) if kind == "range" else offered[told]

    return read
