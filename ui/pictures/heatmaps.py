"""Matrices on a canvas: heat maps (grid.js) and attention as lines (lines.js). Forty times faster than rectangles in
Vega at 12 heads × 128 tokens; hover and arrow keys work in the browser, a click comes back as (panel, row, column)."""

import json
from pathlib import Path

import numpy as np
import streamlit as st
import torch

from core.figures.palette import DIVERGING, SEQUENTIAL
from ui.kit.session.visitor import picked_in
from ui.kit.takeaway import matrix_table, note

HERE = Path(__file__).parent
CSS = """
.root { position: relative; font-family: var(--st-font); color: var(--st-text-color); }
canvas { width: 100%; display: block; outline-offset: 2px; }
canvas:focus-visible { outline: 2px solid var(--st-primary-color); }
.tip { position: absolute; display: none; pointer-events: none; white-space: pre; z-index: 5; padding: 3px 8px;
  font-size: 13px; border-radius: 4px; background: var(--st-text-color); color: var(--st-background-color); }
.scale { display: flex; gap: 8px; align-items: center; font-size: 12px; margin: 0 0 6px; }
.bar { width: 110px; height: 10px; border-radius: 2px; }
"""
HTML = """<div class="root">
<div class="scale"><span class="what"></span><span class="low"></span><span class="bar"></span><span class="high"></span>
<span class="blank"></span></div>
<canvas tabindex="0" role="img"></canvas><div class="tip" role="status" aria-live="polite"></div></div>
"""
_grid_js = (HERE / "ink.js").read_text() + (HERE / "grid.js").read_text()
_lines_js = (
    _grid_js[: _grid_js.index("// How many panels")] + "const shown = new WeakMap()\n" + (HERE / "lines.js").read_text()
)
_grid = st.components.v2.component("ablation_grid", html=HTML, css=CSS, js=_grid_js)
_lines = st.components.v2.component(
    "ablation_lines", html=HTML, css=CSS + ".scale { display: none; } .tip { display: none !important; }", js=_lines_js
)

DECADES = 4
EXACT_UP_TO = 20_000  # cells that travel as float32; more travel as uint16, in steps of a 65,534th of the range


def pack(
    matrices, rows, columns=None, *, titles=None, what="", alt="", diverging=False, log=False, height=430, **more
) -> bytes:
    """The bytes that grid.js and lines.js read.

    matrices: (panels, rows, columns), NaN where there is nothing to show (a mask forbids looking). The scale runs from
    0 (or the lowest value) to the highest; diverging: the same to both sides of zero; log: by powers of ten, four to
    each side of the median at most: one value that explodes, or one that is rounding, must not turn all others into one.
    """
    if isinstance(matrices, np.ndarray):
        matrices = np.array(matrices)  # a copy: what is kept for others may not be written to
    cells = torch.as_tensor(matrices).double()
    blank = cells.isnan()
    cells = (cells.log10() if log else cells).float()  # −∞ stands for 0
    low, high, clipped = _scale(cells, diverging, log)
    steps = not log and cells.numel() > EXACT_UP_TO and not bool(cells.isinf().any())
    head = {
        "panels": cells.shape[0],
        "rows": cells.shape[1],
        "cols": cells.shape[2],
        "rowWords": list(rows),
        "colWords": None if columns is None else list(columns),
        "titles": titles,
        "what": f"{what}, log scale" if log else what,
        "alt": alt,
        "stops": DIVERGING if diverging else SEQUENTIAL,
        "low": low,
        "high": high,
        "clipped": clipped,
        "steps": steps,
        "log": log,
        "blank": "not a number",
        "blanks": bool(blank.any()),
        "height": height,
        "square": True,
        "arrow": "→",
        **more,
    }
    text = json.dumps(head, ensure_ascii=False).encode("utf-8", "replace")
    return len(text).to_bytes(4, "little") + text + bytes(-len(text) % 4) + _body(cells, blank, low, high, steps)


def _scale(cells, diverging: bool, log: bool) -> tuple[float, float, list[bool]]:
    """-> (lowest and highest value of the scale, whether cells lie below and above it). log: cells are logarithms."""
    known = cells[cells.isfinite()]
    least, most = (known.min().item(), known.max().item()) if len(known) else (0.0, 0.0)
    if log:
        middle = known.median().item() if len(known) else 0.0
        low, high = max(least, middle - DECADES), min(most, middle + DECADES)
    else:
        low, high = min(least, 0.0), max(most, 0.0)
    if diverging:
        high = max(high, -low) or 1.0
        low = -high
    return low, high, [least < low or bool((cells == -torch.inf).any()), most > high] if log else [False, False]


def _body(cells, blank, low: float, high: float, steps: bool) -> bytes:
    """The cells as bytes: float32, or 65,535 steps of the scale and one for those that are blank."""
    if not steps:
        return cells.numpy().astype("<f4").tobytes()
    share = (cells.clamp(low, high) - low).mul_(65534 / ((high - low) or 1.0)).round_()
    return share.masked_fill_(blank, 65535).int().numpy().astype("<u2").tobytes()


def in_one_frame(matrices, size: int) -> torch.Tensor:
    """Square matrices of unequal size, or None for one that is not there: (panels, size, size), the rest NaN."""
    cells = torch.full((len(matrices), size, size), torch.nan)
    for at, matrix in enumerate(matrices):
        if matrix is not None:
            cells[at, : len(matrix), : len(matrix)] = matrix
    return cells


def as_lists(matrices) -> list:
    return torch.as_tensor(matrices).tolist()


def heatmaps(key: str, matrices, rows, columns=None, *, on_pick=None, **words):
    """Draw matrices of one shape side by side; see pack(). on_pick(panel, row, column) is called on a click."""

    note(
        words.get("alt", key).rstrip("."), lambda: matrix_table(as_lists(matrices), rows, columns, words.get("titles"))
    )

    def picked():
        at = picked_in(key)
        if at and on_pick:
            on_pick(int(at["panel"]), int(at["row"]), int(at["col"]))

    _grid(key=key, data=pack(matrices, rows, columns, clickable=on_pick is not None, **words), on_picked_change=picked)


def lines(key: str, weights, tokens, **words):
    """Draw one attention map (T, T) as lines from reader to read."""
    note(words["alt"].rstrip("."), lambda: matrix_table(as_lists(torch.as_tensor(weights)[None]), tokens, tokens, None))
    _lines(key=key, data=pack(torch.as_tensor(weights)[None], tokens, tokens, **words))
