import math

import streamlit as st
import torch

from core import charts
from core.experiments import knockout as experiment
from core.experiments.findings import number
from core.experiments.training import points
from core.lesion import Cut, cuts, mode
from core.seeds import LEVEL
from core.train.budget import duration
from ui.heatmaps import heatmaps
from ui.model.base import take_out, views
from ui.model.choose import LARGE
from ui.page import chart, figure
from ui.takeaway import note

SHARES = ("accuracy", "probability")
SHOWN = 14  # bars
STARTED = "sweep_start"


@views
def sweep(looked, look):
    """Every part: each head and each sub-layer taken out by itself, ranked."""
    st.segmented_control(
        "Ranked by", list(experiment.effect), key="rank_by", format_func=experiment.effect.label, required=True,
        label_visibility="collapsed", help="\n".join(f"- **{experiment.effect.label(n)}**: {experiment.effect.help(n)}" for n in experiment.effect),
    )  # fmt: skip
    ranked = _measured(looked)
    if ranked is None:
        return
    share = look.rank_by in SHARES
    unit = " (percentage points)" if share else " (nats)" if look.rank_by == "divergence" else ""
    rows = ranked[ranked.effect == look.rank_by]
    rows = rows.assign(**{name: rows[name] * (100 if share else 1) for name in ("change", "low", "high")})
    rows = rows.sort_values("change", ascending=look.rank_by != "divergence")  # the greatest loss first
    left, right = st.columns([1, 1], gap="medium")
    with left:
        figure(
            "What does the model lose without it?",
            _told(looked, ranked, look.rank_by),
            f"Over {looked.bench.questions.what}, in its place: {mode.label(looked.mode).lower()}",
        )
        _map(looked, rows, look, unit)
    with right:
        _bars(rows, look, unit)
    note("every part, every effect", lambda: ranked)


def _measured(looked):
    """The whole sweep, kept with the model; None while a model for which it takes long waits for the click that starts it."""
    key, every = (looked.bench, "sweep", looked.mode), cuts(looked.opened.config)
    large = looked.opened.parameters > LARGE
    if large and looked.opened.results.peek(key) is None and not st.session_state.get(STARTED):
        # a part costs the passes through the layers above it: half of all, on average
        seconds = len(every) * looked.bench.seconds / 2
        st.info(
            f"{len(every)} parts over {looked.bench.questions.what}: about {duration(seconds)} on this machine.",
            icon=":material/timer:",
        )
        st.button("Measure every part", key=STARTED, type="primary")
        return None

    def make():
        bar, made = st.empty(), []
        for n, cut in enumerate(every):
            made.append(looked.bench.effect((cut,), looked.mode))
            if large:
                bar.progress((n + 1) / len(every), text=f"{cut.name}: {n + 1} of {len(every)} parts")
        bar.empty()
        return experiment.ranked(made, looked.bench.baseline), 1 << 16

    return looked.opened.results.get(key, make)


def _told(looked, ranked, by) -> str:
    rows = ranked[ranked.effect == "difference"]
    heads = rows[rows.part == "head"].sort_values("change")
    if heads.empty:
        return "There are no heads in it."
    first = heads.iloc[0]
    right = ranked[(ranked.cut == first.cut) & (ranked.effect == "accuracy")].iloc[0]
    idle = heads[(heads.p >= 0.05) | (heads.change.abs() < 0.01)]
    told = f"Of the heads, {first['name']} matters most: {number(first.change)} in logit difference, {points(right.change)} points of accuracy without it."
    if len(idle):
        told += f" Without {len(idle)} of the {len(heads)} heads the logit difference stays as it is."
    return told + " Click a cell to knock it out."


def _map(looked, rows, look, unit):
    """Layer × head, and the sub-layers beside them."""
    c = looked.opened.config
    columns = [Cut(0, "head", n) for n in range(c.n_heads) if c.attention]
    columns += (
        [Cut(0, "attention")] * c.attention + [Cut(0, "ffn")] * c.ffn + [Cut(0, "layer")] * (c.attention and c.ffn)
    )
    names = [f"head {cut.head + 1}" if cut.part == "head" else cut.part.replace("ffn", "FFN") for cut in columns]
    by = dict(zip(rows.cut, rows.change))
    at = lambda layer, cut: Cut(layer, cut.part, cut.head)  # noqa: E731
    cells = torch.tensor(
        [[[by.get(at(layer, cut).write(), math.nan) for cut in columns] for layer in range(c.n_layers)]]
    )
    layers = [f"layer {n + 1}" for n in range(c.n_layers)]
    out = [[cut.layer, columns.index(at(0, cut))] for cut in looked.cuts if at(0, cut) in columns]
    heatmaps(
        "sweep_map", cells, layers, names, what=f"change of {experiment.effect.label(look.rank_by).lower()}{unit}", diverging=True, numbers="brief",
        alt="Effect of taking out each head and sub-layer.", square=False, height=120 + 44 * c.n_layers if c.n_layers <= 4 else 460, marks=out,
        on_pick=lambda panel, row, column: take_out(at(row, columns[column]), taken="knockout"),
    )  # fmt: skip


def _bars(rows, look, unit):
    name = experiment.effect.label(look.rank_by)
    rows = rows.head(SHOWN).assign(clear=lambda table: table.p < 1 - LEVEL)
    figure(
        f"Ranked by {name}",
        "Bars: mean change with its 95 % interval; pale: smaller than noise (p ≥ 0.05, each by itself).",
    )
    chart(
        charts.ranking(f"change of {name}{unit}"),
        rows,
        f"Parts ranked by {name} without them.",
        height=max(200, 26 * len(rows)),
    )
