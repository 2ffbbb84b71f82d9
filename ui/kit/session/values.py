"""Settings between link, session and widgets. The link is the truth when it is new; else what was settled before, with
what the visitor has moved since.

Every setting is a field with a Setting (core/settings/setting.py): its name is the link's parameter and the widget's name (ui/kit/session/visitor.py).
At the top of a page, settings() reads them all and mends what does not fit together; so the model is known before a
single control is drawn, and no control is forgotten by a page that does not show it.
"""

import dataclasses
import time

from core.settings.setting import ConfigError
from ui.kit.rights import take_key
from ui.kit.session import address, limits
from ui.kit.session.kin import take_along
from ui.kit.session.visitor import PANEL, Visitor, calm_visitor, hash_of, message, state, visitor

ON_ITS_WAY = 2.0  # seconds for which a link that the browser was told may not have come to it yet
kinds_of: dict[str, tuple] = {}  # page -> kinds of its settings, once anybody has opened it


def settings(page: str, *kinds):
    """One instance of each class of settings, from the link or the widgets; writes the link back.

    -> (instances, sentences about what had to be changed)
    """
    kinds_of[page] = kinds
    opened, held, seen = address.opened(), visitor(), state()
    link = opened
    refused = take_key()
    if address.is_back():
        link = _without_once(link, kinds)
    if _is_new(link, held, page):
        # The browser's Back may lead to the bare link of a page that was entered with settings from another one.
        values, notes = _from_link(link or held.bare.get(page, {}), kinds)
    else:
        values, notes = _from_widgets(kinds, held, seen if held.page == page else {}), []
    chosen, wanted, problems = _together(limits.applied(page, values))
    if not notes and all(held.settled.get(type(each)) == each for each in chosen):
        notes = held.notes
    params = {name: value for each in chosen for name, value in each.write(_fixed(each, wanted)).items()}
    if params in (link, _without_once(link, kinds)):
        params = link  # in its own order; and what has been done once stays in the address until something else changes
    notes = [*refused, *notes]
    _settle(held, page, kinds, chosen, notes, link, params, seen)
    held.wanted |= wanted
    take_along(held, chosen)
    # On its way under the finger, no value is worth an entry in the browser's history.
    if not message(seen).get("held") and (held.by_menu or params != opened or not _knows(held, params)):
        held.link = params
        if address.is_here():
            address.write()
    # Two kinds may share a setting, and find the same fault with it.
    return chosen, list(dict.fromkeys([*notes, *problems]))


def leave_for(page: str):
    """At the beginning of a page: take down what was moved on the one before at the last moment, where no run came in between."""
    held = visitor()
    if held.page in ("", page) or address.is_back():
        return
    chosen, wanted, _ = _together(limits.applied(held.page, _from_widgets(held.kinds, held, state())))
    held.settled |= {type(each): each for each in chosen}
    held.wanted |= wanted
    take_along(held, chosen)
    held.put.clear()
    held.freed.clear()


def _knows(held: Visitor, link: dict[str, str]) -> bool:
    """Whether the browser, which asked for this run with the link, can have none but this in its address by now.

    It may have been told of another one since: then what it was told last counts. Where it goes back and forth through its
    history, nothing is on its way to it, and to tell it a link would overwrite the entry that it is at by now.
    """
    at_rest = time.monotonic() - held.told > ON_ITS_WAY
    return not address.lacks_limits() and (held.sent == link or (address.is_back() and at_rest))


def _without_once(link: dict[str, str], kinds) -> dict[str, str]:
    """A link without what acts once, when it is opened. Whoever comes back to it by the browser's Back has had that."""
    once = {name for kind in kinds for name, known in kind.settings().items() if known.once}
    return {name: value for name, value in link.items() if name not in once}


def _settle(held: Visitor, page, kinds, chosen, notes, link, params, seen):
    """Take down what holds from now on; nothing in here lets another run in between."""
    if held.page != page:
        held.shown.clear()  # to Streamlit a widget on another page is another one
        held.menu.clear()
        held.panels = {PANEL}
        if held.page and not link:
            held.bare[page] = params
    for name, widgets in held.shown.items():
        if any(name in kind.settings() for kind in kinds):
            for each in widgets:
                each.value = seen.get(each.key, each.value)
    held.page, held.kinds, held.notes, held.written = page, kinds, notes, params
    held.settled |= {type(each): each for each in chosen}
    held.put.clear()
    held.freed.clear()
    held.remember(link, params)


def link_to(page: str) -> dict[str, str]:
    """The parameters with which the menu leads to a page: its settings as they are."""
    held = visitor()
    kinds = [kind for kind in kinds_of.get(page, ()) if kind in held.settled]
    chosen = [held.settled[kind] for kind in kinds]
    params = {name: text for each in chosen for name, text in each.write(_fixed(each, held.wanted)).items()}
    params = _without_once(params, kinds)
    held.menu.append(hash_of(params))
    return params


