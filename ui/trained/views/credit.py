import streamlit as st
import torch

from core.experiments.trained import contributions as experiment
from core.figures.charts import trained as charts
from core.measure.intervals import apart
from core.settings.wording import head_name, number
from ui.kit.page import capital, caption, chart, figure
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import sure
from ui.trained.context import view

SHOWN = 16


@view
def credit(context):
    """Who decides: what every head and sub-layer adds to the answer; it all adds up."""
    key = (context.bench.key, "credit", context.cuts, context.mode)
    table = context.opened.results.get(
        key, lambda: (experiment.table(context.bench, context.cuts, context.mode), 1 << 16)
    )
    q = context.bench.questions
    after_cap = context.effect.values["difference"].mean().item()
    cap = context.opened.config.logit_cap
    measured = f", before the soft-cap of {cap:g} (after it {number(after_cap)})" if cap else ""
    order = table.reindex(table.value.abs().sort_values(ascending=False).index)
    first = order.iloc[0]
    figure(
        f"Who makes the right word win? {capital(context.told)}",
        sure(
            f"Logit difference right − wrong ({q.asks}), {number(table.value.sum())} on average{measured}, split by who wrote it to the "
            f"stream: {first['name']} adds {number(first.value)}{f' ({number(100 * first.share)} % of it)' if 0 < first.share <= 1 else ''}. All parts add up to {number(table.value.sum())}.",
            *table.value,
        ),
        f"Over {q.what}",
    )
    left, right = st.columns([1, 1], gap="medium")
    with left:
        rows = order.head(SHOWN).assign(
            change=lambda t: t.value, clear=lambda t: [apart(*ends) for ends in zip(t.low, t.high)]
        )
        chart(
            charts.ranking("adds to the logit difference"),
            rows,
            "What each part adds to the logit difference.",
            height=max(200, 26 * len(rows)),
        )
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
