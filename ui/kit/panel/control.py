"""What the browser is told of one control (fields.js draws it), and how what it says of it is read.

A control is made when it is drawn: its widget is set just before (ui.kit.session.visitor.shows). What comes from the browser
is a number, a place in a list, a switch or a text, by the key of the control's widget; it is checked against what was offered when it is read. `on` of a control, which stays here, is
called with what the visitor has chosen, before the page runs again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.settings.setting import ANY
from ui.kit.session import values
from ui.kit.session.visitor import shows, visitor

Made = dict[str, Any]  # a control as fields.js reads it
Control = Callable[[dict[str, Any]], Made]  # what makes it, from the session's values
NO_TITLES: Mapping[str, str] = {}
PASTED = 100_000  # characters that a field takes: with more of them a message would be too large for Streamlit
PLACES = ("choice", "stops", "tabs")  # kinds of controls that say which place of a list is chosen


def kind_of(settings, name: str) -> str:
    """What a setting is moved with; "" where there is nothing to choose."""
    known = settings.settings()[name]
    if known.menu:
        return "choice"
    if known.kind is bool:
        return "switch"
    among = stops(settings, name)
    return "range" if among is None else "stops" if len(among) > 1 else ""


def stops(settings, name: str) -> list | None:
    """The values that a slider stops at, where it does not take all between two."""
    among = settings.settings()[name].among
    return among(settings) if among else None


def step_of(settings, name: str) -> float:
    """How far one step of a slider goes: by pairs, where the other settings ask for it."""
    known = settings.settings()[name]
    return known.stride(settings) if known.stride else known.step


def choices(settings, name: str) -> list:
    """What the control of a setting offers now: the entries of its menu, or the ends of its slider."""
    known, value = settings.settings()[name], getattr(settings, name)
    if known.menu:
        return settings.choices(name)
    if stops(settings, name) is not None:
        return stops(settings, name)
    if known.kind in (bool, str):
        return []
    top = known.top or (8 * settings.d_model if known.follows else known.high)
    # pushed to its end, a slider opens up to all that is allowed
    top = known.high if value >= top else min(top, known.high)
    step = step_of(settings, name)
    low = min(value, step) if known.kind is int and step > 1 else known.low
    return [low, top]


def of(settings, name: str) -> Control:
    """The control of one setting, as it says of itself."""

    def make(seen) -> Made:
        known, kind, now = settings.settings()[name], kind_of(settings, name), getattr(settings, name)
        offered = choices(settings, name)
        # Keys run ahead of the server: those that push a slider beyond its first end, or back, are of the same slider.
        reads = (known.kind, known.low, known.high) if kind == "range" else None
        made = _made(seen, kind, name, now, offered, known.label, reads) | {"help": known.help}
        if kind in PLACES:
            made["options"] = [known.menu.label(each) if known.menu else f"{each:,g}" for each in offered]
        if kind == "choice":
            made["about"] = [known.menu.help(each) for each in offered]
        if kind == "range":
            made |= {"low": offered[0], "high": offered[1], "most": known.high, "step": step_of(settings, name)}
        fresh = values.default(settings, name)
        if now != fresh or values.is_held(settings, name):
            made["back"] = known.menu.label(fresh) if known.menu else known.write(fresh)
        return made

    return make


def tabs(
    label: str,
    menu,
    name: str,
    on: Callable | None = None,
    left: Sequence[str] = (),
    titles: Mapping[str, str] = NO_TITLES,
) -> Control:
    """The setting `name` as a row of buttons, one for each entry of its menu. left: those of them that there are, where not all;
    titles: what some are called here."""
    offered = [each for each in menu if each in left] or list(menu)
    words = {
        "options": [titles.get(each) or menu.label(each) for each in offered],
        "about": list(map(menu.help, offered)),
        "on": on,
    }
    return lambda seen: _made(seen, "tabs", name, visitor().value(name, seen), offered, label) | words


def numbered(label: str, name: str, words: Sequence[str]) -> Control:
    """A setting that is a number from 1 on, as a row of buttons with these words."""
    return among(label, name, min(values.value(name), len(words)), range(1, len(words) + 1), words)


def among(label: str, name: str, now, offered: Sequence, words: Sequence[str]) -> Control:
    """One of a few, as a row of buttons with these words."""
    return lambda seen: _made(seen, "tabs", name, now, list(offered), label, words=words)


def choice(label: str, name: str, now, offered: Sequence, words: Sequence[str], on: Callable | None = None) -> Control:
    """One of a list. words: how its entries read."""
    return lambda seen: _made(seen, "choice", name, now, list(offered), label, words=words) | {"on": on}


def field(label: str, name: str, hint: str, on: Callable | None = None) -> Control:
    """A setting that is a text, to be typed. hint: what stands in it while it is empty."""
    more = {"hint": hint, "most": PASTED, "on": on}
    return lambda seen: _made(seen, "text", name, visitor().value(name, seen), [], label) | more


def pills(
    label: str, name: str, now: list, offered: Sequence, words: Sequence[str], first: int, on: Callable
) -> Control:
    """Any of a list. first: how many of it are in sight; the others are found by their words, and in sight where they are chosen."""
    more = {"first": first, "on": on}
    return lambda seen: _made(seen, "pills", name, now, list(offered), label, words=words) | more


def press(label: str, name: str, help: str, on: Callable[[], None], icon: str = "", off: bool = False) -> Control:
    """A button. icon: its name among Material's."""
    made = {
        "kind": "press",
        "name": name,
        "key": name,
        "label": label,
        "help": help,
        "icon": icon,
        "off": off,
        "on": on,
    }
    return lambda seen: dict(made)


