"""Views drawn twice on one scale, for the baseline and a variant.

Views do not know of it. While one is drawn, its pictures wait; when both are there, each pair is
drawn on the scale that holds both. What there must be once (rows of controls, fields to type in)
stands above, or with the baseline.
"""

import json
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
import torch

from core.figures.palette import BASELINE

SAME = "No difference in this view. Other views may show one."
_now: ContextVar["Side | None"] = ContextVar("side", default=None)
_rows: ContextVar[Any] = ContextVar(
    "rows", default=None
)  # where rows of controls go, if not where they are drawn


@dataclass
class Waiting:
    """Picture that waits for its twin: container, values for a common scale, draw function."""

    place: Any
    kind: str  # it has its scale in common with one of the same kind
    values: Any
    draw: Callable[[Any], None]


@dataclass
class Side:
    name: str
    second: bool
    difference: (
        bool  # whether the second side shows by how much it differs, where that can be drawn
    )
    counts: dict[str, int]  # of what can be picked, as many as either has
    bars: set[str]  # rows of controls that stand above both already
    colour: str = ""  # of the second side's pictures
    pictures: list[Waiting] = field(default_factory=list)


def picture(kind: str, values, draw: Callable[[Any], None]):
    """Draw a picture now, or with its twin's values once both are known."""
    side = _now.get()
    if side:
        side.pictures.append(Waiting(st.container(), kind, values, draw))
    else:
        draw(None)


def alone() -> bool:
    """Return whether the view has the full width."""
    return _now.get() is None


def second() -> bool:
    """Return whether this is the variant's side, where the baseline's is drawn already."""
    side = _now.get()
    return side is not None and side.second


def stands(bar: str) -> bool:
    """Return whether this row of controls already stands above both sides, and note it."""
    side = _now.get()
    if side is None:
        return False
    has_bar = bar in side.bars
    side.bars.add(bar)
    return has_bar


def count_of(name: str, count: int) -> int:
    """Return how many of something can be picked, of which this side has so many."""
    side = _now.get()
    return side.counts.get(name, count) if side else count


def above():
    """Return where a row of controls goes, which both sides have in common."""
    return _rows.get() or nullcontext()


@contextmanager
def rows_in(place):
    """Return the container for a view's shared controls, above one or two sides."""
    token = _rows.set(place)
    try:
        yield
    finally:
        _rows.reset(token)


def difference() -> bool:
    """Return whether to draw by how much this side differs from its twin."""
    side = _now.get()
    return side is not None and side.second and side.difference


def coloured(spec: dict) -> dict:
    """The specification of a chart of this side: the variant's is in its colour."""
    if not second():
        return spec
    return json.loads(json.dumps(spec).replace(BASELINE, _now.get().colour))


def no_difference():
    """Say that what stands here is no difference, where one was asked for."""
    if difference():
        st.caption("The difference is not available for this view: it shows the variant.")


def named(text: str) -> str:
    """A name for a table or a picture of this side."""
    return f"{_now.get().name}: {text}" if second() else text


def keyed(key: str) -> str:
    """The key of a component of this side."""
    return f"{key}_beside" if second() else key


def columns(widths, **words) -> list:
    """Return columns, stacked where only half the width is available."""
    if _now.get() is None:
        return st.columns(widths, **words)
    return [st.container() for _ in range(widths if isinstance(widths, int) else len(widths))]


def beside(
    sides: list[tuple[str, Callable[[], None]]],
    heading: Callable[[str], None],
    difference: bool,
    counts: dict[str, int],
    colour: str,
    in_rows: bool = False,
):
    """Draw two sides, within rows_in().

    Args:
        sides: Name of each side, and what draws it.
        heading: Draws a name.
        difference: Whether the second side shows by how much it differs from the first.
        counts: Of "layer" and "head", as many as either side has.
        colour: Of the second side.
        in_rows: Whether the second side stands below the first, and not to its right.
    """
    drawn = []
    bars = set()
    places = [st.container(), st.container()] if in_rows else st.columns(2, gap="medium")
    for index, (place, (name, draw)) in enumerate(zip(places, sides)):
        side = Side(name, index > 0, difference, counts, bars, colour)
        with place, _on(side):
            heading(name)
            draw()
        drawn.append(side)
    first, other = (side.pictures for side in drawn)
    # Unlike where one of them shows something else, as that a sub-layer is off.
    alike = [picture.kind for picture in first] == [picture.kind for picture in other]
    if first and alike and all(_same(a.values, b.values) for a, b in zip(first, other)):
        with above():
            st.caption(f":material/equal: {SAME}")
    for side, pictures, twins in zip(drawn, (first, other), (other, first)):
        for index, figure in enumerate(pictures):
            with figure.place, _on(side):
                figure.draw(twins[index].values if alike else None)


def _same(a, other) -> bool:
    """Return whether two pictures show the same values: tables, arrays, or several of either."""
    if isinstance(a, pd.DataFrame):
        return isinstance(other, pd.DataFrame) and a.equals(other)
    if isinstance(a, torch.Tensor | np.ndarray):
        return a.shape == other.shape and np.array_equal(
            np.asarray(a), np.asarray(other), equal_nan=True
        )
    if isinstance(a, tuple | list):
        return len(a) == len(other) and all(map(_same, a, other))
    return bool(a == other)


@contextmanager
def _on(side: Side):
    token = _now.set(side)
    try:
        yield
    finally:
        _now.reset(token)
