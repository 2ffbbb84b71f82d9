"""Settings of one session: one dictionary of texts, changed by one function.

`Choices` holds what differs from the defaults, as "Config.d_model" -> "96": the class of the
settings, the field, and the text that a link has for it. A change is a delta, name -> text, or None
for "follow the default again". Controls, clicks in pictures, examples, opened links and the
browser's Back are all deltas.

The browser numbers its deltas and sends those that were not acknowledged (panel/store.js). So a
message may be lost, come twice or come late: each delta is applied once, in order.
"""

import difflib
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.runtime.state import get_session_state

from core.settings.setting import ConfigError, Settings
from ui.kit.limits import Limits

Choices = dict[str, str]
Delta = Mapping[str, str | None]
Kinds = tuple[type[Settings], ...]

ALL = "*"  # in a delta: every setting of the page follows its default first
HANDLER = "@"  # in front of the name of a function of the page, which is called with the value
# keys in st.session_state
SESSION = "session"
CHANNEL = "channel"

kinds_of: dict[str, Kinds] = {}  # page -> classes of its settings, once the page has been opened


def key_of(settings_class: type[Settings], name: str, choices: Choices) -> str:
    """Return a setting's key in the store, "Config.d_model"; classes share it through `scope`."""
    scope = getattr(settings_class, "scope", None)
    return f"{scope(name, choices) if scope else settings_class.__name__}.{name}"


def apply(
    choices: Choices, delta: Delta, kinds: Kinds, locked: Collection[str] = ()
) -> tuple[Choices, list[ConfigError]]:
    """Return a copy of the choices after a delta (name -> text, None: reset), and errors.

    Unknown and locked names are ignored; an invalid text leaves its setting as it was.
    """
    names = {name for kind in kinds for name in kind.settings() if name not in locked}
    first = [
        name for kind in kinds for name in kind.FIRST
    ]  # others are read, or stored, according to these
    leading = [name for name in dict.fromkeys(first) if name in names and name in delta]
    others = [name for name in delta if name in names and name not in first]
    choices = dict(choices)
    problems: list[ConfigError] = []
    if ALL in delta:
        _drop_choices(choices, kinds, names)
    for name in leading:
        problems += _choose(choices, kinds, name, delta[name])
    if ALL in delta:
        # The leading ones may have chosen another scope, which is to be empty as well.
        _drop_choices(choices, kinds, names - set(leading))
    for name in others:
        problems += _choose(choices, kinds, name, delta[name])
    return choices, problems


def _drop_choices(choices: Choices, kinds: Kinds, names: Iterable[str]):
    """Remove the choices of these settings, in all classes that have them."""
    # All keys first: without one choice (such as weights), key_of gives other keys for the rest.
    keys = [key_of(kind, name, choices) for name in names for kind in kinds]
    for key in keys:
        choices.pop(key, None)


def _choose(choices: Choices, kinds: Kinds, name: str, text: str | None) -> list[ConfigError]:
    """Change one setting in all classes that have it, in place (None: remove it); return errors."""
    for kind in [kind for kind in kinds if name in kind.settings()]:
        key = key_of(kind, name, choices)
        if text is None:
            choices.pop(key, None)
            continue
        setting = kind.settings()[name]
        try:
            value = setting.read(name, text)
        except ConfigError as error:
            return [error]
        if not setting.follows and value == kind.__dataclass_fields__[name].default:
            choices.pop(key, None)
        else:
            choices[key] = setting.write(value)
    return []


def link_of(choices: Choices, kinds: Kinds) -> dict[str, str]:
    """Return the parameters of a page's link: all its settings that differ from the defaults."""
    keys: dict[str, str] = {}
    for kind in kinds:
        for name in kind.settings():
            keys.setdefault(name, key_of(kind, name, choices))
    return {name: choices[key] for name, key in keys.items() if key in choices}


def build(params: Mapping[str, str], kinds: Kinds) -> tuple[list, list[ConfigError]]:
    """Build settings from a link's parameters, others ignored; return them and what was replaced.

    Invalid values are repaired as Settings.repair does.
    """
    chosen = []
    problems = []
    for kind in kinds:
        values, _ = kind.values(params)
        settings, gave_way = kind.repair(values)
        chosen.append(settings)
        problems += gave_way
    return chosen, problems


