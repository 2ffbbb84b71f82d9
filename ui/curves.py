"""Lines over passes as small multiples (curves.js): all panels of a page in one component.

Seven Altair charts took twice as long from slider to picture (docs/log.md), and each knew nothing of the others.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from ui.pins import COLOURS
from ui.takeaway import note

CSS = """
.root { font-family: var(--st-font); color: var(--st-text-color); font-size: 14px; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, max(225px, 22%)), 1fr)); gap: 14px 22px; }
.single { grid-template-columns: minmax(0, 1fr); } .panel { min-width: 0; }
.title { font-weight: 600; line-height: 1.25; } .label { font-size: 12px; opacity: 0.7; cursor: help; width: fit-content; }
.sentence { font-size: 13px; line-height: 1.3; opacity: 0.85; min-height: 3.9em; }
.plot { position: relative; margin-top: 2px; } svg { display: block; width: 100%; overflow: visible; outline-offset: 2px; }
svg:focus-visible { outline: 2px solid var(--st-primary-color); }
.rule { stroke: var(--st-text-color); stroke-opacity: 0.14; } .tick { fill: var(--st-text-color); font-size: 11px; opacity: 0.8; }
.here { stroke: var(--st-text-color); stroke-opacity: 0.5; display: none; }
.tip { position: absolute; top: 4px; display: none; pointer-events: none; white-space: nowrap; z-index: 5; padding: 4px 8px;
  font-size: 12px; border-radius: 4px; background: var(--st-background-color); border: 1px solid var(--st-border-color); }
"""
_curves = st.components.v2.component(
    "ablation_curves",
    html='<div class="root"></div>',
    css=CSS,
    js=(Path(__file__).parent / "curves.js").read_text(),
)


@dataclass(frozen=True)
class Line:
    """One variant's values, from the first pass shown on; what is no number leaves a gap. ended: why it stops, or None."""

    place: int
    values: list[float]
    ended: str | None = None


@dataclass(frozen=True)
class Panel:
    title: str
    label: str
    sentence: str
    lines: list[Line]
    log: bool = False
    help: str = ""


def curves(key: str, panels: list[Panel], names: dict[int, str], *, x: str = "pass", start: int = 0, height=190):
    """Draw panels side by side, as many to a row as fit. names: place -> name; start: the number of the first value.

    height: of a plot, in pixels.
    """
    note(key.replace("_", " "), lambda: table(panels, names, x, start))
    longest = max((len(line.values) for panel in panels for line in panel.lines), default=1)
    made = {
        "panels": [_panel(panel) for panel in panels],
        "names": names,
        "colours": COLOURS,
        "x": x,
        "from": start,
        "to": start + longest - 1,
        "height": height,
    }
    _curves(key=key, data=json.dumps(made))


def table(panels, names, x, start) -> pd.DataFrame:
    """What is drawn, tidy: meter, variant, pass (or whatever x is), value."""
    rows = [
        (panel.label, names[line.place], start + at, value)
        for panel in panels
        for line in panel.lines
        for at, value in enumerate(line.values)
    ]
    return pd.DataFrame(rows, columns=["meter", "variant", x, "value"])


def _panel(panel: Panel) -> dict:
    lines = [{"place": e.place, "values": _values(e.values), "ended": e.ended} for e in panel.lines]
    return {**panel.__dict__, "lines": lines}


def _values(values) -> list:
    return [value if math.isfinite(value) else None for value in values]
