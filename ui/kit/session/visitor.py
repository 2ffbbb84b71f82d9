"""What one visitor's session holds of settings and widgets.

A run of a page can be cut short by the next one wherever Streamlit is called, and the browser may answer to a widget
before it has seen what the page has set it to. So all of it is one object, changed in place between two calls of
Streamlit; and a widget that the page sets to another value is a new widget, with a new key: what the browser still says
of the old one is about the old one. A value under the present key that the page has not set is a choice of the visitor's.
"""

import math
import operator
import secrets
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.runtime.state import get_session_state

VISITOR = "_visitor"  # the key in the session
PANEL = "panel"  # the key of the sidebar's controls, which are one component (ui/kit/panel)
LINKS = 1000  # links that a session remembers to have written
FORMER, KEYS = 8, 64  # widgets of one name that are remembered; different keys that they have


@dataclass
class Shown:
    """A widget as the page has set it, or as the visitor has moved it since."""

    key: str
    value: Any
    first: Any  # with which the widget was made: its default, as long as it has this key
    offers: Any  # what can be chosen in it: other choices make another widget
    reader: Callable[[Any], Any] | None = (
        None  # of a control of the panel: what the browser says -> value, or ValueError
    )


@dataclass
class Visitor:
    id: str = field(
        default_factory=lambda: secrets.token_hex(4)
    )  # after a restart of the server a page has another one
    page: str = ""  # the page that was settled last
    kinds: tuple[type, ...] = ()  # of settings that it has
    settled: dict[type, Any] = field(default_factory=dict)  # kind of settings -> as they were last used
    # kind -> name -> value that was asked for, where it could not be or is what the setting would take from others anyway:
    # it is tried again whenever something else changes
    wanted: dict[type, dict[str, Any]] = field(default_factory=dict)
    put: dict[str, Any] = field(default_factory=dict)  # by callbacks, since then: name -> value
    freed: set[str] = field(default_factory=set)  # of those: which follow others again
    # name of a widget of this page -> the widget, after those that stood in its place before: a browser may not have
    # heard yet that they are gone
    shown: dict[str, deque[Shown]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # name of a widget -> how many there have been
    kept: dict[str, Any] = field(default_factory=dict)  # what else parts of a page remember, by names of their own
    notes: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)  # the link, as this page last wrote it
    sent: dict[str, str] | None = None  # the link that the browser was last told
    link: dict[str, str] | None = None  # the one that it is to be told of, once its address is this page's
    links: deque[int] = field(default_factory=lambda: deque(maxlen=LINKS))  # hashes of all that were written or opened
    by_menu: bool = False  # whether it was the menu that asked for this run
    told: float = -math.inf  # when the browser was last told of a link: time.monotonic()
    panels: set[str] = field(default_factory=lambda: {PANEL})  # the components of controls that this page has drawn
    menu: deque[int] = field(default_factory=lambda: deque(maxlen=LINKS))  # hashes of the links of this page's menu
    bare: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # page -> the settings with which its bare link was entered

    def remember(self, *links: dict[str, str]):
        """Take note of links that were written or opened; of one that is long, no more than of one that is short."""
        self.links += [mark for mark in map(hash_of, links) if mark not in self.links]

    def remembers(self, link: dict[str, str]) -> bool:
        return hash_of(link) in self.links

    def moved(self, name: str, state: dict) -> Shown | None:
        """The widget of this name that the visitor has moved since the page settled it, or set it."""
        moved = (each for each in reversed(self.shown.get(name, ())) if state.get(each.key, each.value) != each.value)
        return next(moved, None)

    def read(self, told: dict[str, Any]) -> dict[str, Any]:
        """What the browser says of controls: key -> value. What cannot be, is not read."""
        values = {}
        for each in (each for widgets in self.shown.values() for each in widgets if each.reader and each.key in told):
            with suppress(ValueError):
                values[each.key] = each.reader(told[each.key])
        return values

    def value(self, name: str, state: dict):
        """What a setting of the present page is to be: as a callback has put it, as the visitor has moved it, or as it was settled."""
        if name in self.put:
            return self.put[name]
        moved = self.moved(name, state)
        if moved:
            return state[moved.key]
        return next(getattr(self.settled[kind], name) for kind in self.kinds if hasattr(self.settled[kind], name))


def hash_of(link: dict[str, str]) -> int:
    """By which a link is remembered."""
    return hash(frozenset(link.items()))


@dataclass
class Run:
    """What one run of a page has looked up in the session: to look again and again took a fifth of its time."""

    held: Visitor
    seen: dict[str, Any] | None = None


_run: ContextVar[Run | None] = ContextVar("run", default=None)


@contextmanager
def at_hand():
    """While a page is drawn: who it is drawn for, and what the browser said when it asked for it, stay as they are."""
    token = _run.set(Run(visitor()))
    try:
        yield
    finally:
        _run.reset(token)


