"""Charts of a trained model: its next tokens, and what it loses without a part.

Each function returns a Vega-Lite dict without data, as @as_vega_lite says (core/figures/spec.py).
"""

import altair as alt

from core.figures.palette import BASELINE, DASHES, NEUTRAL, VARIANTS
from core.figures.spec import BASE, AltairChart, as_vega_lite, number_axis, word_axis


@as_vega_lite
def next_words(title: str) -> AltairChart:
    """Draw probability (bars) and chance (ticks) by label and variant; also columns word, token.

    probability: 0 to 1; chance: of being sampled; label: of the token.
    """
    y = word_axis(alt.Y, "label", None, limit=160)
    offset = alt.YOffset("variant:N", sort=None)
    x = alt.X(
        "probability:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%"),
    )
    colour = alt.Color(
        "variant:N",
        title=None,
        sort=None,
        legend=alt.Legend(orient="top", labelLimit=400),
        scale=alt.Scale(range=[BASELINE, VARIANTS[0]]),
    )
    tips = [
        alt.Tooltip("word:N"),
        alt.Tooltip("variant:N"),
        alt.Tooltip("probability:Q", format=".4f"),
        alt.Tooltip("chance:Q", title="sampling probability", format=".4f"),
    ]
    bars = BASE.mark_bar().encode(x=x, y=y, yOffset=offset, color=colour, tooltip=tips)
    drawn = BASE.mark_tick(thickness=3, color=NEUTRAL).encode(
        x="chance:Q", y=y, yOffset=offset, tooltip=tips
    )
    return bars + drawn


@as_vega_lite
def ranking(title: str) -> AltairChart:
    """Draw a bar with interval per part in order; columns: name, change, low, high, p, clear.

    clear: bool, whether it is significant. `title` names the change and its unit.
    """
    format = ".3f"
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=200, labelOverlap=False))
    axis = number_axis()
    tips = [
        "name:N",
        alt.Tooltip("change:Q", format=format),
        alt.Tooltip("low:Q", title="95 % CI low", format=format),
        alt.Tooltip("high:Q", title="95 % CI high", format=format),
        alt.Tooltip("p:Q", format=".2g"),
    ]
    bars = BASE.mark_bar(color=BASELINE).encode(
        y=y,
        x=alt.X("change:Q", title=title, axis=axis),
        tooltip=tips,
        opacity=alt.Opacity(
            "clear:N", scale=alt.Scale(domain=[True, False], range=[1, 0.35]), legend=None
        ),
    )
    spans = BASE.mark_rule(strokeWidth=1.5, color=NEUTRAL).encode(
        y=y, x="low:Q", x2="high:Q", tooltip=tips
    )
    return bars + spans


@as_vega_lite
def with_and_without(title: str, decades: int = 0) -> AltairChart:
    """Draw points with interval: columns label, how, value, low, high, seeds, p, reference.

    One for each part (label) and `how`, in the given order; reference: of the baseline. The axis is
    logarithmic over `decades` from 1 on, or linear if that is 0.
    """
    y = alt.Y(
        "label:N",
        title=None,
        sort=None,
        axis=alt.Axis(labelLimit=200, labelOverlap=False, grid=True),
    )
    scale = alt.Scale(type="log", domain=[1, 10**decades]) if decades else alt.Scale(zero=False)
    x = alt.X(
        "value:Q",
        title=title,
        axis=number_axis() if decades else number_axis(tickCount=6),
        scale=scale,
    )
    how = alt.Color(
        "how:N",
        title=None,
        sort=None,
        scale=alt.Scale(range=[BASELINE, VARIANTS[0]]),
        legend=alt.Legend(orient="top"),
    )
    side = alt.YOffset("how:N", sort=None)
    tips = [
        "label:N",
        "how:N",
        alt.Tooltip("value:Q", format=".4g"),
        alt.Tooltip("low:Q", title="95 % CI low", format=".4g"),
        alt.Tooltip("high:Q", title="95 % CI high", format=".4g"),
        "seeds:Q",
        alt.Tooltip("reference:Q", title="baseline", format=".4g"),
        alt.Tooltip("p:Q", title="p, corrected (Holm)", format=".2g"),
    ]
    line = BASE.mark_rule(color=NEUTRAL, strokeDash=[4, 4]).encode(x="reference:Q")
    spans = BASE.mark_rule(strokeWidth=2, clip=True).encode(
        y=y, yOffset=side, x="low:Q", x2="high:Q", color=how, tooltip=tips
    )
    points = BASE.mark_point(filled=True, size=70, opacity=1).encode(
        y=y,
        yOffset=side,
        x=x,
        color=how,
        shape=alt.Shape("how:N", sort=None, legend=None),
        tooltip=tips,
    )
    return line + points + spans  # in the order of the points: the baseline has no line


@as_vega_lite
def by_distance(names: tuple[str, ...]) -> AltairChart:
    """Draw lines over distances: columns distance, line, value, low, high, n, seeds, p, end, at.

    A line per name, distinguished by dash, shape and end label; value: accuracy, 0 to 1; end: the
    name, at the last distance, at height `at`. The first name has the baseline's colour.
    """
    dashes = [[int(length) for length in dash.split()] or [1, 0] for dash in DASHES[: len(names)]]
    scale = alt.Scale(domain=list(names), range=[BASELINE, *VARIANTS][: len(names)])
    x = alt.X(
        "distance:N", title="words between subject and verb", sort=None, axis=alt.Axis(labelAngle=0)
    )
    side = alt.XOffset("line:N", sort=list(names), scale=alt.Scale(paddingOuter=1))
    y = alt.Y(
        "value:Q",
        title="accuracy",
        scale=alt.Scale(domain=[0, 1.03], nice=False),
        axis=number_axis(values=[0, 0.25, 0.5, 0.75, 1]),
    )
    colour = alt.Color("line:N", title=None, scale=scale, legend=None)
    tips = [
        alt.Tooltip("line:N"),
        alt.Tooltip("distance:N", title="words between"),
        alt.Tooltip("value:Q", format=".4g"),
        alt.Tooltip("low:Q", title="95 % CI low", format=".4g"),
        alt.Tooltip("high:Q", title="95 % CI high", format=".4g"),
        "n:Q",
        "seeds:Q",
        alt.Tooltip("p:Q", title="p, corrected (Holm)", format=".2g"),
    ]
    dash = alt.StrokeDash(
        "line:N", sort=None, scale=alt.Scale(domain=list(names), range=dashes), legend=None
    )
    lines = BASE.mark_line(strokeWidth=2).encode(
        x=x, xOffset=side, y=y, color=colour, strokeDash=dash
    )
    spans = BASE.mark_rule(strokeWidth=2).encode(
        x=x, xOffset=side, y="low:Q", y2="high:Q", color=colour, tooltip=tips
    )
    shape = alt.Shape("line:N", scale=alt.Scale(domain=list(names)), legend=None)
    points = BASE.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, xOffset=side, y=y, color=colour, shape=shape, tooltip=tips
    )
    ends = BASE.mark_text(align="left", dx=8, fontSize=12).encode(
        x=alt.value("width"), y="at:Q", text="end:N", color=colour
    )
    return lines + spans + points + ends
