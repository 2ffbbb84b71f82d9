"""Matrices on a canvas: heat maps (grid.js), lines (lines.js), animations (play.js).

Forty times faster than rectangles in Vega at 12 heads × 128 tokens. A click comes back as (panel,
row, column).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import streamlit as st
import torch

from core.figures.palette import DIVERGING, SEQUENTIAL
from ui.kit import side_by_side
from ui.kit.panel.control import register_handler
from ui.kit.server.scripts import FOCUS, with_store
from ui.kit.takeaway import MatrixTable, offer_table, take_announcement

HERE = Path(__file__).parent / "canvas"
CSS = """
.root { position: relative; font-family: var(--st-font); color: var(--st-text-color); }
canvas { width: 100%; display: block; outline-offset: 2px; }
.tip { position: absolute; display: none; pointer-events: none; white-space: pre; z-index: 5;
  padding: 3px 8px; font-size: 12px; border-radius: 4px; background: var(--st-text-color);
  color: var(--st-background-color); }
.stage { position: relative; flex: 1 1 0; min-width: 0; }
.scale { display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: center; font-size: 12px;
  margin: 0 0 6px; }
.ends { display: flex; gap: 8px; align-items: center; }
.bar { width: 110px; height: 10px; border-radius: 2px;
  background: linear-gradient(90deg, var(--stops)); }
/* Where there is room the scale stands beside the picture. */
.layout.beside {
  & { display: flex; gap: 16px; }
  .stage { flex: 0 1 auto; max-width: calc(100% - 112px); }
  .scale { flex: none; order: 2; width: 96px; margin: 56px 0 0; display: grid;
    grid-template: "what what" auto "bar high" 20px "bar ." 80px "bar low" 20px "blank blank" auto
      / 14px 1fr;
    line-height: 16px; align-items: start; align-content: start; }
  .ends { display: contents; }
  .what { grid-area: what; margin-bottom: 8px; white-space: normal; }
  .low { grid-area: low; align-self: end; }
  .high { grid-area: high; }
  .bar { grid-area: bar; width: 14px; height: 120px;
    background: linear-gradient(0deg, var(--stops)); }
  .blank { grid-area: blank; margin-top: 8px; white-space: normal; }
}
.thumbnails { display: flex; flex-wrap: wrap; gap: 8px; }
.thumbnails button { font: inherit; font-size: 12px; color: inherit; padding: 4px;
  border: 2px solid transparent; border-radius: var(--st-base-radius); background: none; }
.thumbnails button[aria-pressed=true] { border-color: var(--st-primary-color); font-weight: 600; }
.thumbnails canvas { display: block; width: 66px; height: 66px; image-rendering: pixelated; }
.player { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; margin: 4px 0 10px;
  font-size: 14px; }
.player:empty, .shares .scale { display: none; }
.player :is(button, select) { font: inherit; cursor: pointer; padding: 4px 12px;
  border-radius: var(--st-base-radius);
  border: 1px solid color-mix(in srgb, var(--st-text-color) 50%, transparent); background: none;
  color: var(--st-text-color); }
