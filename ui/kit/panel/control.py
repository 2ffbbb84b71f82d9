"""Controls as data: what fields.js needs to draw each of them.

A control shows a text of the store, and has no state of its own. What the user does with it is a
delta: of the setting itself, or, as "@name", of a function that the page registers when it is
drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.settings.setting import Settings
from core.settings.wording import capitalise, number
from ui.kit.store import HANDLER, default_of, key_of, session, value

Control = dict[str, Any]  # as fields.js reads it
NO_TITLES: Mapping[str, str] = {}
# characters that a field takes: with more of them a message would be too large for Streamlit
PASTED = 100_000


def register_handler(name: str, call: Callable) -> str:
    """Register, for this page and session, a function that the browser calls; return "@name".

    A later one of the name replaces it.

    Args:
        name: One name per control of the page.
        call: Called with the value; for a set of things with one of them, and whether it is in.
    """
    current = session()
    current.handlers[current.page, name] = call
    return f"{HANDLER}{name}"


def control_kind(settings: Settings, name: str) -> str:
    """Return a setting's control: choice, switch, range, stops; "" if it has one value only."""
    definition = settings.settings()[name]
    if definition.menu:
        return "choice"
    if definition.kind is bool:
        return "switch"
    among = stops(settings, name)
    if among is None:
        return "range"
    return "stops" if len(among) > 1 else ""


def stops(settings: Settings, name: str) -> list | None:
    """Return the values that a slider stops at; None if its range is continuous."""
    among = settings.settings()[name].among
    return among(settings) if among else None


def step_of(settings: Settings, name: str) -> float:
    """Return a slider's step, which may depend on the other settings; for settings with one."""
    definition = settings.settings()[name]
    return definition.stride(settings) if definition.stride else definition.step


def choices(settings, name: str) -> list:
    """Return what a control offers now: menu keys, stops or [low, high]; [] for switch and text."""
    definition = settings.settings()[name]
    now = getattr(settings, name)
    if definition.menu:
        return settings.choices(name)
    if stops(settings, name) is not None:
        return stops(settings, name)
    if definition.kind in (bool, str):
        return []
    top = definition.top or (8 * settings.d_model if definition.follows else definition.high)
    # Pushed to its end, a slider opens up to all that is allowed.
    top = definition.high if now >= top else min(top, definition.high)
    step = step_of(settings, name)
    low = min(now, step) if definition.kind is int and step > 1 else definition.low
    return [low, top]


def control_of(settings: Settings, name: str) -> Control:
    """Return the control of a setting, with its current value and what it offers now."""
    definition = settings.settings()[name]
    kind = control_kind(settings, name)
    now = getattr(settings, name)
    offered = choices(settings, name)
    control = _control(kind, name, definition.write(now), definition.label) | {
        "help": definition.help
    }
    if kind == "choice":
        control["options"] = [(key, definition.menu.label(key)) for key in offered]
        control["about"] = [capitalise(definition.menu.help(key)) for key in offered]
    if kind == "stops":
        control["options"] = [(definition.write(stop), number(stop, 6)) for stop in offered]
    if kind == "range":
        control |= {
            "low": offered[0],
            "high": offered[1],
            "most": definition.high,
            "step": step_of(settings, name),
        }
    usual = default_of(settings, name)
    control["fresh"] = definition.write(usual)
    control["usual"] = definition.show(usual)
    control["follows"] = bool(definition.follows)
    chosen = session().choices
    is_chosen = key_of(type(settings), name, chosen) in chosen
    if now != usual or (definition.follows and is_chosen):
        control["back"] = True
    return control


def tabs(
    label: str,
    menu,
    name: str,
    on_select: Callable | None = None,
    entries: Sequence[str] = (),
    titles: Mapping[str, str] = NO_TITLES,
) -> Control:
    """Return a setting's menu (its `entries`) as buttons; a click sets it, or calls on_select.

    Args:
        label: Label for screen readers.
        menu: Menu of the setting.
        name: Name of the setting.
        on_select: Called with the entry that is chosen, in place of changing the setting.
        entries: Entries to offer; () for all.
        titles: Labels that replace those of the menu, by entry.
    """
    offered = [entry for entry in menu if entry in entries] or list(menu)
    control = _control("tabs", name, value(name), label)
    control["options"] = [(entry, titles.get(entry) or menu.label(entry)) for entry in offered]
    control["about"] = [capitalise(menu.help(entry)) for entry in offered]
    if on_select:
        control["set"] = register_handler(name, on_select)
    return control


FOLDS = {"folds": True}  # for a row of buttons: a menu where there is little room


