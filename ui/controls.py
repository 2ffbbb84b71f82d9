"""Settings between link, session and widgets. The link is the truth when it is new; else the widgets are.

Every setting is a field with a Dial (core/dial.py): its name is the link's parameter and the widget's key. At the top
of a page, settings() reads them all, mends what does not fit together, and hands every widget its value; so the model
is known before a single control is drawn, and no control is forgotten by a page that does not show it.
"""

import dataclasses
import time

import streamlit as st

from core.dial import ConfigError, dials, read, settle, write

SETTLED, LINK, NOTES, BARE = "_settled", "_link", "_notes", "_bare"  # keys in the session
IN_FLIGHT = 1.0  # seconds for which a run may still carry a link from before the last write


@dataclasses.dataclass(frozen=True)
class Link:
    """What the page last did with the link: its own name, what it wrote, and what stood there lately: [(when, link)]."""

    page: str
    written: dict
    lately: tuple


def settings(page: str, *kinds):
    """One instance of each dataclass of dials, from the link or the widgets; writes the link back.

    -> (instances, sentences about what had to be changed)
    """
    link = st.query_params.to_dict()
    settled, last = st.session_state.get(SETTLED, {}), st.session_state.get(LINK)
    bare = st.session_state.setdefault(BARE, {})
    if _is_new(link, last, page):
        # The browser's Back may lead to the bare link of a page that was entered with settings from another one.
        made, notes = _from_link(link or bare.get(page, {}), kinds)
    else:
        # On another page a widget of the same name may have shown another kind's setting: what was settled counts.
        seen = st.session_state if last and last.page == page else {}
        made, notes = _from_widgets(kinds, settled, seen)
        if not notes and all(settled.get(type(each)) == each for each in made):
            notes = st.session_state.get(NOTES, [])
    arrived = last is None or last.page != page
    for each in made:
        _hand_out(each, settled.get(type(each)), arrived)
    params = {name: value for each in made for name, value in write(each).items()}
    if last and last.page != page and not link:
        bare[page] = params
    notes = list(dict.fromkeys(notes))  # two kinds may share a setting, and find the same fault with it
    if params != link:
        st.query_params.from_dict(params)
    st.session_state[SETTLED] = settled | {type(each): each for each in made}
    st.session_state[NOTES] = notes
    now = time.monotonic()
    lately = [entry for entry in (last.lately if last else ()) if now - entry[0] < IN_FLIGHT]
    st.session_state[LINK] = Link(page, params, (*lately, (now, link), (now, params)))
    return made, notes


def here() -> str:
    """The name of the page that is being drawn."""
    return st.session_state[LINK].page


def moved(made) -> bool:
    """Whether a widget of these settings has been moved since they were read: a fragment is drawn again without reading them."""
    return any(st.session_state.get(name, getattr(made, name)) != getattr(made, name) for name in dials(made))


def current(kind):
    """The settings of this run, for a part of the page that is not handed them."""
    return st.session_state[SETTLED][kind]


def _hand_out(made, before, arrived: bool):
    """Give the widgets their values, but only those that need it.

    A value set here goes to the browser, and would undo a move that the user made since. A widget needs one where it
    shows another value or none, where what it offers has changed, and where one has just arrived at the page: to
    Streamlit it is then a new widget, whatever the session holds under its key.
    """
    offers = before is not None and before != made
    for name in dials(made):
        value = getattr(made, name)
        if arrived or st.session_state.get(name) != value or (offers and choices(before, name) != choices(made, name)):
            st.session_state[name] = value


def _is_new(link: dict, last: Link | None, page: str) -> bool:
    """Whether the link came from outside, rather than from what the page itself wrote."""
    if last is None:
        return True
    if link == last.written:
        return False
    if not link and page != last.page:
        return False  # a switch of pages leaves the link bare
    # A quick hand moves a slider again before the browser has taken over the link that the last move led to.
    return all(link != seen for when, seen in last.lately if time.monotonic() - when < IN_FLIGHT)


def _from_link(link, kinds):
    made, notes, known = [], [], set()
    for kind in kinds:
        one, problems = read(kind, link)
        made.append(one)
        known |= set(dials(kind))
        notes += [f"{error} {_instead(error, one)}" for error in problems]
    unknown = [name for name in link if name not in known]
    if unknown:
        names = ", ".join(f"“{name[:30]}”" for name in unknown[:5])
        notes.append(f"The link names {names}, which is no setting here; known are {', '.join(sorted(known))}.")
    return made, notes


def _from_widgets(kinds, settled, shown):
    made, notes = [], []
    for kind in kinds:
        old = settled.get(kind) or kind()
        # A run that was cut short by the next one leaves the widgets it did not come to without a value.
        seen = {name: shown.get(name) for name in dials(kind)}
        values = {name: getattr(old, name) if value is None else value for name, value in seen.items()}
        for name, each in dials(kind).items():
            if each.follows and values[name] == getattr(old, name) == each.follows(old):
                values[name] = None  # untouched so far: it goes on following
        one, problems = settle(kind, values)
        made.append(one)
        notes += [f"{error} {_instead(error, one)}" for error in problems]
    return made, notes


def _instead(error: ConfigError, made) -> str:
    each = dials(made)[error.field]
    free_text = each.kind is str and each.menu is None
    return "" if free_text else f"Used instead: {each.write(getattr(made, error.field))}."


def choices(settings, name: str) -> list:
    """What the control of a setting offers now: the entries of its menu, or the ends of its slider."""
    made, value = dials(settings)[name], getattr(settings, name)
    if made.menu:
        return settings.choices(name) if hasattr(settings, "choices") else list(made.menu)
    if made.among:
        return made.among(settings)
    if made.kind in (bool, str):
        return []
    top = made.top or (8 * settings.d_model if made.follows else made.high)
    # pushed to its end, a slider opens up to all that is allowed
    top = made.high if value >= top else min(top, made.high)
    low = min(value, made.step) if made.kind is int and made.step > 1 else made.low
    return [low, top]


def control(settings, name: str, **more):
    """The widget of one setting: a switch, a slider or a choice, as its Dial says. more: words for Streamlit's widget."""
    made = dials(settings)[name]
    offered, words = choices(settings, name), {"key": name, "help": made.help, **more}
    if made.kind is bool:
        st.toggle(made.label, **words)
    elif made.menu:
        about = "\n".join(f"- **{made.menu.label(o)}**: {made.menu.help(o)}" for o in offered)
        st.selectbox(made.label, offered, format_func=made.menu.label, **(words | {"help": f"{made.help}\n\n{about}"}))
    elif made.among:
        if len(offered) > 1:
            st.select_slider(made.label, offered, **words)
    else:
        st.slider(made.label, *offered, step=made.step, **words)


def group(settings, name: str, without=()):
    """All controls of one group but those without, one below the other; choices from menus in pairs."""
    members = [(f, made) for f, made in dials(settings).items() if made.group == name and f not in without]
    menus = [field for field, made in members if made.menu]
    for field, _ in members:
        if field not in menus:
            control(settings, field)
    if menus:
        with st.grid(min(2, len(menus)), min_column_width=90, gap="small"):
            for field in menus:
                control(settings, field)


def put(**values):
    """Change settings from a button's callback, as if their widgets had been moved."""
    for name, value in values.items():
        st.session_state[name] = value


def reset(*kinds):
    """Every setting back to its default (a callback)."""
    take({}, *kinds)


def take(params: dict[str, str], *kinds):
    """Every setting as a link with these parameters would have it (a callback)."""
    for kind in kinds:
        one, _ = read(kind, params)
        put(**{name: getattr(one, name) for name in dials(one)})