.player option { background: var(--st-background-color); }
.player button:first-child { min-width: 6.2em; }
.player input { flex: 1 1 160px; accent-color: var(--st-primary-color); }
.player output { min-width: 7em; font-weight: 600; font-variant-numeric: tabular-nums; }
.player p { flex: 1 0 100%; margin: 0; }
"""
HTML = """<div class="root"><div class="layout"><div class="scale"><span class="what"></span>\
<span class="ends"><span class="low"></span><span class="bar"></span>\
<span class="high"></span></span>
<span class="blank"></span></div>
<div class="stage"><div class="player"></div><canvas tabindex="0" role="img"></canvas>
<div class="tip" role="status" aria-live="polite"></div>\
<div class="thumbnails"></div></div></div></div>
"""
_grid_js, _lines_js = (
    "".join((HERE / file).read_text() for file in ("ink.js", "play.js", "values.js", name))
    for name in ("grid.js", "lines.js")
)
_grid = st.components.v2.component(
    "ablation_grid", html=HTML, css=FOCUS + CSS, js=with_store(_grid_js)
)
_lines = st.components.v2.component(
    "ablation_lines",
    html=HTML,
    css=FOCUS + CSS + ".scale { display: none; } .tip { display: none !important; }",
    js=with_store(_lines_js),
)

DECADES = 4
# cells that travel as float32; more travel as uint16, in steps of a 65,534th of the range
EXACT_UP_TO = 20_000


def pack(
    matrices,
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    *,
    titles: Sequence[str] | None = None,
    quantity: str = "",
    alt: str = "",
    diverging: bool = False,
    log: bool = False,
    height: int = 430,
    twin=None,
    **options,
) -> bytes:
    """Return matrices (panels, rows, columns) and labels as bytes for grid.js and lines.js.

    Args:
        matrices: (panels, rows, columns), NaN where there is nothing to show, as under a mask.
        rows: Label of each row.
        columns: Label of each column, or None.
        titles: Title of each panel, or None.
        quantity: Label of the scale.
        alt: Alternative text.
        diverging: Whether the scale is symmetric about 0; else it includes 0.
        log: Whether the scale is logarithmic, at most four decades to each side of the median: one
            exploded value, or rounding, must not give all others one colour.
        height: Height in pixels.
        twin: Matrices drawn elsewhere on the same scale.
        **options: Further fields for the script.
    """
    cells = _to_tensor(matrices).double()
    blank = cells.isnan()
    cells = (cells.log10() if log else cells).float()  # −∞ stands for 0
    low, high, clipped = _scale(
        cells if twin is None else _join_values(cells, twin, log), diverging, log
    )
    steps = not log and cells.numel() > EXACT_UP_TO and not bool(cells.isinf().any())
    head = dict(zip(("panels", "rows", "cols"), cells.shape)) | {
        "rowWords": list(rows),
        "colWords": None if columns is None else list(columns),
        "titles": titles,
        "what": f"{quantity}, log scale" if log else quantity,
        "alt": alt,
        "stops": DIVERGING if diverging else SEQUENTIAL,
        "low": low,
        "high": high,
        "clipped": clipped,
        "steps": steps,
        "log": log,
        "blank": "undefined",
        "blanks": bool(blank.any()),
        "height": height,
        "square": True,
        "arrow": "→",
        **options,
    }
    text = json.dumps(head, ensure_ascii=False).encode("utf-8", "replace")
    return (
        len(text).to_bytes(4, "little")
        + text
        + bytes(-len(text) % 4)
        + _encode_cells(cells, blank, low, high, steps)
    )


def _to_tensor(matrices) -> torch.Tensor:
    """Return matrices as a tensor; arrays are copied, as cached ones must not change."""
    return torch.as_tensor(np.array(matrices) if isinstance(matrices, np.ndarray) else matrices)


def _join_values(cells, twin, log: bool) -> torch.Tensor:
    """Return the values of cells and twin as a vector; only the twin's become log10 if `log`."""
    twin_values = _to_tensor(twin).double()
    return torch.cat(
        [cells.flatten(), (twin_values.log10() if log else twin_values).float().flatten()]
    )


def _scale(cells: torch.Tensor, diverging: bool, log: bool) -> tuple[float, float, list[bool]]:
    """Return (low, high) of the colour scale, and [whether cells lie below, above].

    The cells are logarithms already if `log`; without a finite one both are 0, or −1 and 1.

    Args:
        cells: Values, or their logarithms.
        diverging: Whether the scale is symmetric about 0.
        log: Whether cells are logarithms.
    """
    finite = cells[cells.isfinite()]
    least, largest = (finite.min().item(), finite.max().item()) if len(finite) else (0.0, 0.0)
    if log:
        middle = finite.median().item() if len(finite) else 0.0
        low = max(least, middle - DECADES)
        high = min(largest, middle + DECADES)
    else:
        low = min(least, 0.0)
        high = max(largest, 0.0)
    if diverging:
        high = max(high, -low) or 1.0
        low = -high
    return (
        low,
        high,
        (
            [least < low or bool((cells == -torch.inf).any()), largest > high]
            if log
            else [False, False]
        ),
    )


def _encode_cells(
    cells: torch.Tensor, blank: torch.Tensor, low: float, high: float, in_steps: bool
) -> bytes:
    """Return cells as float32 bytes; if `in_steps` as uint16: 65,534 steps, 65,535 for blank."""
    if not in_steps:
        return cells.numpy().astype("<f4").tobytes()
    share = (cells.clamp(low, high) - low).mul_(65534 / ((high - low) or 1.0)).round_()
    return share.masked_fill_(blank, 65535).int().numpy().astype("<u2").tobytes()


def in_one_frame(matrices, size: int) -> torch.Tensor:
    """Stack square matrices, at most `size` wide, as (panels, size, size), padded with NaN.

    An element None is all NaN.
    """
    cells = torch.full((len(matrices), size, size), torch.nan)
    for index, matrix in enumerate(matrices):
        if matrix is not None:
            cells[index, : len(matrix), : len(matrix)] = matrix
    return cells


