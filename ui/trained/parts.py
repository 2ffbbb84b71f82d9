"""Views that compare all components: effects of ablation, and contributions to logits."""

import math

import pandas as pd
import streamlit as st
import torch

from core.experiments.trained import contributions as experiment
from core.experiments.trained import knockout, tables
from core.experiments.training.sentences import format_points
from core.figures.charts import trained as charts
from core.measure.intervals import excludes_zero
from core.model.knockout import Cut, list_cuts, mode
from core.settings.wording import capitalise, count, format_aligned, head_name, lower_first, number
from core.train.budget import format_duration, max_seconds
from ui.kit.page import caption, chart, figure, literal
from ui.kit.panel.control import tabs
from ui.kit.panel.panel import draw_bar
from ui.kit.store import is_movable
from ui.kit.takeaway import offer_table
from ui.pictures.heatmaps import draw_heatmaps
from ui.shared.base import LOST, finite_sentence
from ui.trained.context import TrainedContext, ablate_part, view

# bars of what each part adds, and of what is lost without it
SHOWN = 16
RANKED = 14
STARTED = "sweep_start"
ASKED = 10.0  # seconds from which on a sweep waits for a click


@view.register(
    "credit",
    label="Contributions",
    help="direct logit attribution: what each head and sub-layer adds to the logit difference.",
)
def credit(context: TrainedContext):
    """Draw each component's part of the mean logit difference over the held-out questions."""
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
    total = number(table.value.sum())
    share = f" ({number(100 * first.share)} % of the total)" if 0 < first.share <= 1 else ""
    sentence = (
        f"The logit difference, correct − wrong token ({q.asks}), is {total} on average{measured}."
        f" It is the sum of all contributions; the largest is {first['name']} with"
        f" {number(first.value)}{share}."
    )
    figure(
        f"Direct logit attribution: {context.model_name}",
        finite_sentence(sentence, *table.value),
        capitalise(q.what),
    )
    left, right = st.columns([1, 1], gap="medium")
    with left:
        rows = order.head(SHOWN).assign(change=lambda table: table.value)
        _draw_ranking(
            "contribution to the logit difference",
            rows,
            "Contribution of each component to the logit difference.",
        )
    with right:
        _draw_head_contributions(context, table)
        caption(
            "The final norm's scale is frozen (direct logit attribution, Elhage et al., 2021)."
            " Indirect effects are attributed to later components, so ablation effects can differ"
            " (see the view “All components”)."
        )


def _draw_head_contributions(context: TrainedContext, table):
    """Draw a heat map of each head's contribution to the logit difference."""
    c = context.opened.config
    heads = table[table.kind == "head"]
    if heads.empty:
        return
    cells = torch.tensor(heads.value.to_numpy()).view(1, c.n_layers, c.n_heads)
    draw_heatmaps(
        "credit_map",
        cells,
        [f"layer {n + 1}" for n in range(c.n_layers)],
        [f"head {n + 1}" for n in range(c.n_heads)],
        diverging=True,
        tips=[[head_name(layer, head) for head in range(c.n_heads)] for layer in range(c.n_layers)],
        quantity="contribution to the logit difference",
        alt="Contribution of each head to the logit difference.",
        square=False,
        numbers="brief",
        height=120 + 44 * c.n_layers if c.n_layers <= 4 else 420,
    )


