"""The ticks of a new study: what its file says, where that can be ticked, and the file that they make."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from core.model.variants import decode, name_of
from core.study.file.ticks import AXES, CHANGES, MOST_SEEDS, PARTS, Ticks
from core.study.plan import SETTINGS
from core.tasks import task
from ui.kit.session.visitor import at, calm_visitor, choice, some_of


def draw(ticks: Ticks, write: Callable[[Callable[[Ticks], Ticks]], None]):
    """The boxes; write is called with what changes the ticks as they are by then (a callback)."""
    left, right = st.columns([2, 1], gap="medium")
    with left:
        named = at("tick_name", ticks.name)
        st.text_input("Name", **named, on_change=_typed, args=("name", "tick_name", named["key"], write))
    with right:
        many = at("tick_seeds", ticks.seeds)
        st.slider("Seeds", 1, MOST_SEEDS, **many, on_change=_typed, args=("seeds", "tick_seeds", many["key"], write))
    asked = at("tick_question", ticks.question)
    st.text_input(
        "Question", **asked, on_change=_typed, args=("question", "tick_question", asked["key"], write),
        placeholder="What do you want to know? It stands under the study's name.",
    )  # fmt: skip
    boxes = partial(_boxes, write=write)
    boxes("Tasks", "tick_tasks", ticks.tasks, list(task), task.label, _tasks)
    parts, others = _apart(ticks.changes)
    boxes("Parts to take out", "tick_parts", parts, PARTS, _named, _part)
    boxes("Other changes", "tick_others", others, _apart(CHANGES)[1], _named, _other)
    with st.expander("Axes: every combination of values", expanded=bool(ticks.axes)):
        for name, offered in AXES.items():
            label, chosen = SETTINGS[name].label, ticks.axes.get(name, ())
            boxes(label, f"tick_{name}", chosen, list(offered), _value(name), _axis(name))


def _boxes(label, name, chosen, offered, words, change: Callable, write):
    """Any of a list; of a long one those that are found by their names."""
    shown = some_of(name, list(chosen), offered)
    args = {"on_change": _chosen, "args": (name, shown["key"], change, write), "format_func": words, **shown}
    if len(offered) > 12:
        st.multiselect(label, offered, **args, placeholder="Find a change …")
    else:
        st.pills(label, offered, selection_mode="multi", **args)


def _chosen(name, key, change, write):
    new = changed(name, key)
    if new is not None:
        write(partial(change, tuple(new)))


def _typed(field, name, key, write):
    new = changed(name, key)
    if new is not None:
        write(partial(replace, **{field: new}))


def changed(name: str, key: str):
    """What a box has been changed to; None where it was not: as choice. And as it is from now on, whether or not the run that
    follows comes as far as to draw it: put back at once, it was changed once more."""
    new = choice(name, key)
    if new is not None:
        shown = next(each for each in calm_visitor().shown[name] if each.key == key)
        if isinstance(new, list):  # a browser can say anything, again and again: only what is offered is kept
            new = [each for each in dict.fromkeys(new) if each in shown.offers[0]]
        shown.value = new
    return new


def _apart(changes) -> tuple[list[str], list[str]]:
    """-> (the parts among them, the others)"""
    return [text for text in changes if text in PARTS], [text for text in changes if text not in PARTS]


def _tasks(new, old: Ticks) -> Ticks:
    return replace(old, tasks=new)


def _part(new, old: Ticks) -> Ticks:
    return replace(old, changes=(*new, *_apart(old.changes)[1]))


def _other(new, old: Ticks) -> Ticks:
    return replace(old, changes=(*_apart(old.changes)[0], *new))


def _axis(name: str) -> Callable:
    return lambda new, old: replace(old, axes={**old.axes, name: new})


def _named(text: str) -> str:
    return name_of(decode(text, "variants"))


def _value(name: str) -> Callable[[str], str]:
    menu = SETTINGS[name].menu
    return menu.label if menu else str
