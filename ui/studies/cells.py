"""The choice of tasks and variants above a table, and any other choice of several names: the link holds it."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from ui.kit.store import bind, change


def cells(table: pd.DataFrame, look) -> pd.DataFrame:
    """The lines of a table whose task and variant are chosen; nothing chosen is everything."""
    left, right = st.columns(2)
    with left:
        tasks = several(look, "only_tasks", list(dict.fromkeys(table.task)), placeholder="all tasks")
    with right:
        variants = several(look, "only_variants", list(dict.fromkeys(table.variant)), placeholder="all variants")
    kept = table.task.isin(tasks) | (not tasks)
    return table[kept & (table.variant.isin(variants) | (not variants))]


def several(
    look, name: str, offered: list[str], usual=(), none: str = "", draw: Callable = st.multiselect, **words
) -> list[str]:
    """A choice of several -> what is chosen. name: of the setting that holds it; usual: what is chosen where it names nothing that
    is offered; none: what it holds where nothing is to be chosen; words: what draw takes."""
    held = getattr(look, name)
    chosen = [] if none and held == none else _named(held, offered) or list(usual)
    chosen = chosen[: words.get("max_selections")]  # a link may name more
    draw(
        look.settings()[name].label, offered, **bind(f"{name}_list", chosen, partial(_choose, name, none)),
        label_visibility="collapsed", **words,
    )  # fmt: skip
    return chosen


def _choose(name: str, none: str, names: list[str]):
    change(**{name: "~".join(map(_written, names)) or none})


def _named(text: str, offered: list[str]) -> list[str]:
    """Those of the names offered that a setting's text names."""
    there = text.split("~") if text else []
    return [each for each in offered if _written(each) in there]


def _written(name: str) -> str:
    """A study gives its tasks and variants any names."""
    return name.replace("%", "%25").replace("~", "%7E")