@view.register(
    "sweep",
    label="All components",
    help="each head and sub-layer removed in turn, ranked by effect.",
)
def sweep(context: TrainedContext):
    """Draw the effect of ablating each component in turn, as a map and ranked."""
    draw_bar("lens", [tabs("Ranked by", knockout.effect, "rank_by")])
    ranked = _measure_sweep(context)
    if ranked is None:
        return
    ranked_by = knockout.effect[context.look.rank_by]
    unit = "percentage points" if ranked_by.share else ranked_by.unit
    unit = f" ({unit})" if unit else ""
    rows = ranked[ranked.effect == context.look.rank_by]
    rows = rows.assign(
        **{name: rows[name] * (100 if ranked_by.share else 1) for name in ("change", "low", "high")}
    )
    rows = rows.sort_values("change", ascending=not ranked_by.distance)  # the greatest loss first
    left, right = st.columns([1, 1], gap="medium")
    with left:
        over = f"{mode.label(context.look.mode)} ablation, {context.bench.questions.what}"
        figure("Effect of ablating each component", _describe_ranking(ranked), over)
        c = context.opened.config
        columns = [Cut(0, "head", n) for n in range(c.n_heads) if c.attention]
        has_part = {"attention": c.attention, "ffn": c.ffn, "layer": c.attention and c.ffn}
        columns += [Cut(0, part) for part in has_part if has_part[part]]
        names = [
            f"head {cut.head + 1}" if cut.part == "head" else cut.part.replace("ffn", "FFN")
            for cut in columns
        ]
        by = dict(zip(rows.cut, rows.change))
        make_cut = lambda layer, cut: Cut(layer, cut.part, cut.head)  # noqa: E731
        cells = [
            [by.get(make_cut(layer, cut).write(), math.nan) for cut in columns]
            for layer in range(c.n_layers)
        ]
        layers = [f"layer {n + 1}" for n in range(c.n_layers)]
        out = [
            [cut.layer, columns.index(make_cut(0, cut))]
            for cut in context.cuts
            if make_cut(0, cut) in columns
        ]
        draw_heatmaps(
            "sweep_map",
            torch.tensor([cells]),
            layers,
            names,
            quantity=f"change in {knockout.effect.label(context.look.rank_by).lower()}{unit}",
            diverging=True,
            numbers="brief",
            tips=[[make_cut(layer, cut).name for cut in columns] for layer in range(c.n_layers)],
            alt="Effect of removing each head and sub-layer.",
            square=False,
            height=120 + 44 * c.n_layers if c.n_layers <= 4 else 460,
            marks=out,
            on_pick=lambda panel, row, column: ablate_part(
                make_cut(row, columns[column]).write(), taken="knockout"
            ),
        )
    with right:
        name = lower_first(knockout.effect.label(context.look.rank_by))
        sentence = "Mean change with 95 % CI (Holm-corrected). Faded: not significant."
        figure(f"Ranked by {name}", sentence)
        _draw_ranking(f"change in {name}{unit}", rows.head(RANKED), f"Components ranked by {name}.")
    offer_table("all components, all metrics", lambda: ranked)


def _measure_sweep(context: TrainedContext) -> pd.DataFrame | None:
    """Return the sweep's table, run or cached; if slow, draw Start or a refusal and return None."""
    key = (context.bench.key, "sweep", context.look.mode)
    seconds = context.bench.sweep_seconds
    if context.opened.results.peek(key) is None and seconds > ASKED:
        n_cuts = (
            f"{len(list_cuts(context.opened.config)):,} ablations on {context.bench.questions.what}"
        )
        if seconds > max_seconds():
            takes = (
                f"{n_cuts} would take about {format_duration(seconds)} here; at most"
                f" {format_duration(max_seconds())} are allowed "
            )
            advice = "(set by ABLATION_MAX_SECONDS). Choose fewer sentences or a smaller model."
            st.info(literal(takes + advice), icon=":material/timer:")
            return None
        if not st.session_state.get(STARTED):
            st.info(
                f"{n_cuts}: about {format_duration(seconds)} on this machine.",
                icon=":material/timer:",
            )
            st.button("Measure all components", key=STARTED, type="primary")
            return None

    def make():
        return (
            tables.rank_effects(
                list(context.bench.sweep(context.look.mode)), context.bench.baseline
            ),
            1 << 16,
        )

    return context.opened.results.get(key, make)


def _describe_ranking(ranked) -> str:
    """Describe the head with the largest significant loss of logit difference, or else gain."""
    click = " Click a cell to remove that component." * is_movable("out")
    rows = ranked[ranked.effect == "difference"]
    heads = rows[rows.part == "head"].sort_values("change")
    if heads.empty:
        return "This model has no heads."
    if not heads.change.apply(math.isfinite).all():
        return LOST
    idle = [line for line in heads.itertuples() if not excludes_zero(line.low, line.high)]
    if len(idle) == len(heads):
        return f"No head has a significant effect.{click}"
    losses = heads[heads.high < 0]
    gains = heads[heads.low > 0]
    first = losses.iloc[0] if len(losses) else gains.iloc[-1]
    right = ranked[(ranked.cut == first.cut) & (ranked.effect == "accuracy")].iloc[0]
    change, low, high = format_aligned([first.change, first.low, first.high])
    label = (
        "Largest drop"
        if len(losses)
        else "Removing any single head does no significant harm; largest gain"
    )
    sentence = (
        f"{label}: {first['name']}, {change} in logit difference "
        f"(95 % CI {low} to {high}, Holm-corrected) and {format_points(right.change)} points of"
        " accuracy."
    )
    if idle:
        sentence += (
            f" {len(idle)} of {count(len(heads), 'head')} {'has' if len(idle) == 1 else 'have'} no"
            " significant effect."
        )
    return sentence + click


def _draw_ranking(axis_title: str, rows, alt: str):
    """Draw a bar for each row (a component) of a table, faded if it is not significant."""
    rows = rows.assign(clear=[excludes_zero(*ends) for ends in zip(rows.low, rows.high)])
    chart(charts.ranking(axis_title), rows, alt, height=max(200, 26 * len(rows)))
