"""Pages without a browser: read settings and act like a user."""

import html
import json
import re
from urllib.parse import unquote

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.testing.v1 import AppTest

from ui.kit import store
from ui.kit.server.downloads import OFFERS
from ui.kit.store import CHANNEL, SESSION, Session


def opened(page: str, **params: str) -> AppTest:
    """Open a page from a link."""
    app = AppTest.from_file("../app.py", default_timeout=90)
    if page != "app.py":
        app.switch_page(page)
    app.query_params.update(params)
    return app.run()


def texts(app) -> str:
    """Return all text of a page, controls and figures included."""
    html = [element.proto.body for element in app.get("html")]
    progress = [bar.proto.text for bar in app.get("progress")]
    messages = [element.value for element in [*app.markdown, *app.caption, *app.info]]
    return plain(" ".join([*html, *written(app), *messages, *progress]))


def plain(text: str) -> str:
    """Return Markdown without its escapes, and with spaces where a line must not break."""
    return text.replace("\\", "").replace("\N{NO-BREAK SPACE}", " ")


def button(app, key: str):
    return next(button for button in app.button if button.key == key)


def legend(app) -> str:
    """Return the last legend of a page, as HTML."""
    return [
        element.proto.body for element in app.get("html") if "class='legend'" in element.proto.body
    ][-1]


def session(app) -> Session:
    """Return what the app remembers of this session."""
    return app.session_state[SESSION]


def link(app) -> dict[str, str]:
    """Return the link that is sent to the browser."""
    return json.loads(components(app, "ablation_channel")[0].json)["link"]


def setting(app, name: str):
    """Return a setting of the page as it is now."""
    current = session(app)
    kind = next(kind for kind in store.kinds_of[current.page] if name in kind.settings())
    settings = current.built.get(kind) or current.settings((kind,))[0][0]
    return getattr(settings, name)


def widget(elements, name: str):
    """Return the widget that shows a setting, among those of one kind, such as app.slider."""
    return next(element for element in elements if element.key == f"bound_{name}")


def controls(app) -> dict[str, dict]:
    """Return what is sent to the browser for each visible control; see ui/kit/panel/control.py."""
    groups = [group for panel in _panels(app) for group in json.loads(panel.json)["groups"]]
    return {control["name"]: control for group in groups for control in group["controls"]}


def control(app, name: str) -> dict:
    return controls(app)[name]


def words(app, name: str) -> list[str]:
    """Return the labels of a control's options."""
    return [label for _, label in control(app, name)["options"]]


def offered(app, name: str) -> list[str]:
    """Return a control's options as links write them."""
    return [text for text, _ in control(app, name)["options"]]


def links(app) -> dict[str, str]:
    """Return the menu: name of a page -> its link."""
    (menu,) = components(app, "ablation_menu")
    return {page["name"]: page["to"] for page in json.loads(menu.json)}


def written(app) -> list[str]:
    """Return the text in custom components: controls, and the block diagram with its figures."""
    pieces = [str(component.json) for component in components(app, "ablation_drawing")]
    for element in controls(app).values():
        pieces += [element["label"], element.get("html", ""), *element.get("about", ())]
        pieces += [label for _, label in element.get("options", ())]
    return [html.unescape(re.sub("<[^>]*>", " ", piece)) for piece in pieces]


def send(app, *deltas: dict, pressed: bool = False):
    """Run the page with a message of the browser: these deltas, one after another."""
    return send_deltas(app, *deltas, pressed=pressed).run()


def send_deltas(app, *deltas: dict, pressed: bool = False):
    """Let the browser say these deltas; the page has to be run then."""
    current = session(app)
    numbered = [[current.number + n, current.page, delta] for n, delta in enumerate(deltas, 1)]
    app.session_state[CHANNEL] = {
        "said": {"session": current.id, "held": pressed, "deltas": numbered}
    }
    return app


def move(app, **values):
    """Move controls, or the widgets of settings, as a user does; the page has to be run then."""
    current = session(app)
    definition = {
        name: setting
        for kind in store.kinds_of[current.page]
        for name, setting in kind.settings().items()
    }
    return send_deltas(
        app, *({name: definition[name].write(value)} for name, value in values.items())
    )


def move_control(app, name: str, value):
    """Move one control with the page's accompanying changes, and run the page."""
    field = control(app, name)
    if field["kind"] == "pills":
        deselected = [
            {f"{field['set']}/{text}": "off"} for text in field["value"] if text not in value
        ]
        new = [{f"{field['set']}/{text}": "on"} for text in value if text not in field["value"]]
        return send(app, *deselected, *new)
    return send(app, {field["set"]: value, **field.get("also", {})})


def press(app, name: str):
    """Press a button that stands among controls."""
    return send(app, {control(app, name)["set"]: ""})


def pick(app, component, value):
    """Click something in a picture."""
    data = json.loads(component.json)
    data = json.loads(data) if isinstance(data, str) else data
    return send(app, {data["set"]: value})


def clicked(app, drawing, *places: str):
    """Click parts of the drawing of a block, one after another."""
    name = json.loads(drawing.json)["set"]
    return send(app, *({name: place} for place in places))


def said_by(app, component, **values):
    """Set a component's state, which stays."""
    sent = app._tree.get_widget_states()
    sent.widgets.add(id=component.id, json_value=json.dumps(values))
    return app._run(sent)


def components(app, name: str) -> list:
    """Return what is sent to the browser for components of this name."""
    return [
        element.proto
        for element in app.get("bidi_component")
        if element.proto.component_name == name
    ]


def _panels(app) -> list:
    return components(app, "ablation_panel")


def back(app, name: str = ""):
    """Bring one setting of the sidebar back to its default, or all of them."""
    return send(app, {name: None} if name else {"@back": "all"})


def tables(app) -> dict:
    """Return the functions that make a page's exportable tables, by name; open the button."""
    app.session_state["take_away"] = True
    return app.run().session_state["_tables"]


def downloads(app) -> list[str]:
    """Return the labels of the files that a page offers."""
    bodies = [
        element.proto.body
        for element in app.get("html")
        if element.proto.body.startswith('<a class="ablation-download')
    ]
    return [html.unescape(re.sub("<[^>]*>", "", body)) for body in bodies]


def download(app, label: str):
    """Write the file that a page offers under this label. Return its content."""
    body = next(
        element.proto.body
        for element in app.get("html")
        if f">{html.escape(label)}</a>" in element.proto.body
    )
    file = unquote(re.search('href="[^"]*/([^"/]*)"', body)[1])
    return app.session_state[OFFERS][file].write()


def trigger(app, component, event: str, value):
    """Let a custom component send Streamlit an event."""
    sent = app._tree.get_widget_states()
    message = json.dumps([{"event": event, "value": value}])
    sent.widgets.add(id=_make_trigger_id(component.id, "events"), json_trigger_value=message)
    return app._run(sent)


def drawn(app, key: str = "") -> str:
    """Return the HTML of lessons and classes on a page, or of the component with a key."""
    return " ".join(
        json.loads(component.json)
        for component in components(app, "ablation_lesson_html")
        if not key or key in component.id
    )
