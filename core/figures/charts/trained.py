"""A trained model: what it would say next, and what it loses without a part."""

import altair as alt
import pandas as pd

from core.figures.palette import BASELINE, NEUTRAL, VARIANTS
from core.figures.spec import Drawn, example, numbers, spec


@spec
def next_words(base: alt.Chart, title: str) -> Drawn:
    """Bars per word and variant: word, variant, probability; a tick where the chance of being drawn is another: chance."""
    y = alt.Y("word:N", title=None, sort=None, axis=alt.Axis(labelLimit=160, labelOverlap=False))
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
        alt.Tooltip("chance:Q", title="chance of being drawn", format=".4f"),
    ]
    bars = base.mark_bar().encode(x=x, y=y, yOffset=offset, color=colour, tooltip=tips)
    drawn = base.mark_tick(thickness=3, color=NEUTRAL).encode(x="chance:Q", y=y, yOffset=offset, tooltip=tips)
    return bars + drawn


@example(next_words, "probability")
def _next_words() -> pd.DataFrame:
    variants = ["whole model", "− head 2.4"]
    return pd.DataFrame(
        {
            "word": ["was", "was", "were", "were"],
            "variant": variants * 2,
            "probability": [0.9, 0.4, 0.1, 0.6],
            "chance": [1.0, 0.3, 0.0, 0.7],
        }
    )


@spec
def ranking(base: alt.Chart, title: str) -> Drawn:
    """A bar per part with its interval, in the order in which they come: name, change, low, high, p, clear (whether it is
    more than noise)."""
    format = ".3f"
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=200, labelOverlap=False))
    axis = numbers()
    tips = [
        "name:N",
        alt.Tooltip("change:Q", format=format),
        alt.Tooltip("low:Q", title="95 % from", format=format),
        alt.Tooltip("high:Q", title="to", format=format),
        alt.Tooltip("p:Q", format=".2g"),
    ]
    bars = base.mark_bar(color=BASELINE).encode(
        y=y,
        x=alt.X("change:Q", title=title, axis=axis),
        tooltip=tips,
        opacity=alt.Opacity("clear:N", scale=alt.Scale(domain=[True, False], range=[1, 0.35]), legend=None),
    )
    spans = base.mark_rule(strokeWidth=1.5, color=NEUTRAL).encode(y=y, x="low:Q", x2="high:Q", tooltip=tips)
    return bars + spans


@example(ranking, "change of accuracy (percentage points)")
def _ranking() -> pd.DataFrame:
    ends = {"low": [-52.0, -1.0], "high": [-48.0, 2.0], "p": [0.0001, 0.6]}
    return pd.DataFrame({"name": ["head 2.4", "head 1.1"], "change": [-50.0, 0.5], **ends, "clear": [True, False]})
