"""Table -> chart, one function per kind of question. Altair is used to write a specification once; only data moves.

Each function returns a Vega-Lite specification as a dict that does not change from call to call (so that the browser
keeps the picture and swaps the data), for a table with the columns named in its docstring. Words on axes come as
"007 word": a number that sorts, and a word that is shown.
"""

import altair as alt

from core.figures.palette import BASELINE, NEUTRAL, SEQUENTIAL, VARIANTS
from core.figures.spec import LOG, Drawn, numbers, spec, words


def word(number: int, text: str) -> str:
    """A token for an axis: sorted by its number, shown as its word."""
    return f"{number:03d} {text}"


@spec
def attention_map(base: alt.Chart, every: bool) -> Drawn:
    """One head, with every word on its axes or only those there is room for: query, key (words), weight, reader, source (plain words for hovering)."""
    return base.mark_rect().encode(
        x=words(alt.X, "key", "is read (key)", every),
        y=words(alt.Y, "query", "reads (query)", every),
        color=alt.Color(
            "weight:Q",
            title="weight",
            scale=alt.Scale(range=list(SEQUENTIAL), domainMin=0),
            legend=alt.Legend(gradientLength=120),
        ),
        tooltip=[
            alt.Tooltip("reader:N", title="reads"),
            alt.Tooltip("source:N", title="is read"),
            alt.Tooltip("weight:Q", format=".4f"),
        ],
    )


@spec
def stages(base: alt.Chart) -> Drawn:
    """Every stage: stage (word), mean, std, low, high, from, to (mean ∓ std)."""
    y = words(alt.Y, "stage", None, limit=240)
    tips = [alt.Tooltip(f"{name}:Q", format=".4g") for name in ("mean", "std", "rms", "min", "max")]
    spread = base.mark_rule(strokeWidth=2, color=NEUTRAL).encode(
        y=y, x=alt.X("min:Q", title="value of one number", axis=numbers()), x2="max:Q", tooltip=tips
    )
    middle = base.mark_bar(height=12, color=BASELINE, opacity=0.85).encode(y=y, x="from:Q", x2="to:Q", tooltip=tips)
    mean = base.mark_tick(thickness=3, size=18, color=VARIANTS[0]).encode(y=y, x="mean:Q", tooltip=tips)
    return spread + middle + mean


@spec
def before_after(base: alt.Chart) -> Drawn:
    """One token's vector: dimension, before, after."""
    scale = alt.Scale(domain=["before", "after"], range=["#b9bec6", BASELINE])
    colour = alt.Color("when:N", title=None, scale=scale, legend=alt.Legend(orient="top"))
    x = alt.X(
        "dimension:Q",
        title="dimension of the vector",
        scale=alt.Scale(nice=False, padding=8),
        axis=alt.Axis(tickMinStep=1),
    )
    tips = ["dimension:Q", alt.Tooltip("before:Q", format=".4f"), alt.Tooltip("after:Q", format=".4f")]
    before = base.transform_calculate(when="'before'").mark_bar(size=7)
    after = base.transform_calculate(when="'after'").mark_bar(size=2.5)
    return before.encode(
        x=x, y=alt.Y("before:Q", title="value", axis=numbers()), color=colour, tooltip=tips
    ) + after.encode(x=x, y="after:Q", color=colour, tooltip=tips)


@spec
def per_token(base: alt.Chart, every: bool, title: str, top: float | None = None, percent: bool = False) -> Drawn:
    """A bar per token: label (word), word, value."""
    scale = alt.Scale() if top is None else alt.Scale(domain=[min(0, -top), top] if top < 0 else [0, top])
    format = ".1%" if percent else ".4f"
    return base.mark_bar(color=BASELINE).encode(
        x=words(alt.X, "label", None, every),
        y=alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format="%") if percent else numbers()),
        tooltip=[alt.Tooltip("word:N"), alt.Tooltip("value:Q", title=title, format=format)],
    )


@spec
def per_head(base: alt.Chart, title: str, reference: str, percent: bool = False) -> Drawn:
    """A bar per head: head, value; reference: the line it is compared with."""
    format = ".2%" if percent else ".4f"
    x = alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0))
    axis = alt.Axis(format="%") if percent else numbers()
    bars = base.mark_bar(color=BASELINE).encode(
        x=x,
        y=alt.Y("value:Q", title=title, axis=axis),
        tooltip=["head:O", alt.Tooltip("value:Q", title=title, format=format)],
    )
    line = base.mark_tick(color=VARIANTS[0], thickness=3).encode(
        x=x, y="reference:Q", tooltip=[alt.Tooltip("reference:Q", title=reference, format=format)]
    )
    return bars + line


@spec
def shares(base: alt.Chart, title: str) -> Drawn:
    """One bar per thing compared: name, value (a share), kind; in the order in which they come."""
    return base.mark_bar().encode(
        y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=220)),
        x=alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        yOffset=alt.YOffset("kind:N", sort=None),
        color=alt.Color("kind:N", title=None, sort=None, legend=alt.Legend(orient="top"), scale=alt.Scale(range=[BASELINE, VARIANTS[3], NEUTRAL])),
        tooltip=["name:N", "kind:N", alt.Tooltip("value:Q", title="share", format=".2%")],
    )  # fmt: skip


@spec
def order(base: alt.Chart) -> Drawn:
    """How far the two word orders differ: label (encoding), seen (mask in words), value."""
    return base.mark_bar().encode(
        y=alt.Y("label:N", title=None, sort=None),
        x=alt.X("value:Q", title="largest difference in any number of any word's output", axis=numbers()),
        yOffset=alt.YOffset("seen:N", sort=None),
        color=alt.Color("seen:N", title=None, sort=None, legend=alt.Legend(orient="top"), scale=alt.Scale(range=[BASELINE, VARIANTS[3]])),
        tooltip=["label:N", "seen:N", alt.Tooltip("value:Q", title="difference", format=".2e")],
    )  # fmt: skip


@spec
def amounts(base: alt.Chart, title: str) -> Drawn:
    """Amounts by part: part (with the amount in words), value."""
    return base.mark_bar(color=BASELINE).encode(
        y=alt.Y("part:N", title=None, sort=None, axis=alt.Axis(labelLimit=240)),
        x=alt.X("value:Q", title=title, axis=alt.Axis(format="~s", tickCount=5)),
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


@spec
def arcs(base: alt.Chart) -> Drawn:
    """Marked pairs as arcs over the sentence: pair, x, y, order along the arc; and the words: x, word."""
    arc = base.transform_filter("datum.word == null").mark_line(color=VARIANTS[0], strokeWidth=2).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(padding=28)), y=alt.Y("y:Q", axis=None), detail="pair:N", order="step:Q",
        tooltip=[alt.Tooltip("pair:N", title="depends")],
    )  # fmt: skip
    text = base.transform_filter("datum.word != null").mark_text(
        angle=310, align="right", baseline="middle", dy=6, color=NEUTRAL, fontSize=12
    )
    return arc + text.encode(x="x:Q", y="y:Q", text="word:N")


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