def draw_heatmaps(
    key: str,
    matrices,
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    *,
    on_pick=None,
    exported=None,
    table_name="",
    stacked=False,
    **options,
):
    """Draw matrices (panels, rows, columns) as heat maps; offer a table of them; see pack().

    on_pick(panel, row, column) follows a click.

    Args:
        key: Key of the component.
        matrices: (panels, rows, columns).
        rows: Label of each row.
        columns: Label of each column, or None.
        on_pick: Called with the panel, row and column of a click.
        exported: Returns the table that Export offers; without it, one of all cells.
        table_name: Name of that table; that of the alternative text if empty.
        stacked: Whether its twin stands above or below, where one scale serves both.
        **options: Further fields for grid.js, as ring: the cell (panel, row, col) that the page
            names.
    """
    options["alt"] = side_by_side.with_side_name(options.get("alt", key))
    offer_table(
        side_by_side.with_side_name(table_name) if table_name else options["alt"].rstrip("."),
        exported or MatrixTable(matrices, rows, columns, options.get("titles")),
    )

    shape = _to_tensor(
        matrices
    ).shape  # a callback is kept as long as the page is open, and with it all that it names

    def pick(cell: list[int]):
        if on_pick and all(0 <= coordinate < size for coordinate, size in zip(cell, shape)):
            on_pick(*cell)

    said_above = take_announcement()

    def draw(other):
        twin, *its_words = other or (None,)
        displayed = matrices
        extra = {"twin": twin, "said": said_above}
        if (
            twin is not None and "diverging" in options
        ):  # one scale for both, whichever goes below zero
            extra["diverging"] = options["diverging"] or bool((_to_tensor(twin) < 0).any())
        if (
            side_by_side.shows_difference()
            and its_words == [list(rows), columns and list(columns)]
            and len(matrices) == len(twin)
        ):
            displayed = _to_tensor(matrices) - _to_tensor(twin)
            description = f"difference: {options.get('quantity', '')}"
            extra = {
                "said": said_above,
                "diverging": True,
                "log": False,
                "quantity": description,
                "ring": None,
            }
        elif twin is not None:
            side_by_side.caption_no_difference()
            extra["sharesScale"] = (
                stacked and side_by_side.is_second_side() and not side_by_side.shows_difference()
            )
        data = pack(
            displayed,
            rows,
            columns,
            clickable=on_pick is not None,
            set=register_handler(name, pick),
            **options | extra,
        )
        _grid(key=name, data=data)

    options["scaleAbove"] = not side_by_side.has_full_width()
    name = side_by_side.key_of_side(key)
    side_by_side.draw_picture(key, (matrices, list(rows), columns and list(columns)), draw)


@dataclass(frozen=True)
class Frames:
    """Moments of an animation, each with its panels (canvas/play.js)."""

    unit: str  # what is gone through, as "Pass"
    numbers: list[int]  # of the moments, as curves beside the picture have them
    moments: list[str]  # how each is called
    words: list[str]  # what is said at each
    titles: list[list[str]]  # of the panels, at each
    file: str  # name of the animated picture
    weights: str  # whose they are: said in the animated picture
    grows: bool = False  # whether more are to come: then it waits for them at the last one


def draw_animation(
    key: str, matrices, rows: Sequence[str], columns: Sequence[str], frames: Frames, **options
):
    """Draw an animation of matrices (moments, panels, rows, columns); offer all for export."""
    cells = _to_tensor(matrices)
    titles = [
        f"{moment}: {title}"
        for moment, several in zip(frames.moments, frames.titles)
        for title in several
    ]
    offer_table(options["alt"].rstrip("."), MatrixTable(cells.flatten(0, 1), rows, columns, titles))
    options["said"] = take_announcement()
    data = pack(
        cells.flatten(0, 1),
        rows,
        columns,
        frames=asdict(frames),
        **options | {"panels": cells.shape[1]},
    )
    _grid(key=key, data=data)


def draw_attention_lines(key: str, weights, tokens: Sequence[str], **options):
    """Draw one attention pattern (T, T) as lines from queries to keys; offer it for export."""
    options["alt"] = side_by_side.with_side_name(options["alt"])
    offer_table(options["alt"].rstrip("."), MatrixTable(torch.as_tensor(weights)[None], tokens))
    options["said"] = take_announcement()
    matrix = torch.as_tensor(weights)[None]
    name = side_by_side.key_of_side(key)
    side_by_side.draw_picture(
        key,
        matrix,
        lambda twin: _lines(key=name, data=pack(matrix, tokens, tokens, twin=twin, **options)),
    )