def among(label: str, name: str, selected, offered: Sequence, labels: Sequence[str]) -> Control:
    """Return a row of buttons that sets `name` to one of `offered` (as text), with `labels`."""
    return _control("tabs", name, str(selected), label) | {"options": _options(offered, labels)}


def choice(
    label: str,
    name: str,
    selected,
    offered: Sequence,
    labels: Sequence[str],
    on_select: Callable | None = None,
) -> Control:
    """Return a menu of `labels` that sets `name` to one of `offered`, or only calls on_select.

    Args:
        label: Label of the control.
        name: Name of the setting, or of the control where `on_select` is given.
        selected: Selected entry.
        offered: Entries, in order.
        labels: Labels of the entries.
        on_select: Called with the entry that is chosen, in place of changing the setting.
    """
    control = _control("choice", name, str(selected), label) | {
        "options": _options(offered, labels)
    }
    if on_select:
        entries = {str(entry): entry for entry in offered}
        control["set"] = register_handler(
            name, lambda text: on_select(entries[text]) if text in entries else None
        )
    return control


def stops_control(
    label: str,
    name: str,
    selected: str,
    options: list[tuple[str, str]],
    help: str,
    on_select: Callable[[str], None],
) -> Control:
    """Return a slider that stops at (entry, label) pairs and calls on_select with an entry.

    Args:
        label: Label of the slider.
        name: Name of the control, which no setting has.
        selected: Selected entry.
        options: Entries and their labels, in order.
        help: Help text.
        on_select: Called with the entry that is chosen.
    """
    control = _control("stops", name, selected, label) | {"options": options, "help": help}
    control["set"] = register_handler(name, on_select)
    return control


def field(label: str, name: str, hint: str) -> Control:
    """Return a text field for a setting; `hint` is its placeholder.

    Args:
        label: Label of the field.
        name: Name of the setting.
        hint: Placeholder while it is empty.
    """
    return _control("text", name, value(name), label) | {"hint": hint, "most": PASTED}


def pills(
    label: str,
    name: str,
    selected: list[str],
    offered: Sequence[str],
    labels: Sequence[str],
    on_toggle: Callable,
    search: str,
) -> Control:
    """Return a menu with search and chips; on_toggle(entry, is_selected) follows each click.

    Args:
        label: Label of the control.
        name: Name of the control.
        selected: Selected entries.
        offered: Entries, in order.
        labels: Labels of the entries.
        on_toggle: Called with an entry, and whether it is selected now.
        search: Placeholder of the search field.
    """
    control = _control("pills", name, list(selected), label) | {
        "options": _options(offered, labels),
        "hint": search,
    }
    control |= {"colours": {}, "titles": ()}
    control["set"] = register_handler(name, on_toggle)
    return control


def press(
    label: str,
    name: str,
    help: str,
    on_click: Callable[[], None],
    icon: str = "",
    is_disabled: bool = False,
) -> Control:
    """Return a button with this tooltip; `icon` is a Material icon, `name` its handler's."""
    control = _control("press", name, "", label) | {"help": help, "icon": icon, "off": is_disabled}
    control["set"] = register_handler(name, lambda _: on_click())
    return control


def lexicon(
    label: str,
    name: str,
    field_name: str,
    titles: tuple[str, str],
    groups: Sequence[tuple[str, list[str], bool]],
) -> Control:
    """Return groups (kind, words, can come next) in a fold; a click appends a word to a field.

    Args:
        label: Label of the fold.
        name: Name of the control.
        field_name: Name of the text field, in the same component.
        titles: Headings above the words that can come next, and above all others.
        groups: Kind, words, and whether they can come next.
    """
    listed = [{"name": kind, "words": words, "next": is_next} for kind, words, is_next in groups]
    return _control("lexicon", name, "", label) | {
        "into": field_name,
        "titles": titles,
        "groups": listed,
    }


def title(name: str) -> Control:
    """Return a page's title as a control, for its first row."""
    return _control("title", "title", "", name)


def html_control(html: str) -> Control:
    """Return a control that is only text: this HTML, which is not escaped."""
    return _control("words", "words", "", "") | {"html": html}


def _control(kind: str, name: str, now: str | list[str], label: str) -> Control:
    """Return a control with the fields that every one has."""
    # set: the name of the delta; a control may also have `also`, a delta of other names that goes
    # along with it.
    return {"name": name, "set": name, "kind": kind, "label": label, "value": now}


def _options(offered: Sequence, labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return (entry, label) pairs as text."""
    return [(str(entry), word) for entry, word in zip(offered, labels)]