@dataclass
class Session:
    """State of a session: its choices, and whatever else parts of the app store in it."""

    id: str = field(default_factory=lambda: secrets.token_hex(4))
    choices: Choices = field(default_factory=dict)
    number: int = 0  # of the last delta that was applied
    page: str = ""  # the page that was opened last
    begun: dict[str, str] = field(
        default_factory=dict
    )  # settings with `once` from that link, such as a training to start
    problems: list[ConfigError | str] = field(
        default_factory=list
    )  # of the last delta, or of the opened link
    # changes that were made by Streamlit's own widgets: each is worth an entry of the history
    moves: int = 0
    dragged: bool = False  # whether a control is still under the user's finger
    handlers: dict[tuple[str, str], Callable] = field(
        default_factory=dict
    )  # (page, name) -> what a press calls
    limits: Limits | None = None  # of a teacher's link
    built: dict[type, Settings] = field(default_factory=dict)  # settings of these choices
    kept: dict[str, Any] = field(
        default_factory=dict
    )  # what parts of the app remember, by names of their own
    seen_on: dict[str, set[str]] = field(
        default_factory=dict
    )  # key of a choice -> pages that have shown it
    set_elsewhere: list[str] = field(
        default_factory=list
    )  # settings that were set on another page, for one visit

    def change(self, delta: Delta, page_key: str = ""):
        """Apply a delta to a page's settings (default: the open one); put errors in `problems`.

        Locked settings stay; the history gets no entry by this.
        """
        page_key = page_key or self.page
        locked = self.limits.names_locked_by_link(kinds_of[page_key]) if self.limits else ()
        before = self.choices
        self.choices, problems = apply(before, delta, kinds_of[page_key], locked)
        self.problems = [*problems]
        self.seen_on |= {
            key: {page_key} for key, text in self.choices.items() if before.get(key) != text
        }
        self.begun = {}
        self.built = {}

    def take(self, message: Mapping[str, Any]):
        """Apply this session's deltas from a browser message, those not applied before."""
        if message.get("session") != self.id:
            # it was sent to a server that has been restarted since; the browser sends it again
            return
        self.dragged = bool(message.get("held"))
        for number, page, delta in sorted(
            message.get("deltas", ()), key=lambda numbered: numbered[0]
        ):
            if number > self.number and page in kinds_of:
                self.number = number
                self._take_delta(page, delta)

    def _take_delta(self, page: str, delta: Mapping[str, Any]):
        """Apply a delta to the settings, or call the page's function that its "@name" names."""
        for name, value in delta.items():
            if name.startswith(HANDLER):
                name, _, member = name.removeprefix(HANDLER).partition("/")
                handler = self.handlers.get((page, name))
                if handler is not None:
                    handler(member, value == "on") if member else handler(value)
                return
        # Without halves of characters, which a browser may send and a link cannot hold.
        self.change(
            {name: text and text.encode(errors="ignore").decode() for name, text in delta.items()},
            page,
        )

    def open(self, page_key: str, link: dict[str, str], is_back: bool):
        """Open a page unless open; apply its link (all else is reset), or keep earlier choices."""
        if self.page == page_key:
            return
        # A press on the page before may still come, and wants its handler.
        self.handlers = {
            handler_key: call
            for handler_key, call in self.handlers.items()
            if handler_key[0] in (page_key, self.page)
        }
        self.page = page_key
        self.problems = []
        self.begun = {}
        kinds = kinds_of[page_key]
        once = {name for kind in kinds for name, setting in kind.settings().items() if setting.once}
        if is_back:
            link = {name: text for name, text in link.items() if name not in once}
        if link or is_back:
            self.change({ALL: None, **link})
            self.problems += _describe_unknown(link, kinds)
            # Such a parameter stays in the address until something else changes.
            self.begun = {name: link[name] for name in once & link.keys()}
        self._note_set_elsewhere(page_key, kinds)

    def _note_set_elsewhere(self, page: str, kinds: Kinds):
        """Store the names of settings that another page changed meanwhile, for one notice."""
        keys = {
            name: key_of(kind, name, self.choices) for kind in kinds for name in kind.settings()
        }
        pages_seen = {
            name: self.seen_on.get(key, {page}) for name, key in keys.items() if key in self.choices
        }
        self.set_elsewhere = [name for name, pages in pages_seen.items() if page not in pages]
        for pages in pages_seen.values():
            pages.add(page)

    def link(self, page_key: str = "") -> dict[str, str]:
        """Return a page's (or the open one's) settings as link parameters, without limits."""
        return link_of(self.choices, kinds_of.get(page_key or self.page, ()))

    def settings(self, kinds: Kinds) -> tuple[list, list[str]]:
        """Return the current settings, one per class, and notes for users on replaced values."""
        params = link_of(self.choices, kinds)
        if self.limits:
            params = self.limits.apply(self.page, params, kinds)
        chosen, problems = build(params, kinds)
        self.built |= {type(settings): settings for settings in chosen}
        notes = [_explain(problem, chosen) for problem in (*self.problems, *problems)]
        return chosen, list(
            dict.fromkeys(notes)
        )  # two classes may share a setting, and its mistake


def _describe_unknown(link: Mapping[str, str], kinds: Kinds) -> list[str]:
    """Return a sentence for each unknown parameter, 5 at most, with the nearest setting's name."""
    names = [name for kind in kinds for name in kind.settings()]
    sentences = []
    for name in [name for name in link if name not in names][:5]:
        near = difflib.get_close_matches(name, names, 1)
        meant = f" Did you mean “{near[0]}”?" if near else ""
        sentences.append(f"Unknown setting in the link: “{name[:30]}”.{meant}")
    return sentences


