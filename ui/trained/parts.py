"""Views that compare all parts: what is lost without each, and what each adds to the answer."""

import math

import streamlit as st
import torch

from core.experiments.trained import contributions as experiment
from core.experiments.trained import knockout, tables
from core.experiments.training.sentences import points
from core.figures.charts import trained as charts
from core.measure.intervals import apart
from core.model.knockout import Cut, cuts, mode
from core.settings.wording import count, head_name, in_sentence, number
from core.train.budget import duration, max_seconds
from ui.kit.page import capital, caption, chart, figure, literal
from ui.kit.panel.control import tabs
from ui.kit.panel.panel import bar
from ui.kit.store import is_moved
from ui.kit.takeaway import note
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import LOST, sure
from ui.trained.context import take_out, view

SHOWN, RANKED = 16, 14  # bars of what each part adds, and of what is lost without it
STARTED = "sweep_start"
ASKED = 10.0  # seconds from which on a sweep waits for a click


@view.register("credit", label="Who decides", help="what every head and sub-layer adds to the answer; it all adds up.")
def credit(context):
    key = (context.bench.key, "credit", context.cuts, context.look.mode)
    table = context.opened.results.get(
        key, lambda: (experiment.table(context.bench, context.cuts, context.look.mode), 1 << 16)
    )
    q = context.bench.questions
    after_cap = context.effect.values["difference"].mean().item()
    cap = context.opened.config.logit_cap
    measured = f", before the soft-cap of {cap:g} (after it {number(after_cap)})" if cap else ""
    order = table.reindex(table.value.abs().sort_values(ascending=False).index)
    first = order.iloc[0]
    whole = number(table.value.sum())
    share = f" ({number(100 * first.share)} % of it)" if 0 < first.share <= 1 else ""
    said = (
        f"Logit difference right − wrong ({q.asks}), {whole} on average{measured}, split by who wrote it to the "
        f"stream: {first['name']} adds {number(first.value)}{share}. All parts add up to {whole}."
    )
    figure(f"Who makes the right word win? {capital(context.told)}", sure(said, *table.value), f"Over {q.what}")
    left, right = st.columns([1, 1], gap="medium")
    with left:
        rows = order.head(SHOWN).assign(change=lambda table: table.value)
        _ranking("adds to the logit difference", rows, "What each part adds to the logit difference.")
    with right:
        _heads(context, table)
        caption(
            "The last norm keeps the scale that it had for each word. So what each part wrote can be followed to the scores by "
            "itself (direct logit attribution, Elhage et al., 2021). What a part does by way of later parts counts for those. So "
            "what is lost without it (Every part) may be far more, or less, than what it adds itself."
        )  # fmt: skip


def _heads(context, table):
    c = context.opened.config
    heads = table[table.kind == "head"]
    if heads.empty:
        return
    cells = torch.tensor(heads.value.to_numpy()).view(1, c.n_layers, c.n_heads)
    heatmaps(
        "credit_map", cells, [f"layer {n + 1}" for n in range(c.n_layers)], [f"head {n + 1}" for n in range(c.n_heads)], diverging=True,
        tips=[[head_name(layer, head) for head in range(c.n_heads)] for layer in range(c.n_layers)],
        what="adds to the logit difference", alt="What each head adds to the logit difference.", square=False, numbers="brief",
        height=120 + 44 * c.n_layers if c.n_layers <= 4 else 420,
    )  # fmt: skip


