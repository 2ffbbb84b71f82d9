"""Charts of the residual stream, the hidden units and the cost of a block.

Each function returns a Vega-Lite dict without data, as @as_vega_lite says (core/figures/spec.py).
"""

import altair as alt

from core.figures.palette import BASELINE, NEUTRAL, VARIANTS
from core.figures.spec import BASE, LOG, ZERO, AltairChart, as_vega_lite, number_axis, word_axis


@as_vega_lite
def amounts(title: str) -> AltairChart:
    """Draw a bar per part; columns: part (amount in words), value (in the unit of `title`)."""
    return BASE.mark_bar(color=BASELINE).encode(
        y=alt.Y("part:N", title=None, sort=None, axis=alt.Axis(labelLimit=240)),
        x=alt.X(
            "value:Q",
            title=title,
            axis=alt.Axis(format="~s", labelExpr=ZERO, tickCount=5, labelBound=True),
        ),
        tooltip=["part:N"],
    )


@as_vega_lite
def growth() -> AltairChart:
    """Draw FLOPs by text length, log axes, a line per part; columns: tokens, part, value."""
    log = alt.Scale(type="log", nice=False)
    return BASE.mark_line(point=True).encode(
        x=alt.X("tokens:Q", title="tokens in the text" + LOG, scale=log, axis=number_axis()),
        y=alt.Y("value:Q", title="FLOPs" + LOG, scale=log, axis=alt.Axis(format="~s")),
        color=alt.Color(
            "part:N",
            title=None,
            sort=None,
            legend=alt.Legend(orient="top", direction="vertical"),
            scale=alt.Scale(range=[BASELINE, *VARIANTS]),
        ),
        tooltip=["part:N", "tokens:Q", alt.Tooltip("value:Q", title="FLOPs", format=",")],
    )


@as_vega_lite
def stages() -> AltairChart:
    """Draw each stage's range, mean, SD; columns: stage, mean, std, rms, min, max, from, to.

    from and to are mean − std and mean + std.
    """
    y = word_axis(alt.Y, "stage", None, limit=240)
    tips = [alt.Tooltip(f"{name}:Q", format=".4g") for name in ("mean", "std", "rms", "min", "max")]
    spread = BASE.mark_rule(strokeWidth=2, color=NEUTRAL).encode(
        y=y,
        x=alt.X("min:Q", title="activation value", axis=number_axis()),
        x2="max:Q",
        tooltip=tips,
    )
    middle = BASE.mark_bar(height=12, color=BASELINE, opacity=0.85).encode(
        y=y, x="from:Q", x2="to:Q", tooltip=tips
    )
    mean = BASE.mark_tick(thickness=3, size=18, color=VARIANTS[0]).encode(
        y=y, x="mean:Q", tooltip=tips
    )
    return spread + middle + mean


@as_vega_lite
def before_after() -> AltairChart:
    """Draw a token's vector before and after a norm as bars; columns: dimension, before, after."""
    scale = alt.Scale(domain=["before", "after"], range=["#b9bec6", BASELINE])
    colour = alt.Color("when:N", title=None, scale=scale, legend=alt.Legend(orient="top"))
    x = alt.X(
        "dimension:Q",
        title="dimension",
        scale=alt.Scale(nice=False, padding=8),
        axis=alt.Axis(tickMinStep=1),
    )
    tips = [
        "dimension:Q",
        alt.Tooltip("before:Q", format=".4f"),
        alt.Tooltip("after:Q", format=".4f"),
    ]
    before = BASE.transform_calculate(when="'before'").mark_bar(size=7)
    after = BASE.transform_calculate(when="'after'").mark_bar(size=2.5)
    return before.encode(
        x=x, y=alt.Y("before:Q", title="value", axis=number_axis()), color=colour, tooltip=tips
    ) + after.encode(x=x, y="after:Q", color=colour, tooltip=tips)


@as_vega_lite
def per_token(
    every: bool, title: str, top: float | None = None, percent: bool = False
) -> AltairChart:
    """Draw a bar per token, axis up to `top`; columns label, word, value. `every`: all labels."""
    scale = (
        alt.Scale()
        if top is None
        else alt.Scale(domain=[min(0, -top), top] if top < 0 else [0, top])
    )
    format = ".1%" if percent else ".4f"
    return BASE.mark_bar(color=BASELINE).encode(
        x=word_axis(alt.X, "label", None, every),
        y=alt.Y(
            "value:Q",
            title=title,
            scale=scale,
            axis=alt.Axis(format="%") if percent else number_axis(),
        ),
        tooltip=[alt.Tooltip("word:N"), alt.Tooltip("value:Q", title=title, format=format)],
    )


@as_vega_lite
def shares(title: str) -> AltairChart:
    """Draw grouped bars: for each name one per kind; columns: name, value (0 to 1), kind."""
    return BASE.mark_bar().encode(
        y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=220)),
        x=alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        yOffset=alt.YOffset("kind:N", sort=None),
        color=alt.Color(
            "kind:N",
            title=None,
            sort=None,
            legend=alt.Legend(orient="top"),
            scale=alt.Scale(range=[BASELINE, VARIANTS[3], NEUTRAL]),
        ),
        tooltip=["name:N", "kind:N", alt.Tooltip("value:Q", title="share", format=".2%")],
    )


@as_vega_lite
def word_orders() -> AltairChart:
    """Draw how far two word orders differ; columns: label (encoding), seen (mask), value.

    value: as compare_word_orders() gives it, the largest absolute difference.
    """
    return BASE.mark_bar().encode(
        y=alt.Y("label:N", title=None, sort=None),
        x=alt.X("value:Q", title="maximum absolute difference", axis=number_axis()),
        yOffset=alt.YOffset("seen:N", sort=None),
        color=alt.Color(
            "seen:N",
            title=None,
            sort=None,
            legend=alt.Legend(orient="top"),
            scale=alt.Scale(range=[BASELINE, VARIANTS[3]]),
        ),
        tooltip=["label:N", "seen:N", alt.Tooltip("value:Q", title="difference", format=".2e")],
    )
