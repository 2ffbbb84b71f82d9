"""Ablation matrix as a component; every cell links to its experiment."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from core.figures.svg import in_own_size
from core.study.picture import COLOURS, matrix_svg
from core.study.summary import Line, lines
from core.study.training_link import format_address, read_query
from ui.kit.server.scripts import component
from ui.kit.store import session

CSS = f"""
.root {{ font-family: var(--st-font); overflow-x: auto; }}
@media (max-width: 640px) {{
  /* it fades out where more of it can be pushed into sight (panel.css) */
  .root {{
    mask-image: linear-gradient(to right, #000 calc(100% - var(--ablation-fade)), transparent);
    animation: ablation-fade linear both; animation-timeline: scroll(self inline);
  }}
}}
@keyframes ablation-fade {{ 0%, 90% {{ --ablation-fade: 48px; }} 100% {{ --ablation-fade: 0px; }} }}
svg {{ width: 100%; height: auto; display: block; }}
.names {{ position: sticky; left: 0; z-index: 1; height: 0; }}
.names svg {{ background: var(--st-background-color); }}
text {{ fill: var(--st-text-color); }} .paper {{ fill: var(--st-background-color); }}
.floor {{ fill: var(--st-text-color); }}
.edge {{ stroke: var(--st-text-color); fill: none; }} a {{ cursor: pointer; }}
a:hover .edge {{ stroke-opacity: 1; stroke: var(--st-primary-color); stroke-width: 2.5; }}
a:focus-visible {{ outline-offset: -2px; }}
{COLOURS}"""
_matrix = component("matrix", Path(__file__).with_suffix(".js"), CSS)


def draw_matrix(
    summary, key: str, on_open: Callable[[Line], None] | None = None, intervals: bool = True
):
    """Draw a study's ablation matrix, whose cells open Training; on_open(line) comes first.

    Args:
        summary: Table of core.study.tables.summary_table.
        key: Key of the component.
        on_open: Called with the line of a cell before it is opened.
        intervals: Whether each cell has its interval.
    """
    remembered = session().kept
    svg = in_own_size(matrix_svg(summary, links=True, intervals=intervals))  # a narrow page scrolls

    def opened():
        clicked = getattr(
            st.session_state.get(key), "open", None
        )  # gone, where an earlier click has turned the page
        settings = read_query(clicked) if isinstance(clicked, str) else None
        line = next((line for line in lines(summary) if read_query(line.link) == settings), None)
        if line is not None and on_open:
            on_open(line)
            remembered[key] = format_address(settings)

    _matrix(
        key=key,
        data={"svg": svg, "asks": bool(on_open), "to": remembered.pop(key, "")},
        on_open_change=opened,
    )
