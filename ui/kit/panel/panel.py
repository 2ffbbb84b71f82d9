"""Controls that are drawn together, as one component (panel.js): those of the sidebar, those above a page's pictures, those of a view.

What is moved is told while it is moved, the newest value as soon as the pictures of the last one have come; a Streamlit slider
tells it when it is let go. And one component is laid out by the browser once, where every widget of Streamlit's, and every
column around it, is laid out by itself: that is most of what a move costs.
"""

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from html import escape
from pathlib import Path

import streamlit as st

from ui.kit import beside
from ui.kit.panel.control import Control, kind_of, of, words
from ui.kit.server.scripts import served
from ui.kit.session import limits, values
from ui.kit.session.visitor import PANEL, calm_visitor, message, picked_in, state, visitor

HERE = Path(__file__).parent
# Controls above the pictures -> the setting that they move: where a teacher's link does not let it be moved they are not there.
SETS = {
    "text": "text", "example_of_text": "text", "prompt": "prompt", "example_of_prompt": "prompt", "lexicon": "prompt",
    "complete": "prompt", "compared_with": "variants", "pin": "variants", "keep": "variants",
    "weights": "weights", "remove_here": "out", "task": "task",
}  # fmt: skip
_first: ContextVar[list[list[Control]]] = ContextVar("first")
_panel = st.components.v2.component(
    "ablation_panel",
    html='<div class="ablation-panel"></div>',
    js=served(
        "".join((HERE / name).read_text() for name in ("panel.js", "fields.js", "lexicon.js")),
        css=(HERE / "panel.css").read_text(),
    ),
    isolate_styles=False,  # a part of the page as all others, for whoever reads or steers it
)


def panel(groups, *settings, back: Callable, folded=(), without=(), notes=None, label: str):
    """Draw the controls of these groups; see ui.kit.page.sidebar."""
    seen = state()
    drawn, names = [], set(without)
    for group in groups:
        members = []
        for one in settings:
            mine = [name for name in _members(one, group) if name not in names]
            members += [_member(one, name)(seen) for name in mine if limits.is_seen(name)]
            names.update(mine)  # two kinds may share a setting
        if group in (notes or {}) and (members or limits.limits() is None):  # a note is about its controls
            members.append(words(notes[group])(seen))
        if members:
            drawn.append({"name": group, "folded": group in folded, "controls": members})
    _draw(PANEL, seen, {"groups": tuple(drawn), "back": label}, on_back_change=partial(_back, settings, back))


def _member(settings, name: str) -> Control:
    """A control; of a setting that a teacher's link locks, what it is."""
    if limits.is_moved(name):
        return of(settings, name)
    known, now = settings.settings()[name], getattr(settings, name)
    shown = known.menu.label(now) if known.menu else known.write(now)
    return words(f"{escape(known.label)}: <b>{escape(shown)}</b>")


@contextmanager
def first_row(row: list[Control]):
    """The first row of controls that is drawn, or would be, has this one above it: one component is laid out sooner than two."""
    waits = [row]
    token = _first.set(waits)
    try:
        yield
    finally:
        if waits:
            bar("lens")  # as the views call theirs: the component stays when another view is opened
        _first.reset(token)


def bar(name: str, *rows: list[Control]):
    """Draw rows of controls in one component. name: of the component on this page."""
    if beside.stands(name):
        return
    waits = _first.get([])
    rows = (*waits, *rows)
    waits.clear()
    seen = state()
    made = [[make(seen) for make in row] for row in rows if row]
    made = [[one for one in row if one["name"] not in SETS or limits.is_moved(SETS[one["name"]])] for row in made]
    on = {control["name"]: control.pop("on", None) for row in made for control in row}
    groups = {"groups": tuple({"controls": row} for row in made)}
    with beside.above():
        _draw(name, seen, groups, partial(_moved, on), on_pressed_change=partial(_pressed, name, on))


def _draw(name: str, seen: dict, data: dict, on_moved: Callable = lambda: None, **events: Callable):
    """data: no lists but tuples, for Streamlit asks pandas of each list whether it is a table: a twentieth of a move."""
    visitor().panels.add(name)
    # The controls as they are drawn answer this message: the browser waits for it before it sends the next.
    answers = message(seen, name).get("number", 0)
    _panel(key=name, data=data | {"answers": answers, "session": visitor().id}, on_moved_change=on_moved, **events)


def _moved(on: dict[str, Callable | None]):
    """What goes along with what was moved (a callback)."""
    seen, held = state(), calm_visitor()
    for name, then in on.items():
        shown = held.moved(name, seen)
        if shown and then:
            then(seen[shown.key])


def _pressed(name: str, on: dict[str, Callable | None]):
    then = on.get(picked_in(name, str, "pressed"))
    if then:
        then()


def _back(settings, everything: Callable):
    """One setting, or all of them, back to its default, or to what it takes from others (a callback)."""
    name = picked_in(PANEL, str, "back")
    if name == "":
        everything()
    for one in settings:
        if name in one.settings():
            values.free(one, name)


def _members(settings, group: str) -> list[str]:
    """The settings of a group that have a control: those from menus last, which stand in pairs. One that does nothing beside the
    others has none, but where it was moved: so that it can be brought back."""
    names = [
        name
        for name, known in settings.settings().items()
        if known.group == group
        and kind_of(settings, name)
        and (known.acts is None or known.acts(settings) or getattr(settings, name) != values.default(settings, name))
    ]
    return sorted(names, key=lambda name: settings.settings()[name].menu is not None)
