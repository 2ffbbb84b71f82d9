"""Attention patterns, head by head.

Each function returns a Vega-Lite dict without data, as @as_vega_lite says (core/figures/spec.py).
"""

import altair as alt

from core.figures.palette import BASELINE, NEUTRAL, VARIANTS
from core.figures.spec import BASE, AltairChart, as_vega_lite, number_axis


@as_vega_lite
def arcs() -> AltairChart:
    """Draw pairs of tokens as arcs over a sentence; columns: arc, pair, x, y, step; and x, word.

    A row is a point of an arc, or a label: x, word.
    """
    arc = (
        BASE.transform_filter("datum.word == null")
        .mark_line(color=VARIANTS[0], strokeWidth=2)
        .encode(
            x=alt.X("x:Q", axis=None, scale=alt.Scale(padding=28)),
            y=alt.Y("y:Q", axis=None),
            detail="arc:N",
            order="step:Q",
            tooltip=[alt.Tooltip("pair:N", title="depends on")],
        )
    )
    text = BASE.transform_filter("datum.word != null").mark_text(
        angle=310, align="right", baseline="middle", dy=6, color=NEUTRAL, fontSize=12
    )
    return arc + text.encode(x="x:Q", y="y:Q", text="word:N")


@as_vega_lite
def per_head(title: str, reference_name: str, percent: bool = False) -> AltairChart:
    """Draw a bar per head and a tick to compare with; columns: head, value, reference.

    reference_name: what the tick is. percent: values are shares, shown as %.
    """
    format = ".2%" if percent else ".4f"
    x = alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0))
    axis = alt.Axis(format="%") if percent else number_axis()
    bars = BASE.mark_bar(color=BASELINE).encode(
        x=x,
        y=alt.Y("value:Q", title=title, axis=axis),
        tooltip=["head:O", alt.Tooltip("value:Q", title=title, format=format)],
    )
    line = BASE.mark_tick(color=VARIANTS[0], thickness=3).encode(
        x=x,
        y="reference:Q",
        tooltip=[alt.Tooltip("reference:Q", title=reference_name, format=format)],
    )
    return bars + line