def _explain(problem: ConfigError | str, chosen: list) -> str:
    """Return a problem as a sentence; it ends with the value used instead, if there is one."""
    if isinstance(problem, str):
        return problem
    for settings in chosen:
        setting = settings.settings().get(problem.field)
        if setting is not None and not (setting.kind is str and setting.menu is None):
            value = setting.show(getattr(settings, problem.field))
            return f"{problem} Using {f'“{value}”' if setting.menu else value} instead."
    return str(problem)


_current: ContextVar[Session | None] = ContextVar("session", default=None)


@contextmanager
def session_in_use():
    """Look the session up once for all inside, and yield it (a context manager for a page)."""
    token = _current.set(session())
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def session() -> Session:
    """Return the session of the user whose page or callback runs in this thread; create it."""
    current = _current.get()
    if current is None:
        # st.session_state lets another run cut in, which would leave a callback half done.
        current = get_session_state().filtered_state.get(SESSION)
    if current is None:
        current = st.session_state[SESSION] = Session()
    return current


def read_message() -> Mapping[str, Any]:
    """Return the browser's last message, which stays until the next one; {} without any."""
    channel = st.session_state.get(CHANNEL)
    message = channel.get("said") if channel else None
    return message if isinstance(message, dict) else {}


def allows(page_key: str) -> bool:
    """Return whether this page can be opened: always, unless a teacher's link limits pages."""
    limits = session().limits
    return limits is None or page_key in limits.pages


def is_movable(name: str) -> bool:
    """Return whether a setting can be changed: with a teacher's link only those that it frees."""
    limits = session().limits
    return limits is None or name in limits.moved


def settings_of(settings_class: type[Settings]) -> Any:
    """Return the current settings of one class, built if need be."""
    current = session()
    if settings_class not in current.built:
        current.settings((settings_class,))
    return current.built[settings_class]


def value(name: str) -> Any:
    """Return the current value of a setting of the open page."""
    kind = next(kind for kind in kinds_of[session().page] if name in kind.settings())
    return getattr(settings_of(kind), name)


def change(**values: Any):
    """Change settings of the open page, as values, in a callback: an entry in the history.

    Unknown and locked names are ignored; errors become notes.
    """
    current = session()
    current.moves += 1
    current.change(_write(values))


def change_quietly(**values: Any):
    """Change the open page's settings, locked ones too, no history entry; drop invalid values."""
    current = session()
    current.choices, _ = apply(current.choices, _write(values), kinds_of[current.page])
    current.built = {}


def _write(values: Mapping[str, Any]) -> dict[str, str]:
    """Return name -> text as in a link, from values; without names unknown to the open page."""
    definitions = {
        name: setting
        for kind in kinds_of[session().page]
        for name, setting in kind.settings().items()
    }
    return {
        name: definitions[name].write(value)
        for name, value in values.items()
        if name in definitions
    }


def restore(settings: Settings):
    """Set all settings of the open page that this instance has; an entry in the history.

    A callback. A setting that already has its value keeps following, or not following, its default.
    """
    current = session()
    delta: dict[str, str | None] = {}
    for kind in kinds_of[current.page]:
        names = settings.settings().keys() & kind.settings().keys()
        before = settings_of(kind)
        targets = {name: getattr(settings, name) for name in names}
        after, _ = kind.repair({name: getattr(before, name) for name in kind.settings()} | targets)
        for name, target in targets.items():
            is_same = getattr(before, name) == target and (
                after.follows(name) or not before.follows(name)
            )
            if not is_same:
                delta[name] = None if after.follows(name) else kind.settings()[name].write(target)
    current.moves += 1
    current.change(delta)


def reset(*kinds: type[Settings], **params: str):
    """Reset these classes' settings on the open page, but set `params` (texts); not if locked."""
    current = session()
    current.moves += 1
    current.change({name: None for kind in kinds for name in kind.settings()} | params)


def default_of(settings: Settings, name: str) -> Any:
    """Return a setting's value without a choice: its default, or what it follows."""
    follows = settings.settings()[name].follows
    return follows(settings) if follows else type(settings).__dataclass_fields__[name].default


def bind(name: str, value: Any, change_to: Callable[[Any], None] | None = None) -> dict[str, Any]:
    """Set a Streamlit widget to a value; return its arguments key, on_change and args.

    `change_to` is called in place of changing the setting.

    Args:
        name: The setting, or any name if `change_to` is given.
        value: Value that the widget shows.
        change_to: Called with the new value, in place of changing the setting.
    """
    key = f"bound_{name}"
    state = st.session_state.get(key)
    same = (
        sorted(state, key=str) == sorted(value, key=str)
        if isinstance(state, list)
        else state == value
    )
    if key not in st.session_state or not same:
        st.session_state[key] = value
    return {"key": key, "on_change": _take_bound, "args": (name, key, change_to)}


def _take_bound(name: str, key: str, change_to: Callable[[Any], None] | None):
    """Change the setting to the widget's new value, or call change_to with it (a callback)."""
    value = get_session_state().filtered_state.get(key)
    if change_to is not None:
        change_to(value)
    else:
        change(**{name: value})