def lexicon(
    label: str, name: str, into: str, titles: tuple[str, str], groups: Sequence[tuple[str, list[str], bool]]
) -> Control:
    """Words in a fold, by kind; a click puts one behind the text of the control `into` of the same component. groups: (kind, words,
    whether they stand below the first of the two titles, or below the second)."""
    listed = [{"name": kind, "words": words, "next": is_next} for kind, words, is_next in groups]
    made = {
        "kind": "lexicon",
        "name": name,
        "key": name,
        "label": label,
        "into": into,
        "titles": titles,
        "groups": listed,
    }
    return lambda seen: made


def title(name: str) -> Control:
    """What the page is called."""
    return lambda seen: {"kind": "title", "name": "title", "key": "title", "label": name}


def words(html: str) -> Control:
    """What stands beside controls."""
    return lambda seen: {"kind": "words", "name": "words", "key": "words", "label": "", "html": html}


def _made(seen, kind: str, name: str, now, offered, label: str, reads=None, words: Sequence[str] = ()) -> Made:
    """reads: of a slider: int or float, the least and the most."""
    reader = _number(*reads) if reads else _reader(kind, offered)
    offers = (kind,) if reads else (kind, *offered, *words)
    shown = shows(name, now, offers, reader=reader, seen=seen)
    at = offered.index(now) if kind in PLACES else [offered.index(each) for each in now] if kind == "pills" else now
    made = {"name": name, "key": shown.key, "kind": kind, "label": label, "value": at}
    return made | ({"options": list(words)} if words else {})


def _whole(told, low, high) -> bool:
    return isinstance(told, int) and not isinstance(told, bool) and low <= told <= high


def _number(kind: type, low, high) -> Callable:
    """-> what makes a slider's value of what the browser says. Raises ValueError for what is not allowed."""

    def read(told):
        if kind is int and _whole(told, low, high):
            return told
        if kind is float and isinstance(told, int | float) and not isinstance(told, bool) and low <= told <= high:
            return float(told)
        raise ValueError(told)

    return read


def _reader(kind: str, offered) -> Callable:
    """-> what makes a value of what the browser says. Raises ValueError for what was not offered."""

    def read(told):
        if kind in PLACES and _whole(told, 0, len(offered) - 1):
            return offered[told]
        if kind == "switch" and isinstance(told, bool):
            return told
        if kind == "text" and isinstance(told, str) and len(told) <= ANY:
            return "".join(
                c for c in told if not "\ud800" <= c <= "\udfff"
            )  # halves of characters cannot stand in a link
        if kind == "pills" and isinstance(told, list) and all(_whole(each, 0, len(offered) - 1) for each in told):
            return [offered[each] for each in dict.fromkeys(told)]
        raise ValueError(told)

    return read
