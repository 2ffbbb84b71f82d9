"""Pages without a browser: what a setting is, and its widget, whose key changes with each value that the page gives it."""

import html
import itertools
import json
import re
from urllib.parse import unquote

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.WidgetStates_pb2 import WidgetStates

from ui.kit.panel.control import PLACES
from ui.kit.server.downloads import OFFERS
from ui.kit.session.visitor import PANEL, VISITOR, message


def setting(app, name: str):
    """A setting of the page as it is now, or as a widget that was moved will have it."""
    return app.session_state[VISITOR].value(name, app.session_state._state.filtered_state)


def widget(elements, name: str):
    """The widget of that name among those of one kind, such as app.slider."""
    return next(each for each in elements if re.fullmatch(rf"{name}-\d+", each.key or ""))


def controls(app) -> dict[str, dict]:
    """What the browser is told of each control that is drawn; see ui/kit/panel/control.py."""
    groups = [group for each in _panels(app) for group in json.loads(each.json)["groups"]]
    return {one["name"]: one for group in groups for one in group["controls"]}


def control(app, name: str) -> dict:
    return controls(app)[name]


def words(app, name: str) -> list[str]:
    """What a control offers, in words."""
    return control(app, name)["options"]


def links(app) -> dict[str, str]:
    """The menu: name of a page -> its link."""
    (menu,) = components(app, "ablation_menu")
    return {each["name"]: each["to"] for each in json.loads(menu.json)}


def written(app) -> list[str]:
    """What components of our own write in words: controls, and the block's drawing with the figures below."""
    pieces = [str(each.json) for each in components(app, "ablation_drawing")]
    for one in controls(app).values():
        pieces += [one["label"], one.get("html", ""), *one.get("options", ()), *one.get("about", ())]
    return [html.unescape(re.sub("<[^>]*>", " ", each)) for each in pieces]


def press(app, name: str):
    """A button that stands among controls."""
    return trigger(app, _panel_with(app, name), "pressed", name)


def trigger(app, component, event: str, value):
    """What a component tells when something in it is clicked."""
    return app._run(_told(app, component, event, value))


def clicked(app, drawing, *places: str):
    """What the drawing of a block tells when parts of it are clicked, one after another."""
    return trigger(app, drawing, "picked", [[next(CLICKS), each] for each in places])


CLICKS = itertools.count(1)


def said_by(app, component, **values):
    """What a component tells that stays: its state."""
    sent = app._tree.get_widget_states()
    sent.widgets.add(id=component.id, json_value=json.dumps(values))
    return app._run(sent)


def _panel_with(app, name: str):
    """The component that draws this control."""
    return next(
        each for each in _panels(app)
        if any(one["name"] == name for group in json.loads(each.json)["groups"] for one in group["controls"])
    )  # fmt: skip


def components(app, name: str) -> list:
    """What the browser is told of components of this name."""
    return [each.proto for each in app.get("bidi_component") if each.proto.component_name == name]


def _panels(app) -> list:
    return components(app, "ablation_panel")


def _panel(app):
    """The sidebar's."""
    return next(each for each in _panels(app) if "back" in json.loads(each.json))


def _told(app, panel, event: str, value: str) -> WidgetStates:
    sent = app._tree.get_widget_states()
    told = json.dumps([{"event": event, "value": value}])
    sent.widgets.add(id=_make_trigger_id(panel.id, "events"), json_trigger_value=told)
    return sent


def states(app, moved: dict | None = None, back: str | None = None) -> WidgetStates:
    """What the browser asks for a run with when a control of the sidebar is moved, or brought back."""
    if back is not None:
        return _told(app, _panel(app), "back", back)
    sent = app._tree.get_widget_states()
    sent.widgets.add(id=_panel(app).id, json_value=json.dumps({"moved": moved}))
    return sent


def back(app, name: str = ""):
    """Bring one setting of the sidebar back to its default, or all of them."""
    return app._run(states(app, back=name))


def move(app, **values):
    """Move widgets, and controls, as a visitor does; the page has to be run then."""
    told = message(app.session_state._state.filtered_state)
    moved = dict(told.get("values", {}))
    for name, value in values.items():
        shown = app.session_state[VISITOR].shown[name][-1]
        if shown.reader:
            moved[shown.key] = _said(shown, value)
        else:
            app.session_state[shown.key] = value
    if moved:
        app.session_state[PANEL] = {"moved": said(app, told.get("number", 0) + 1, moved)}
    return app


def tell(app, name: str, value):
    """Move one control, as its browser says so: with what the page does along with it."""
    panel, shown = _panel_with(app, name), app.session_state[VISITOR].shown[name][-1]
    moved = said(app, 1, {shown.key: _said(shown, value)})
    sent = app._tree.get_widget_states()
    sent.widgets.add(id=panel.id, json_value=json.dumps({"moved": moved}))
    return app._run(sent)


def said(app, number: int, values: dict, held: bool = False) -> dict:
    """A message of controls, as panel.js writes it."""
    return {"session": app.session_state[VISITOR].id, "number": number, "held": held, "values": values}


def _said(shown, value):
    """A value as the browser says it of a control."""
    kind, *offered = shown.offers
    if kind == "pills":
        return [offered.index(each) for each in value]
    return offered.index(value) if kind in PLACES else value


def tables(app) -> dict:
    """Name -> what makes it, of each table that can be taken away; with the button open."""
    app.session_state["take_away"] = True
    return app.run().session_state["_tables"]


def downloads(app) -> list[str]:
    """Return the labels of the files that a page offers."""
    bodies = [each.proto.body for each in app.get("html") if each.proto.body.startswith('<a class="ablation-download')]
    return [html.unescape(re.sub("<[^>]*>", "", body)) for body in bodies]


def download(app, label: str):
    """Write the file that a page offers under this label. Return its content."""
    body = next(each.proto.body for each in app.get("html") if f">{html.escape(label)}</a>" in each.proto.body)
    file = unquote(re.search('href="[^"]*/([^"/]*)"', body)[1])
    return app.session_state[OFFERS][file].write()


def put(app, **values):
    """Change settings, as a callback of the page does; the page has to be run then."""
    app.session_state[VISITOR].put.update(values)
    return app
