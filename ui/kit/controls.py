"""Settings between link, session and widgets. The link is the truth when it is new; else what was settled before, with
what the visitor has moved since.

Every setting is a field with a Setting (core/settings/setting.py): its name is the link's parameter and the widget's name (ui/kit/visitor.py).
At the top of a page, settings() reads them all and mends what does not fit together; so the model is known before a
single control is drawn, and no control is forgotten by a page that does not show it.
"""

import dataclasses

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.settings.setting import ConfigError
from ui.kit import address
from ui.kit.rights import without_key
from ui.kit.visitor import Visitor, at, calm_visitor, one_of, shows, state, visitor


def settings(page: str, *kinds):
    """One instance of each class of settings, from the link or the widgets; writes the link back.

    -> (instances, sentences about what had to be changed)
    """
    opened, held, seen = st.query_params.to_dict(), visitor(), state()
    link, refused = without_key(opened)
    if get_script_run_ctx().is_history_navigation:
        link = _without_once(link, kinds)
    if _is_new(link, held, page):
        # The browser's Back may lead to the bare link of a page that was entered with settings from another one.
        chosen, notes = _from_link(link or held.bare.get(page, {}), kinds)
    else:
        chosen, notes = _from_widgets(kinds, held, seen if held.page == page else {})
        if not notes and all(held.settled.get(type(each)) == each for each in chosen):
            notes = held.notes
    params = {name: value for each in chosen for name, value in each.write().items()}
    if params in (link, _without_once(link, kinds)):
        params = link  # in its own order; and what has been done once stays in the address until something else changes
    notes = list(dict.fromkeys([*refused, *notes]))  # two kinds may share a setting, and find the same fault with it
    _settle(held, page, kinds, chosen, notes, link, params, seen)
    # A browser that asked for this run may have been told of another link since: what it was told last counts, too.
    if params != opened or params != held.sent:
        held.link = params
        if address.is_here():
            address.write()
    return chosen, notes


def _without_once(link: dict[str, str], kinds) -> dict[str, str]:
    """A link without what acts once, when it is opened. Whoever comes back to it by the browser's Back has had that."""
    once = {name for kind in kinds for name, known in kind.settings().items() if known.once}
    return {name: value for name, value in link.items() if name not in once}


def _settle(held: Visitor, page, kinds, chosen, notes, link, params, seen):
    """Take down what holds from now on; nothing in here lets another run in between."""
    if held.page != page:
        held.shown.clear()  # to Streamlit a widget on another page is another one
        if held.page and not link:
            held.bare[page] = params
    for name, widgets in held.shown.items():
        if any(name in kind.settings() for kind in kinds):
            for each in widgets:
                each.value = seen.get(each.key, each.value)
    held.page, held.kinds, held.notes, held.written = page, kinds, notes, params
    held.settled |= {type(each): each for each in chosen}
    held.put.clear()
    held.remember(link, params)


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
    if not held.page or get_script_run_ctx().is_history_navigation:
        return True
    if page != held.page:
        return bool(link) and link != held.written  # a switch of pages leaves the link bare
    return not held.remembers(link)


def _from_link(link, kinds):
    chosen, notes, known = [], [], set()
    for kind in kinds:
        one, problems = kind.read(link)
        chosen.append(one)
        known |= set(kind.settings())
        notes += [f"{error} {_instead(error, one)}" for error in problems]
    unknown = [name for name in link if name not in known]
    if unknown:
        names = ", ".join(f"“{name[:30]}”" for name in unknown[:5])
        notes.append(f"The link names {names}, which is no setting here; known are {', '.join(sorted(known))}.")
    return chosen, notes


def _from_widgets(kinds, held: Visitor, seen: dict):
    """seen: the session's values; empty where the widgets are those of another page."""
    chosen, notes = [], []
    for kind in kinds:
        old, values = held.settled.get(kind) or kind(), {}
        for name in kind.settings():
            if name in held.put:
                values[name] = held.put[name]
            elif seen and held.moved(name, seen):
                values[name] = seen[held.moved(name, seen).key]
            elif old.follows(name):
                values[name] = None  # it goes on following
            else:
                values[name] = getattr(old, name)
        one, problems = kind.mended(values)
        chosen.append(one)
        notes += [f"{error} {_instead(error, one)}" for error in problems]
    return chosen, notes


def _instead(error: ConfigError, chosen) -> str:
    each = chosen.settings()[error.field]
    free_text = each.kind is str and each.menu is None
    return "" if free_text else f"Used instead: {each.write(getattr(chosen, error.field))}."


def choices(settings, name: str) -> list:
    """What the control of a setting offers now: the entries of its menu, or the ends of its slider."""
    known, value = settings.settings()[name], getattr(settings, name)
    if known.menu:
        return settings.choices(name)
    if known.among:
        return known.among(settings)
    if known.kind in (bool, str):
        return []
    top = known.top or (8 * settings.d_model if known.follows else known.high)
    # pushed to its end, a slider opens up to all that is allowed
    top = known.high if value >= top else min(top, known.high)
    low = min(value, known.step) if known.kind is int and known.step > 1 else known.low
    return [low, top]


def control(settings, name: str, **more):
    """The widget of one setting: a switch, a slider or a choice, as it says of itself. more: words for Streamlit's widget."""
    known, offered, now = settings.settings()[name], choices(settings, name), getattr(settings, name)
    words = {"help": known.help, **more}
    if known.kind is bool:
        st.toggle(known.label, **at(name, now), **words)
    elif known.menu:
        about = "\n".join(f"- **{known.menu.label(o)}**: {known.menu.help(o)}" for o in offered)
        words = {**words, "help": f"{known.help}\n\n{about}", "format_func": known.menu.label}
        st.selectbox(known.label, offered, **one_of(name, now, offered), **words)
    elif not known.among:
        st.slider(known.label, *offered, step=known.step, **at(name, now, tuple(offered)), **words)
    elif len(offered) > 1:
        st.select_slider(known.label, offered, **at(name, now, tuple(offered)), **words)


def buttons(label: str, menu, name: str, **more):
    """The setting `name` as a row of buttons, one for each entry of its menu. more: words for Streamlit's widget."""
    shown = shows(name, value(name))
    st.segmented_control(
        label, list(menu), default=shown.first, key=shown.key, format_func=menu.label, label_visibility="collapsed",
        required=True, **more
    )  # fmt: skip


def group(settings, name: str, without=()):
    """All controls of one group but those without, one below the other; choices from menus in pairs."""
    members = [(f, known) for f, known in settings.settings().items() if known.group == name and f not in without]
    menus = [field for field, known in members if known.menu]
    for field, _ in members:
        if field not in menus:
            control(settings, field)
    if menus:
        with st.grid(min(2, len(menus)), min_column_width=90, gap="small"):
            for field in menus:
                control(settings, field)


def put(**values):
    """Change settings from a button's callback, as if their widgets had been moved."""
    calm_visitor().put.update(values)


def amend(settings, **values):
    """Change settings while the page is drawn: they hold from its next run on, unless the visitor moves them."""
    visitor().settled[type(settings)] = dataclasses.replace(settings, **values)


def reset(*kinds):
    """Every setting back to its default (a callback)."""
    take({}, *kinds)


def take(params: dict[str, str], *kinds):
    """Every setting as a link with these parameters would have it (a callback)."""
    for kind in kinds:
        one, _ = kind.read(params)
        put(**{name: getattr(one, name) for name in one.settings()})
