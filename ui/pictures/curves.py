"""Lines over passes as small multiples (curves.js): all panels of a page in one component.

Seven Altair charts took twice as long from slider to picture (docs/log.md), and each knew nothing
of the others.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from core.figures.palette import DASHES
from ui.kit.pins import COLOURS
from ui.kit.server.scripts import store_script
from ui.kit.takeaway import offer_table

CSS = """
.root { font-family: var(--st-font); color: var(--st-text-color); font-size: 14px; }
.panels { display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, max(225px, var(--least))), 1fr));
  gap: 0 22px; }
/* Titles, plots and sentences of neighbours start at the same height. */
.panel { display: grid; grid-template-rows: subgrid; grid-row: span 4; align-items: start; }
/* Presentation mode shows many plots at once: the numbers at the ends of lines say the most. */
.small { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 0 10px; }
.small .sentence { display: none; } .small .panel { grid-row: span 3; padding-bottom: 4px; }
.single { grid-template-columns: minmax(0, 1fr); } .panel { min-width: 0; }
.title { font-weight: 600; line-height: 20px; }
.label { font-size: 12px; line-height: 16px; min-height: 16px; opacity: 0.75; cursor: help;
  width: fit-content; }
.sentence { font-size: 12px; line-height: 16px; min-height: 48px; margin-bottom: 14px; }
.plot { position: relative; margin-top: 2px; }
svg { display: block; width: 100%; overflow: visible; outline-offset: 2px; }
svg:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
.rule { stroke: var(--st-text-color); stroke-opacity: 0.14; }
.tick { fill: var(--st-text-color); font-size: 12px; opacity: 0.75; }
.value { fill: var(--st-text-color); font-size: 12px; font-weight: 600; }
.mark { stroke: var(--st-text-color); stroke-opacity: 0.45; stroke-dasharray: 2 4; }
.band { fill-opacity: 0.16; }
.seed { fill: none; stroke-width: 1; stroke-opacity: 0.45; }
.here { stroke: var(--st-text-color); stroke-opacity: 0.5; display: none; }
.tip { position: absolute; top: 4px; display: none; pointer-events: none; white-space: nowrap;
  z-index: 5; padding: 4px 8px; font-size: 12px; border-radius: 4px;
  background: var(--st-background-color); border: 1px solid var(--st-border-color); }
"""
_curves = st.components.v2.component(
    "ablation_curves",
    html='<div class="root"></div>',
    css=CSS,
    js=store_script((Path(__file__).parent / "curves.js").read_text()),
)


@dataclass(frozen=True)
class Line:
    """Values of a variant from the first shown pass; gaps for NaN; `ended` says why it stops."""

    colour: int
    values: list[float]
    ended: str | None = None
    low: list[float] | None = None  # a band around the values
    high: list[float] | None = None
    seeds: list[list[float]] | None = None  # thin lines, where the values are their mean


@dataclass(frozen=True)
class Panel:
    """Plot of a quantity: its question or definition, its finding and its lines."""

    title: str
    label: str
    sentence: str
    lines: list[Line]
    log: bool = False
    help: str = ""
    bounds: tuple[float, float] | None = None  # of the axis; as the values need it if None
    marks: tuple[tuple[float, str], ...] = ()  # values to be marked, and their names


def draw_curves(
    key: str,
    panels: list[Panel],
    names_by_colour: dict[int, str],
    *,
    x: str = "pass",
    positions: Sequence[float] | None = None,
    ends: tuple[float, float] | None = None,
    height: int = 190,
    across: int = 4,
):
    """Draw panels of lines side by side (`across` per row); their values go to the export.

    Args:
        key: Key of the component.
        panels: Panels in order.
        names_by_colour: Variant's name by colour.
        x: Label of the x axis.
        positions: x of the values; 0, 1, 2, … if None.
        ends: Ends of the x axis; the first and last position if None.
        height: Height of a plot in pixels.
        across: Panels per row where there is room.
    """
    if positions is None:
        longest = max((len(line.values) for panel in panels for line in panel.lines), default=1)
        positions = range(longest)
    positions = list(positions)
    first, *_, last = ends or (positions[0], positions[-1])
    offer_table(key.replace("_", " "), lambda: tidy_table(panels, names_by_colour, x, positions))
    axis = {"x": x, "at": positions, "from": first, "to": last}
    look = {
        "names": names_by_colour,
        "colours": COLOURS,
        "dashes": DASHES,
        "height": height,
        "across": across,
    }
    _curves(
        key=key,
        data=json.dumps({"panels": [_panel_data(panel) for panel in panels], **axis, **look}),
    )


def tidy_table(
    panels: list[Panel], names_by_colour: dict[int, str], x_label: str, positions: Sequence[float]
) -> pd.DataFrame:
    """Return drawn values: meter (panel), variant, column x_label, value; low, high if any band."""
    bands = any(line.low for panel in panels for line in panel.lines)
    rows = [
        (
            panel.label,
            names_by_colour[line.colour],
            positions[n],
            value,
            *([line.low[n], line.high[n]] if line.low else [math.nan] * 2),
        )
        for panel in panels
        for line in panel.lines
        for n, value in enumerate(line.values)
    ]
    frame = pd.DataFrame(rows, columns=["meter", "variant", x_label, "value", "low", "high"])
    return frame if bands else frame.drop(columns=["low", "high"])


def _panel_data(panel: Panel) -> dict:
    """Return the data of one panel for curves.js."""
    lines = []
    for line in panel.lines:
        drawn = line.__dict__ | {"seeds": [_finite_or_none(seed) for seed in line.seeds or ()]}
        for name in ("values", "low", "high"):
            if drawn[name] is not None:
                drawn[name] = _finite_or_none(drawn[name])
        lines.append(drawn)
    marks = [{"at": x_mark, "name": name} for x_mark, name in panel.marks]
    return {**panel.__dict__, "lines": lines, "marks": marks}


def _finite_or_none(values: Sequence[float]) -> list:
    """Return values with None for those that are not finite."""
    return [value if math.isfinite(value) else None for value in values]
