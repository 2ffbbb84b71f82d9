"""Pages without a browser: what a setting is, and what a user does with a control."""

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
    """Return all that a page says, controls and figures included."""
    html = [each.proto.body for each in app.get("html")]
    progress = [each.proto.text for each in app.get("progress")]
    said = [each.value for each in [*app.markdown, *app.caption, *app.info]]
    return plain(" ".join([*html, *written(app), *said, *progress]))


def plain(text: str) -> str:
    """Return Markdown without its escapes, and with spaces where a line must not break."""
    return text.replace("\\", "").replace("\N{NO-BREAK SPACE}", " ")


def button(app, key: str):
    return next(each for each in app.button if each.key == key)


def legend(app) -> str:
    """Return the last legend of a page, as HTML."""
    return [each.proto.body for each in app.get("html") if "class='legend'" in each.proto.body][-1]


def session(app) -> Session:
    """Return what the app remembers of this session."""
    return app.session_state[SESSION]


def link(app) -> dict[str, str]:
    """Return the link that the browser is told."""
    return json.loads(components(app, "ablation_channel")[0].json)["link"]


def setting(app, name: str):
    """Return a setting of the page as it is now."""
    here = session(app)
    kind = next(kind for kind in store.kinds_of[here.page] if name in kind.settings())
    settings = here.built.get(kind) or here.settings((kind,))[0][0]
    return getattr(settings, name)


def widget(elements, name: str):
    """Return the widget that shows a setting, among those of one kind, such as app.slider."""
    return next(element for element in elements if element.key == f"bound_{name}")


def controls(app) -> dict[str, dict]:
    """Return what the browser is told of each control that is drawn; see ui/kit/panel/control.py."""
    groups = [group for panel in _panels(app) for group in json.loads(panel.json)["groups"]]
    return {control["name"]: control for group in groups for control in group["controls"]}


def control(app, name: str) -> dict:
    return controls(app)[name]


def words(app, name: str) -> list[str]:
    """Return what a control offers, in words."""
    return [label for _, label in control(app, name)["options"]]


def offered(app, name: str) -> list[str]:
    """Return what a control offers, as a link has it."""
    return [text for text, _ in control(app, name)["options"]]


def links(app) -> dict[str, str]:
    """Return the menu: name of a page -> its link."""
    (menu,) = components(app, "ablation_menu")
    return {page["name"]: page["to"] for page in json.loads(menu.json)}


def written(app) -> list[str]:
    """Return what components of our own write in words: controls, and the block's drawing with the figures below."""
    pieces = [str(component.json) for component in components(app, "ablation_drawing")]
    for shown in controls(app).values():
        pieces += [shown["label"], shown.get("html", ""), *shown.get("about", ())]
        pieces += [label for _, label in shown.get("options", ())]
    return [html.unescape(re.sub("<[^>]*>", " ", piece)) for piece in pieces]


def send(app, *deltas: dict, held: bool = False):
    """Run the page with a message of the browser: these deltas, one after another."""
    return say(app, *deltas, held=held).run()


def say(app, *deltas: dict, held: bool = False):
    """Let the browser say these deltas; the page has to be run then."""
    here = session(app)
    numbered = [[here.number + n, here.page, delta] for n, delta in enumerate(deltas, 1)]
    app.session_state[CHANNEL] = {"said": {"session": here.id, "held": held, "deltas": numbered}}
    return app


def move(app, **values):
    """Move controls, or the widgets of settings, as a user does; the page has to be run then."""
    here = session(app)
    known = {name: setting for kind in store.kinds_of[here.page] for name, setting in kind.settings().items()}
    return say(app, *({name: known[name].write(value)} for name, value in values.items()))


def tell(app, name: str, value):
    """Move one control, with what the page does along with it, and run the page."""
    shown = control(app, name)
    if shown["kind"] == "pills":
        gone = [{f"{shown['set']}/{text}": "off"} for text in shown["value"] if text not in value]
        new = [{f"{shown['set']}/{text}": "on"} for text in value if text not in shown["value"]]
        return send(app, *gone, *new)
    return send(app, {shown["set"]: value, **shown.get("also", {})})


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
    """Let a component say something that stays: its state."""
    sent = app._tree.get_widget_states()
    sent.widgets.add(id=component.id, json_value=json.dumps(values))
    return app._run(sent)


def components(app, name: str) -> list:
    """Return what the browser is told of components of this name."""
    return [element.proto for element in app.get("bidi_component") if element.proto.component_name == name]


def _panels(app) -> list:
    return components(app, "ablation_panel")


def back(app, name: str = ""):
    """Bring one setting of the sidebar back to its default, or all of them."""
    return send(app, {name: None} if name else {"@back": "all"})


def tables(app) -> dict:
    """Return name -> what makes it, of each table that can be taken away; with the button open."""
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


def trigger(app, component, event: str, value):
    """Let a component of our own tell Streamlit of an event."""
    sent = app._tree.get_widget_states()
    told = json.dumps([{"event": event, "value": value}])
    sent.widgets.add(id=_make_trigger_id(component.id, "events"), json_trigger_value=told)
    return app._run(sent)


def drawn(app, key: str = "") -> str:
    """Return the HTML of lessons and classes on a page; of one component, where a key is given."""
    return " ".join(
        json.loads(each.json) for each in components(app, "ablation_lesson_html") if not key or key in each.id
    )
