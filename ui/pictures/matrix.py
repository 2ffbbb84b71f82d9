"""The picture of what each part costs on each task; every cell is a link to the experiment behind it."""

from pathlib import Path

import streamlit as st

from core.study.link import read_query
from core.study.picture import COLOURS, matrix_svg
from ui.kit.pages import TRAINING

CSS = f"""
.root {{ font-family: var(--st-font); overflow-x: auto; }}
svg {{ width: 100%; height: auto; display: block; }}
text {{ fill: var(--st-text-color); }} .paper {{ fill: var(--st-background-color); }}
.edge {{ stroke: var(--st-text-color); fill: none; }} a {{ cursor: pointer; }}
a:hover .edge, a:focus-visible .edge {{ stroke-opacity: 1; stroke: var(--st-primary-color); stroke-width: 2.5; }} a:focus {{ outline: none; }}
{COLOURS}"""
_matrix = st.components.v2.component(
    "ablation_matrix",
    html='<div class="root"></div>',
    css=CSS,
    js=(Path(__file__).parent / "matrix.js").read_text(),
)


def matrix(summary, key: str, begin: bool = False):
    """Draw a table of core.study.tables.summary_table. begin: what a click opens is trained at once."""
    columns = summary.task.nunique()
    more = {"begin": "on"} if begin else {}
    svg = f'<div style="max-width: {200 + 120 * columns}px; min-width: {120 + 72 * columns}px">{matrix_svg(summary, links=True, more=more)}</div>'
    clicked = _matrix(key=key, data=svg, on_open_change=lambda: None).open
    if clicked:
        st.switch_page(TRAINING.path, query_params=read_query(clicked))
