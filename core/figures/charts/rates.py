"""Chart of effects at the set and at the best learning rate; a Vega-Lite dict without data."""

import altair as alt

from core.figures.palette import BASELINE, NEUTRAL, VARIANTS
from core.figures.spec import BASE, AltairChart, as_vega_lite, number_axis

AS_SET = "rate as set"
TUNED = "best rate of each"


@as_vega_lite
def effect_by_rate() -> AltairChart:
    """Draw points with interval: columns variant, how, value, low, high (points), seeds, best.

    Two for each variant: how is AS_SET or TUNED. best: rates chosen, in words.
    """
    y = alt.Y(
        "variant:N",
        title=None,
        sort=None,
        axis=alt.Axis(labelLimit=240, labelOverlap=False, grid=True),
    )
    x = alt.X(
        "value:Q",
        title="effect (points)",
        axis=number_axis(tickCount=6),
        scale=alt.Scale(padding=8),
    )
    side = alt.YOffset("how:N", sort=[AS_SET, TUNED])
    how = alt.Color(
        "how:N",
        title=None,
        sort=[AS_SET, TUNED],
        scale=alt.Scale(domain=[AS_SET, TUNED], range=[VARIANTS[0], BASELINE]),
        legend=alt.Legend(orient="top"),
    )
    shape = alt.Shape("how:N", sort=[AS_SET, TUNED], legend=None)
    tips = [
        "variant:N",
        "how:N",
        alt.Tooltip("value:Q", title="effect (points)", format=".1f"),
        alt.Tooltip("low:Q", title="95 % CI low", format=".1f"),
        alt.Tooltip("high:Q", title="95 % CI high", format=".1f"),
        "seeds:Q",
        alt.Tooltip("best:N", title="rates chosen"),
    ]
    zero = BASE.mark_rule(color=NEUTRAL, opacity=0.6, aria=False).encode(x=alt.datum(0))
    spans = BASE.mark_rule(strokeWidth=2).encode(
        y=y, yOffset=side, x=alt.X("low:Q", title="effect (points)"), x2="high:Q", color=how
    )
    points = BASE.mark_point(filled=True, size=70, opacity=1).encode(
        y=y, yOffset=side, x=x, color=how, shape=shape, tooltip=tips
    )
    return zero + spans + points
