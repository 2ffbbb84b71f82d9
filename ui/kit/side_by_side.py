"""Side-by-side drawing of a view, for the baseline and a variant, on a common scale.

Views do not know of it. While one is drawn, its pictures wait; when both sides are there, each
pair is drawn on the scale that holds both. Rows of controls and text fields, which must exist
once, stand above both sides or with the baseline.
"""

import json
from collections.abc import Callable, Sequence
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
    """Side of a comparison, drawn next to the other one, with its waiting pictures."""

    name: str
    second: bool
    difference: (
        bool  # whether the second side shows by how much it differs, where that can be drawn
    )
    counts: dict[str, int]  # of what can be picked, as many as either has
    bars: set[str]  # rows of controls that stand above both already
    colour: str = ""  # of the second side's pictures
    pictures: list[Waiting] = field(default_factory=list)


def draw_picture(kind: str, values, draw: Callable[[Any], Any]):
    """Draw a picture now, draw(None); of two sides later, draw(values of its twin).

    Twins have the same `kind`.

    Args:
        kind: Kind of picture; only twins of the same kind share a scale.
        values: Values that determine the scale.
        draw: Called with the twin's values, or with None if there is no twin.
    """
    side = _now.get()
    if side:
        side.pictures.append(Waiting(st.container(), kind, values, draw))
    else:
        draw(None)


def has_full_width() -> bool:
    """Return whether the view has the full width, with no second side next to it."""
    return _now.get() is None


def is_second_side() -> bool:
    """Return whether the variant's side is drawn now, the right or lower of two."""
    side = _now.get()
    return side is not None and side.second


def mark_drawn_above(bar: str) -> bool:
    """Mark a row of controls as drawn; return whether the first of two sides drew it before.

    False with one side.
    """
    side = _now.get()
    if side is None:
        return False
    has_bar = bar in side.bars
    side.bars.add(bar)
    return has_bar


def count_of(name: str, count: int) -> int:
    """Return the larger side's count of "layer", "head" or "token"; `count` for one side.

    Args:
        name: "layer", "head" or "token".
        count: Number on this side.
    """
    side = _now.get()
    return side.counts.get(name, count) if side else count


def shared_rows():
    """Return a context manager: with two sides, the rows above both; else it does nothing."""
    return _rows.get() or nullcontext()


@contextmanager
def rows_in(container):
    """Draw rows of controls in this container while the context is open."""
    token = _rows.set(container)
    try:
        yield
    finally:
        _rows.reset(token)


def shows_difference() -> bool:
    """Return whether the side being drawn should show variant − baseline."""
    side = _now.get()
    return side is not None and side.second and side.difference


def in_side_colour(spec: dict) -> dict:
    """Return a chart specification; on the variant's side a copy with its colour for BASELINE."""
    if not is_second_side():
        return spec
    return json.loads(json.dumps(spec).replace(BASELINE, _now.get().colour))


def caption_no_difference():
    """If this side should show a difference, draw a caption that this view has none."""
    if shows_difference():
        st.caption("The difference is not available for this view: it shows the variant.")


def with_side_name(text: str) -> str:
    """Return "variant's name: text" while the variant's side is drawn, else the text."""
    return f"{_now.get().name}: {text}" if is_second_side() else text


def key_of_side(key: str) -> str:
    """Return a component key, with a suffix while the variant's side is drawn."""
    return f"{key}_beside" if is_second_side() else key


def columns(widths, **options) -> list:
    """Return st.columns, or as many containers below each other while two sides are drawn."""
    if _now.get() is None:
        return st.columns(widths, **options)
    return [st.container() for _ in range(widths if isinstance(widths, int) else len(widths))]


def draw_side_by_side(
    sides: Sequence[tuple[str, Callable[[], None]]],
    heading: Callable[[str], None],
    difference: bool,
    counts: dict[str, int],
    colour: str,
    in_rows: bool = False,
):
    """Draw two sides, baseline first, then waiting pictures in pairs on one scale.

    Call it within rows_in().

    Args:
        sides: Name of each side, and the function that draws it.
        heading: Draws a name.
        difference: Whether the second side shows by how much it differs from the first.
        counts: Larger count of both sides, of "layer" and "head".
        colour: Colour of the second side.
        in_rows: Whether the second side stands below the first, and not to its right.
    """
    drawn = []
    bars: set[str] = set()
    places = [st.container(), st.container()] if in_rows else st.columns(2, gap="medium")
    for index, (place, (name, draw)) in enumerate(zip(places, sides)):
        side = Side(name, index > 0, difference, counts, bars, colour)
        with place, _use_side(side):
            heading(name)
            draw()
        drawn.append(side)
    first, other = (side.pictures for side in drawn)
    # Unlike where one of them shows something else, as that a sub-layer is off.
    alike = [picture.kind for picture in first] == [picture.kind for picture in other]
    if first and alike and all(_shows_same(a.values, b.values) for a, b in zip(first, other)):
        with shared_rows():
            st.caption(f":material/equal: {SAME}")
    for side, pictures, twins in zip(drawn, (first, other), (other, first)):
        for index, figure in enumerate(pictures):
            with figure.place, _use_side(side):
                figure.draw(twins[index].values if alike else None)


def _shows_same(a, other) -> bool:
    """Return whether two pictures show equal values (NaN = NaN): tables, arrays, or sequences."""
    if isinstance(a, pd.DataFrame):
        return isinstance(other, pd.DataFrame) and a.equals(other)
    if isinstance(a, torch.Tensor | np.ndarray):
        return a.shape == other.shape and np.array_equal(
            np.asarray(a), np.asarray(other), equal_nan=True
        )
    if isinstance(a, tuple | list):
        return len(a) == len(other) and all(map(_shows_same, a, other))
    return bool(a == other)


@contextmanager
def _use_side(side: Side):
    """Make this the side that is drawn while the context is open."""
    token = _now.set(side)
    try:
        yield
    finally:
        _now.reset(token)
