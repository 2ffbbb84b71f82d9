"""A view drawn twice, for the baseline and for a variant of it: beside each other, and on one scale.

Views do not know of it. While one is drawn, its pictures wait; when both are there, each pair is drawn on the scale that holds
both. What there must be once (rows of controls, fields to type in) stands above, or with the baseline.
"""

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

_now: ContextVar["Side | None"] = ContextVar("side", default=None)


@dataclass
class Waiting:
    """A picture: where it goes, what a common scale is found from, and what draws it, given what its twin has."""

    place: Any
    kind: str  # it has its scale in common with one of the same kind
    values: Any
    draw: Callable[[Any], None]


@dataclass
class Side:
    name: str
    second: bool
    above: Any  # a place for what both have in common
    difference: bool  # whether the second side shows by how much it differs, where that can be drawn
    counts: dict[str, int]  # of what can be picked, as many as either has
    bars: set[str]  # rows of controls that stand above both already
    pictures: list[Waiting] = field(default_factory=list)


def picture(kind: str, values, draw: Callable[[Any], None]):
    """Draw a picture: now, or when its twin is there, too. draw is called with the values of the twin, or None."""
    side = _now.get()
    if side:
        side.pictures.append(Waiting(st.container(), kind, values, draw))
    else:
        draw(None)


def second() -> bool:
    """Whether this is the variant's side, where the baseline's is drawn already."""
    side = _now.get()
    return side is not None and side.second


def stands(bar: str) -> bool:
    """Whether this row of controls stands above both sides already; else it does from now on."""
    side = _now.get()
    if side is None:
        return False
    there = bar in side.bars
    side.bars.add(bar)
    return there


def count_of(name: str, count: int) -> int:
    """How many of something can be picked, of which this side has so many."""
    side = _now.get()
    return side.counts.get(name, count) if side else count


def above():
    """Where a row of controls goes, which both sides have in common."""
    side = _now.get()
    return side.above if side else nullcontext()


def difference() -> bool:
    """Whether to draw by how much this side differs from its twin."""
    side = _now.get()
    return side is not None and side.second and side.difference


def named(text: str) -> str:
    """A name for a table or a picture of this side."""
    return f"{_now.get().name}: {text}" if second() else text


def keyed(key: str) -> str:
    """The key of a component of this side."""
    return f"{key}_beside" if second() else key


def columns(widths, **words) -> list:
    """As st.columns has it; one below the other where there is half the room."""
    if _now.get() is None:
        return st.columns(widths, **words)
    return [st.container() for _ in range(widths if isinstance(widths, int) else len(widths))]


def beside(
    sides: list[tuple[str, Callable[[], None]]],
    heading: Callable[[str], None],
    difference: bool,
    counts: dict[str, int],
):
    """Draw each of two sides: its name, which heading draws, and what draws it. difference: whether the second one shows by how
    much it differs from the first; counts: of "layer" and "head", as many as either side has."""
    common, bars = st.container(), set()
    drawn = []
    for at, (place, (name, draw)) in enumerate(zip(st.columns(2, gap="medium"), sides)):
        side = Side(name, at > 0, common, difference, counts, bars)
        with place, _on(side):
            heading(name)
            draw()
        drawn.append(side)
    first, other = (side.pictures for side in drawn)
    # Unlike where one of them shows something else, as that a sub-layer is off.
    alike = [each.kind for each in first] == [each.kind for each in other]
    for side, pictures, twins in zip(drawn, (first, other), (other, first)):
        for at, each in enumerate(pictures):
            with each.place, _on(side):
                each.draw(twins[at].values if alike else None)


@contextmanager
def _on(side: Side):
    token = _now.set(side)
    try:
        yield
    finally:
        _now.reset(token)