def visitor() -> Visitor:
    """Of this session."""
    run = _run.get()
    if run is not None:
        return run.held
    if VISITOR not in st.session_state:
        st.session_state[VISITOR] = Visitor()
    return st.session_state[VISITOR]


def state() -> dict[str, Any]:
    """The session's values by their keys, read in one go: unlike st.session_state, it lets no other run in between."""
    run = _run.get()
    if run is None:
        return _read_state()
    if run.seen is None:
        run.seen = _read_state()
    return run.seen


def _read_state() -> dict[str, Any]:
    values = get_session_state().filtered_state
    if VISITOR not in values:
        return values
    told = [message(values, name).get("values") for name in values[VISITOR].panels]
    said = {key: value for each in told if isinstance(each, dict) for key, value in each.items()}
    return values | values[VISITOR].read(said) if said else values


def message(values: dict[str, Any], name: str = PANEL) -> dict[str, Any]:
    """What a component of controls last said: `values` of its controls by their keys, `held`: whether one is still under the
    visitor's finger, `number`, which it counts up, and `session`: whose keys these are. What was said to a server that has
    been started again since is nothing: the browser says it once more (panel.js)."""
    panel, held = values.get(name), values.get(VISITOR)
    told = panel.get("moved") if isinstance(panel, dict) else None
    return told if isinstance(told, dict) and held and told.get("session") == held.id else {}


def is_dragged() -> bool:
    """Return whether a control is still under the user's finger: then what is slow and small waits for its release."""
    return bool(message(state()).get("held"))


def picked_in(key: str, kind: type, event: str = "picked"):
    """What was picked in a picture, for its callback; None where a click comes for one that is no longer shown, or what comes is
    not of the kind that its script tells: anybody can send anything."""
    picture = state().get(key)
    told = picture.get(event) if isinstance(picture, dict) else None
    return told if isinstance(told, kind) and not isinstance(told, bool) else None


def calm_visitor() -> Visitor:
    """The same for a callback, which Streamlit would give up half done where it reads st.session_state."""
    run = _run.get()
    return run.held if run else state().get(VISITOR) or visitor()


def shows(
    name: str, value, offers: Hashable = None, same: Callable = operator.eq, reader: Callable | None = None, seen=None
) -> Shown:
    """The widget that shows this value: to be called just before it is drawn with that key, and `first` as its default.

    (A default, and not a value put into the session: a browser shows the default for a moment, and may speak of it.)
    offers: what can be chosen in it, where that changes. same: whether two values look alike in it. reader: as of Shown, for a
    control of the panel; seen: the session's values, for those.
    """
    held = visitor()
    widgets = held.shown.setdefault(name, deque(maxlen=FORMER))
    if widgets and widgets[-1].offers == offers:
        shown = widgets[-1]
        if seen is not None:
            now = seen.get(shown.key, shown.first)
        else:
            now = st.session_state[shown.key] if shown.key in st.session_state else shown.first
        if same(now, value):
            shown.value = now
            return shown
    # Streamlit keeps something of every key for as long as the session lives: so they come round again.
    number = held.numbers[name] = held.numbers.get(name, 0) % KEYS + 1
    widgets.append(Shown(f"{name}-{number}", value, value, offers, reader))
    return widgets[-1]


def now(name: str, otherwise, offers: Hashable = None):
    """What stands in a widget that is no setting: what the visitor has put there, or what it has where it is not drawn."""
    widgets = visitor().shown.get(name)
    if widgets and widgets[-1].offers == offers and widgets[-1].key in st.session_state:
        return st.session_state[widgets[-1].key]
    return otherwise


def at(name: str, value, offers: Hashable = None) -> dict:
    """What makes a slider, a switch or a field show a value."""
    shown = shows(name, value, offers)
    return {"key": shown.key, "value": shown.first}


def one_of(name: str, value, options, words: Hashable = None) -> dict:
    """What makes a selectbox show one of its options. words: how they read, where that changes."""
    shown = shows(name, value, (tuple(options), words))
    return {"key": shown.key, "index": list(options).index(shown.first)}


def some_of(name: str, values: list, options, words: Hashable = None) -> dict:
    """What makes pills, or a list of several, show some of their options."""
    shown = shows(name, list(values), (tuple(options), words), alike)
    return {"key": shown.key, "default": shown.first}


def choice(name: str, key: str):
    """What the visitor has chosen in a widget, for its callback; None where nothing was: Streamlit takes it for a change, too,
    when a browser still speaks of a widget that is gone."""
    seen = state()
    moved = seen[VISITOR].moved(name, seen)
    return seen[key] if moved and moved.key == key else None


def alike(one, other) -> bool:
    """Whether the same things are chosen, in whatever order."""
    return sorted(one or ()) == sorted(other or ())
