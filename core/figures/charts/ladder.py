"""Chart of one effect over the sizes of the dial; a Vega-Lite dict without data (spec.py)."""

import altair as alt

from core.figures.palette import BASELINE, NEUTRAL
from core.figures.spec import BASE, AltairChart, as_vega_lite, number_axis

MEASURED = "measured"
PREDICTED = "predicted"
SEED = "seed"
LINE = "line"


@as_vega_lite
def effect_by_size(low: float, high: float, sizes: tuple[int, ...]) -> AltairChart:
    """Draw effects over sizes: columns size, kind, value, low, high, seed (points).

    kind: MEASURED (point with interval), PREDICTED (open point with dashed interval), SEED (small
    point), LINE (the mean of the seeds' lines). From `low` to `high` on the axis.
    """
    x = alt.X(
        "size:Q",
        title="size",
        scale=alt.Scale(domain=[sizes[0] - 0.5, sizes[-1] + 0.5]),
        axis=alt.Axis(values=list(sizes), format="d", grid=False),
    )
    y = alt.Y(
        "value:Q",
        title="effect (points)",
        scale=alt.Scale(domain=[low, high]),
        axis=number_axis(tickCount=4),
    )
    tips = [
        "size:Q",
        alt.Tooltip("value:Q", title="effect (points)", format=".1f"),
        alt.Tooltip("low:Q", title="interval, low", format=".1f"),
        alt.Tooltip("high:Q", title="interval, high", format=".1f"),
    ]
    zero = BASE.mark_rule(color=NEUTRAL, opacity=0.6, aria=False).encode(y=alt.datum(0))
    seeds = (
        BASE.transform_filter(alt.datum.kind == SEED)
        .mark_point(filled=True, size=14, opacity=0.45, color=NEUTRAL, xOffset=9, clip=True)
        .encode(x=x, y=y, tooltip=["size:Q", "seed:Q", alt.Tooltip("value:Q", format=".1f")])
    )
    line = (
        BASE.transform_filter(alt.datum.kind == LINE)
        .mark_line(color=BASELINE, strokeWidth=1.5, opacity=0.9, clip=True)
        .encode(x=x, y=y)
    )
    layers = [zero, line, seeds]
    for kind, dash, fill in ((MEASURED, [1, 0], BASELINE), (PREDICTED, [4, 3], "transparent")):
        chosen = BASE.transform_filter(alt.datum.kind == kind)
        layers.append(
            chosen.mark_rule(color=BASELINE, strokeWidth=2, strokeDash=dash, clip=True).encode(
                x=x, y=alt.Y("low:Q", title="effect (points)"), y2="high:Q", tooltip=tips
            )
        )
        layers.append(
            chosen.mark_point(stroke=BASELINE, fill=fill, size=60, opacity=1).encode(
                x=x, y=y, tooltip=tips
            )
        )
    return alt.layer(*layers)
