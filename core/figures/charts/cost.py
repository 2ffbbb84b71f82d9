"""What a block costs."""

import altair as alt

from core.figures.palette import BASELINE, VARIANTS
from core.figures.spec import LOG, Drawn, numbers, spec


@spec
def amounts(base: alt.Chart, title: str) -> Drawn:
    """Amounts by part: part (with the amount in words), value."""
    return base.mark_bar(color=BASELINE).encode(
        y=alt.Y("part:N", title=None, sort=None, axis=alt.Axis(labelLimit=240)),
        x=alt.X("value:Q", title=title, axis=alt.Axis(format="~s", tickCount=5, labelBound=True)),
        tooltip=["part:N"],
    )


@spec
def growth(base: alt.Chart) -> Drawn:
    """Cost against length of text: tokens, part, value."""
    log = alt.Scale(type="log", nice=False)
    return base.mark_line(point=True).encode(
        x=alt.X("tokens:Q", title="tokens in the text" + LOG, scale=log, axis=numbers()),
        y=alt.Y("value:Q", title="floating point operations" + LOG, scale=log, axis=alt.Axis(format="~s")),
        color=alt.Color("part:N", title=None, sort=None, legend=alt.Legend(orient="top", direction="vertical"), scale=alt.Scale(range=[BASELINE, *VARIANTS])),
        tooltip=["part:N", "tokens:Q", alt.Tooltip("value:Q", title="operations", format=",")],
    )  # fmt: skip
