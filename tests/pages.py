"""Pages without a browser: what a setting is, and its widget, whose key changes with each value that the page gives it."""

import json
import re

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.WidgetStates_pb2 import WidgetStates

from ui.kit.session.visitor import PANEL, VISITOR, message


def setting(app, name: str):
    """A setting of the page as it is now, or as a widget that was moved will have it."""
    return app.session_state[VISITOR].value(name, app.session_state._state.filtered_state)


def widget(elements, name: str):
    """The widget of that name among those of one kind, such as app.slider."""
    return next(each for each in elements if re.fullmatch(rf"{name}-\d+", each.key or ""))


def controls(app) -> dict[str, dict]:
    """What the browser is told of each control of the sidebar; see ui/kit/panel/panel.py."""
    return {one["name"]: one for group in _told(app)["groups"] for one in group["controls"]}


def control(app, name: str) -> dict:
    return controls(app)[name]


def _panel(app):
    return next(each.proto for each in app.get("bidi_component") if each.proto.component_name == "ablation_panel")


def _told(app) -> dict:
    return json.loads(_panel(app).json)


def states(app, moved: dict | None = None, back: str | None = None) -> WidgetStates:
    """What the browser asks for a run with when a control of the sidebar is moved, or brought back."""
    sent = app._tree.get_widget_states()
    if moved is not None:
        sent.widgets.add(id=_panel(app).id, json_value=json.dumps({"moved": moved}))
    if back is not None:
        sent.widgets.add(
            id=_make_trigger_id(_panel(app).id, "events"),
            json_trigger_value=json.dumps([{"event": "back", "value": back}]),
        )
    return sent


def back(app, name: str = ""):
    """Bring one setting of the sidebar back to its default, or all of them."""
    return app._run(states(app, back=name))


def move(app, **values):
    """Move widgets, and controls of the sidebar, as a visitor does; the page has to be run then."""
    told = message(app.session_state._state.filtered_state)
    moved = dict(told.get("values", {}))
    for name, value in values.items():
        shown = app.session_state[VISITOR].shown[name][-1]
        if shown.reader:
            kind, *offered = shown.offers
            moved[shown.key] = offered.index(value) if kind in ("choice", "stops") else value
        else:
            app.session_state[shown.key] = value
    if moved:
        app.session_state[PANEL] = {"moved": {"number": told.get("number", 0) + 1, "held": False, "values": moved}}
    return app


def put(app, **values):
    """Change settings, as a callback of the page does; the page has to be run then."""
    app.session_state[VISITOR].put.update(values)
    return app