def value(name: str):
    """A setting of this page as it is now, also in a callback, and in a part of the page that is drawn by itself."""
    seen = state()
    return calm_visitor().value(name, seen)


def moved(chosen) -> bool:
    """Whether one of these settings has been changed since they were read: a fragment is drawn again without reading them."""
    held, seen = visitor(), state()
    return any(held.value(name, seen) != getattr(chosen, name) for name in chosen.settings())


def _is_new(link: dict, held: Visitor, page: str) -> bool:
    """Whether the link came from outside, rather than from what the page itself wrote.

    A quick hand moves a slider again before the browser has taken over the link that the last move led to: then it still
    sends one that was written earlier.
    """
    if not held.page or address.is_back():
        return True
    if page != held.page:
        # The menu's links are those of the settings as they were when it was drawn.
        return bool(link) and link != held.written and hash_of(link) not in held.menu
    return not held.remembers(link)


def _from_link(link, kinds):
    """-> (kind -> name -> value that the link asks for, sentences about what of it cannot be read)"""
    asked, notes, known = {}, [], set()
    for kind in kinds:
        asked[kind], problems = kind.values(link)
        known |= set(kind.settings())
        notes += [f"{error} {_instead(error, kind.mended(asked[kind])[0])}" for error in problems]
    unknown = [name for name in link if name not in known]
    if unknown:
        names = ", ".join(f"“{name[:30]}”" for name in unknown[:5])
        notes.append(f"The link names {names}, which is no setting here; known are {', '.join(sorted(known))}.")
    return asked, notes


def _from_widgets(kinds, held: Visitor, seen: dict):
    """kind -> name -> value that is asked for now. seen: the session's values; empty where the widgets are those of another page."""
    asked = {}
    for kind in kinds:
        old, wanted, values = held.settled.get(kind) or kind(), held.wanted.get(kind, {}), {}
        for name in kind.settings():
            if name in held.put:
                values[name] = None if name in held.freed else held.put[name]
            elif seen and held.moved(name, seen):
                values[name] = seen[held.moved(name, seen).key]
            elif name in wanted:
                values[name] = wanted[name]
            else:
                values[name] = None if old.follows(name) else getattr(old, name)
        asked[kind] = values
    return asked


def _together(asked):
    """Settings that can be together, as near to what is asked for as they come.

    asked: kind -> name -> value -> (instances, what they do not show of it: kind -> name -> value, sentences about that)
    """
    chosen, wanted, notes = [], {}, []
    for kind, values in asked.items():
        one, problems = kind.mended(values)
        gave_way = {error.field for error in problems}
        wanted[kind] = {
            name: value
            for name, value in values.items()
            if value is not None and (name in gave_way or one.follows(name))
        }
        chosen.append(one)
        notes += [f"{error} {_instead(error, one)}" for error in problems]
    return chosen, wanted, notes


def _fixed(chosen, wanted) -> set[str]:
    """Which settings stay as they are when those change that they would follow, though now it is the same."""
    return {name for name, value in wanted[type(chosen)].items() if value == getattr(chosen, name)}


def _instead(error: ConfigError, chosen) -> str:
    each, value = chosen.settings()[error.field], getattr(chosen, error.field)
    free_text = each.kind is str and each.menu is None
    return "" if free_text else f"Used instead: {each.menu.label(value) if each.menu else each.write(value)}."


def put(**values):
    """Change settings from a button's callback, as if their widgets had been moved."""
    held = calm_visitor()
    held.put.update(values)
    held.freed -= set(values)


def default(settings, name: str):
    """What a setting has where nobody chooses: its default, or what it takes from the others as they are."""
    follows = settings.settings()[name].follows
    return follows(settings) if follows else type(settings).__dataclass_fields__[name].default


def is_held(settings, name: str) -> bool:
    """Whether a setting that would follow others has been chosen, be it as it would be anyway: it no longer follows."""
    return bool(settings.settings()[name].follows) and name in _fixed(settings, visitor().wanted)


def free(settings, name: str):
    """One setting back to that, from a button's callback."""
    put(**{name: default(settings, name)})
    if settings.settings()[name].follows:
        calm_visitor().freed.add(name)


def put_all(settings):
    """The same for every setting of an instance; what follows others there goes on following."""
    names = list(settings.settings())
    put(**{name: getattr(settings, name) for name in names})
    calm_visitor().freed.update(name for name in names if settings.follows(name))


def amend(settings, **values):
    """Change settings while the page is drawn: they hold from its next run on, unless the visitor moves them."""
    held, kind = visitor(), type(settings)
    held.settled[kind] = dataclasses.replace(settings, **values)
    held.wanted[kind] = {name: value for name, value in held.wanted[kind].items() if name not in values}


def reset(*kinds):
    """Every setting back to its default (a callback)."""
    take({}, *kinds)


def take(params: dict[str, str], *kinds):
    """Every setting as a link with these parameters would have it (a callback)."""
    for kind in kinds:
        put_all(kind.read(params)[0])
