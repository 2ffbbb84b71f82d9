"""Rows of controls as one component (panel.js), in the sidebar and above pictures.

The browser lays one component out once, but every Streamlit widget, and every column around it, by
itself: that is most of the cost of a move.
"""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from pathlib import Path

import streamlit as st

from ui.kit import side_by_side
from ui.kit.panel.control import (
    Control,
    control_kind,
    control_of,
    default_of,
    html_control,
    register_handler,
)
from ui.kit.server.scripts import with_store
from ui.kit.store import is_movable, session

HERE = Path(__file__).parent
# Controls above the pictures -> the setting that they move: where a teacher's link does not let it
# be moved they are not there.
SETS = {
    "text": "text",
    "example_of_text": "text",
    "prompt": "prompt",
    "example_of_prompt": "prompt",
    "lexicon": "prompt",
    "complete": "prompt",
    "compared_with": "variants",
    "pin": "variants",
    "keep": "variants",
    "weights": "weights",
    "remove_head": "out",
    "cut_list": "out",
    "restore": "out",
    "task": "task",
}
_around: ContextVar[list[tuple[Sequence[Control], Sequence[Control]]]] = ContextVar("around")
SCRIPT = "".join((HERE / name).read_text() for name in ("panel.js", "fields.js", "lexicon.js"))
_panel = st.components.v2.component(
    "ablation_panel",
    html='<div class="ablation-panel"></div>',
    js=with_store(SCRIPT, css=(HERE / "panel.css").read_text()),
    isolate_styles=False,  # a part of the page as all others, for whoever reads or steers it
)
# The last element of a run: what the browser says to the server, and the acknowledgement of what it
# said.
CHANNEL = """export default ({ data, setStateValue }) =>
  store.acknowledge(data, (message) => setStateValue("said", message))"""
_channel = st.components.v2.component("ablation_channel", js=with_store(CHANNEL))


def acknowledge(path: str):
    """End a page's run, as the last call: tell the browser that it may send the next change.

    Args:
        path: Last part of the page's URL; "" for the start page.
    """
    current = session()
    data = {
        "session": current.id,
        "ack": current.number,
        "moves": current.moves,
        "page": current.page,
    }
    data |= {"path": f"/{path}" if path else "", "link": current.link() | current.begun}
    data["only"] = current.limits.write() if current.limits else ""
    _channel(key="channel", data=data, height=1, on_said_change=lambda: None)


def draw_panel(
    groups,
    *settings,
    on_reset: Callable,
    folded=(),
    without=(),
    fixed=(),
    carried=(),
    notes=None,
    controls_above=None,
    label: str,
):
    """Draw the controls of these groups and the reset button; arguments as of page.draw_sidebar."""
    limits = session().limits
    names_seen = {*limits.moved, *limits.locked} if limits else ()
    drawn = []
    names = set(without)
    for group in groups:
        members: list[Control] = [*(controls_above or {}).get(group, ())]
        for settings_shown in settings:
            own_names = [
                name for name in _shown_settings(settings_shown, group) if name not in names
            ]
            members.extend(
                _make_control(settings_shown, name)
                | {"off": name in fixed, "carried": name in carried}
                for name in own_names
                if limits is None or name in names_seen
            )
            names.update(own_names)  # two kinds may share a setting
        if group in (notes or {}) and (members or limits is None):  # a note is about its controls
            members.append(html_control(notes[group]))
        if members:
            drawn.append({"name": group, "folded": group in folded, "controls": members})
    register_handler("back", lambda _: on_reset())
    names = {control["name"] for group in drawn for control in group["controls"]}
    brought = [_label(name, settings) for name in session().set_elsewhere if name in names]
    note = f"Carried over from another page: {', '.join(brought)}." if brought else ""
    _draw_component("panel", {"groups": tuple(drawn), "back": label, "note": note})


def _label(name: str, settings) -> str:
    """Return a setting's label, from the first of these objects of settings that has it."""
    return next(kind.settings()[name].label for kind in settings if name in kind.settings())


def _make_control(settings, name: str) -> Control:
    """Return a setting's control; a text with its value if a teacher's link locks it."""
    if is_movable(name):
        return control_of(settings, name)
    definition = settings.settings()[name]
    now = getattr(settings, name)
    label = definition.menu.label(now) if definition.menu else definition.write(now)
    return html_control(f"{escape(definition.label)}: <b>{escape(label)}</b>")


@contextmanager
def first_row(before: Sequence[Control], after: Sequence[Control] = ()):
    """Add controls around the first row drawn inside, only that; draw them alone if none is."""
    waits = [(before, after)]
    token = _around.set(waits)
    try:
        yield
    finally:
        if waits and (before or after):
            draw_bar("lens")  # the views' own name, so that the component outlives a change of view
        _around.reset(token)


def draw_bar(name: str, *rows: list[Control]):
    """Draw rows of controls in one component; nothing if the other side has drawn it already.

    Args:
        name: Name of the component on this page.
        *rows: Controls of each row; those of settings that a teacher's link locks are left out.
    """
    if side_by_side.mark_drawn_above(name):
        return
    waits = _around.get([])
    if waits:
        before, after = waits.pop()
        first, *others = rows or ([],)
        rows = ([*before, *first, *after], *others)
    groups = [
        [
            control
            for control in row
            if control["name"] not in SETS or is_movable(SETS[control["name"]])
        ]
        for row in rows
        if row
    ]
    with side_by_side.shared_rows():
        _draw_component(name, {"groups": tuple({"controls": row} for row in groups), "back": ""})


def _draw_component(key: str, data: dict):
    """Draw the panel component with this data, under this key."""
    # No lists but tuples: Streamlit asks pandas of each list whether it is a table, a twentieth of
    # a move.
    # Nothing that changes with every run: what the browser has already is not sent again.
    _panel(key=key, data=data | {"page": session().page})


def _shown_settings(settings, group: str) -> list[str]:
    """Return a group's settings that have a control, those with menus last.

    A setting without effect has no control, unless it was changed: so that it can be reset.
    """
    names = [
        name
        for name, definition in settings.settings().items()
        if definition.group == group
        and control_kind(settings, name)
        and (
            definition.acts is None
            or definition.acts(settings)
            or getattr(settings, name) != default_of(settings, name)
        )
    ]
    return sorted(names, key=lambda name: settings.settings()[name].menu is not None)
