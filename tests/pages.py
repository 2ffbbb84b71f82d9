"""Pages without a browser: what a setting is, and its widget, whose key changes with each value that the page gives it."""

import re

from ui.kit.session.visitor import VISITOR


def setting(app, name: str):
    """A setting of the page as it is now, or as a widget that was moved will have it."""
    return app.session_state[VISITOR].value(name, app.session_state._state.filtered_state)


def widget(elements, name: str):
    """The widget of that name among those of one kind, such as app.slider."""
    return next(each for each in elements if re.fullmatch(rf"{name}-\d+", each.key or ""))


def move(app, **values):
    """Move widgets, as a visitor does; the page has to be run then."""
    for name, value in values.items():
        app.session_state[app.session_state[VISITOR].shown[name][-1].key] = value
    return app


def put(app, **values):
    """Change settings, as a callback of the page does; the page has to be run then."""
    app.session_state[VISITOR].put.update(values)
    return app
