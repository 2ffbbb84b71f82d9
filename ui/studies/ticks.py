"""The ticks of a new study: what its file says, where that can be ticked, and the file that they make."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from core.model.variants import decode, name_of
from core.study.file import AXES, CHANGES, MOST_SEEDS, PARTS, Ticks
from core.study.plan import SETTINGS
from core.tasks import task
from ui.kit.store import bind


def draw(ticks: Ticks, write: Callable[[Callable[[Ticks], Ticks]], None]):
    """Draw the boxes. write: called with what changes the ticks as they are by then (a callback)."""
    left, right = st.columns([2, 1], gap="medium")
    with left:
        st.text_input("Name", **bind("tick_name", ticks.name, lambda name: write(partial(replace, name=name))))
    with right:
        seeds = bind("tick_seeds", ticks.seeds, lambda seeds: write(partial(replace, seeds=seeds)))
        st.slider("Seeds", 1, MOST_SEEDS, **seeds)
    st.text_input(
        "Question",
        **bind("tick_question", ticks.question, lambda question: write(partial(replace, question=question))),
        placeholder="What do you want to know? It stands under the study's name.",
    )
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
    """Draw any of a list; of a long one those that are found by their names."""
    bound = bind(name, list(chosen), lambda new: write(partial(change, tuple(new))))
    if len(offered) > 12:
        st.multiselect(label, offered, format_func=words, **bound, placeholder="Find a change …")
    else:
        st.pills(label, offered, selection_mode="multi", format_func=words, **bound)


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