@view.register("sweep", label="Every part", help="each head and each sub-layer taken out by itself, ranked.")
def sweep(context):
    bar("lens", [tabs("Ranked by", knockout.effect, "rank_by")])
    ranked = _measured(context)
    if ranked is None:
        return
    ranked_by = knockout.effect[context.look.rank_by]
    unit = "percentage points" if ranked_by.share else ranked_by.unit
    unit = f" ({unit})" if unit else ""
    rows = ranked[ranked.effect == context.look.rank_by]
    rows = rows.assign(**{name: rows[name] * (100 if ranked_by.share else 1) for name in ("change", "low", "high")})
    rows = rows.sort_values("change", ascending=not ranked_by.distance)  # the greatest loss first
    left, right = st.columns([1, 1], gap="medium")
    with left:
        over = f"Over {context.bench.questions.what}, in its place: {mode.label(context.look.mode).lower()}"
        figure("What does the model lose without it?", _told(ranked), over)
        c = context.opened.config
        columns = [Cut(0, "head", n) for n in range(c.n_heads) if c.attention]
        there = {"attention": c.attention, "ffn": c.ffn, "layer": c.attention and c.ffn}
        columns += [Cut(0, part) for part in there if there[part]]
        names = [f"head {cut.head + 1}" if cut.part == "head" else cut.part.replace("ffn", "FFN") for cut in columns]
        by = dict(zip(rows.cut, rows.change))
        at = lambda layer, cut: Cut(layer, cut.part, cut.head)  # noqa: E731
        cells = [[by.get(at(layer, cut).write(), math.nan) for cut in columns] for layer in range(c.n_layers)]
        layers = [f"layer {n + 1}" for n in range(c.n_layers)]
        out = [[cut.layer, columns.index(at(0, cut))] for cut in context.cuts if at(0, cut) in columns]
        heatmaps(
            "sweep_map", torch.tensor([cells]), layers, names, what=f"change of {knockout.effect.label(context.look.rank_by).lower()}{unit}", diverging=True, numbers="brief",
            tips=[[at(layer, cut).name for cut in columns] for layer in range(c.n_layers)],
            alt="Effect of taking out each head and sub-layer.", square=False, height=120 + 44 * c.n_layers if c.n_layers <= 4 else 460, marks=out,
            on_pick=lambda panel, row, column: take_out(at(row, columns[column]).write(), taken="knockout"),
        )  # fmt: skip
    with right:
        name = in_sentence(knockout.effect.label(context.look.rank_by))
        said = "Bars: mean change with its 95 % interval, corrected for all parts (Holm). Pale: not distinguishable from noise."
        figure(f"Ranked by {name}", said)
        _ranking(f"change of {name}{unit}", rows.head(RANKED), f"Parts ranked by {name} without them.")
    note("every part, every effect", lambda: ranked)


def _measured(context):
    """The whole sweep, kept with the model; None where it may not be made, or while one that takes long waits for the click that
    starts it."""
    key, seconds = (context.bench.key, "sweep", context.look.mode), context.bench.sweep_seconds
    if context.opened.results.peek(key) is None and seconds > ASKED:
        many = f"{len(cuts(context.opened.config)):,} parts over {context.bench.questions.what}"
        if seconds > max_seconds():
            takes = f"{many} would take about {duration(seconds)} here; at most {duration(max_seconds())} are allowed "
            advice = "(set by ABLATION_MAX_SECONDS). Choose fewer texts, or a smaller model."
            st.info(literal(takes + advice), icon=":material/timer:")
            return None
        if not st.session_state.get(STARTED):
            st.info(f"{many}: about {duration(seconds)} on this machine.", icon=":material/timer:")
            st.button("Measure every part", key=STARTED, type="primary")
            return None

    def make():
        return tables.ranked(list(context.bench.sweep(context.look.mode)), context.bench.baseline), 1 << 16

    return context.opened.results.get(key, make)


def _told(ranked) -> str:
    click = " Click a cell to knock it out." * is_moved("out")
    rows = ranked[ranked.effect == "difference"]
    heads = rows[rows.part == "head"].sort_values("change")
    if heads.empty:
        return "There are no heads in it."
    if not heads.change.apply(math.isfinite).all():
        return LOST
    idle = [line for line in heads.itertuples() if not apart(line.low, line.high)]
    if len(idle) == len(heads):
        return f"Of no head can it be told from noise that the model loses anything without it.{click}"
    losses, gains = heads[heads.high < 0], heads[heads.low > 0]
    first = losses.iloc[0] if len(losses) else gains.iloc[-1]
    right = ranked[(ranked.cut == first.cut) & (ranked.effect == "accuracy")].iloc[0]
    does = "loses most" if len(losses) else "loses without no head, and gains most"
    sentence = (
        f"Of the heads, the model {does} without {first['name']}: {number(first.change)} in logit difference "
        f"({number(first.low)} to {number(first.high)}), {points(right.change)} points of accuracy."
    )
    if idle:
        sentence += f" Of {len(idle)} of the {count(len(heads), 'head')} it cannot be told from noise whether the logit difference changes without them."
    return sentence + click


def _ranking(axis: str, rows, alt: str):
    """Draw a bar for every part, pale where its interval holds 0."""
    rows = rows.assign(clear=[apart(*ends) for ends in zip(rows.low, rows.high)])
    chart(charts.ranking(axis), rows, alt, height=max(200, 26 * len(rows)))
