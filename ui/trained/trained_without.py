"""View of models trained without a component, compared with removing it after training."""

import math

import pandas as pd
import streamlit as st

from core.checkpoints.family import SEEDS, WHOLE, label, members
from core.experiments.trained import comparison
from core.figures.charts import trained as charts
from core.settings.wording import capitalise, count
from ui.kit.page import caption, chart, figure
from ui.kit.panel.control import Control, choice, control_of, tabs
from ui.kit.panel.panel import draw_bar
from ui.kit.store import change
from ui.shared import models
from ui.trained.context import TrainedContext, view

NEAR = 0.065  # of an axis from 0 to 1: names that stand closer would lie on each other


@view.register(
    "without",
    label="Trained without",
    help="models trained without each component, compared with removing it after training.",
)
def draw_models_without(context: TrainedContext):
    """Draw the chosen metric of models trained without a component, and with it removed after."""
    split = comparison.compared[context.look.compared].split
    part = [control_of(context.look, "part")] if split else []
    draw_bar(
        "lens", [tabs("Compared", comparison.compared, "compared"), *part, *_model_choice(context)]
    )
    if split:
        _draw_by_distance(context.look.part)
    else:
        measure = comparison.compared[context.look.compared]
        rows = _summary(context.look.compared)
        figure(
            "Needed during training, or only afterwards?",
            comparison.describe_summary(rows, context.look.compared),
            f"{comparison.compared.help(context.look.compared).capitalize()} Points show the"
            f" {'geometric ' * measure.logarithmic}mean over seeds. Lines show the 95 % CI"
            " (Holm-corrected) of the difference from the baseline (dashed). If a line reaches the"
            " baseline, the difference is not significant",
            [context.look.compared],
        )
        baseline = float(rows[(rows.member == WHOLE)].value.iloc[0])
        decades = math.ceil(math.log10(rows.value.max())) if measure.logarithmic else 0
        alt = "Accuracy when each change is made before training, and after training."
        spec = charts.with_and_without(measure.axis, decades)
        height = 34 * rows.label.nunique() + 60
        chart(
            spec,
            rows.assign(reference=baseline, how=rows.how.map(comparison.SHOWN)),
            alt,
            height=height,
        )
    dashed = "" if split else " Dashed: baseline."
    caption(
        "“Changed before training”: each changed model is trained from scratch, with the same data"
        " order and, where shapes match, the same initial weights. “Changed after training”: the"
        " change is made to the trained baseline; this is not possible where weights have different"
        f" shapes.{dashed}"
    )


def _draw_by_distance(member: str):
    """Draw accuracy by subject-verb distance: baseline, trained without it, removed after.

    `member` is as in family.members(), such as "norm-none".
    """
    rows = _distances(member)
    merged = comparison.merge_distances(_read_comparison())
    figure(
        f"{capitalise(label(member).replace('− ', 'without '))}: accuracy by distance between"
        " subject and verb",
        comparison.describe_by_distance(rows),
        f"{comparison.compared.help('distance').capitalize()} Points show the mean over"
        f" {count(int(rows.seeds.min()), 'seed')}; each distance has {rows.n.min()} to"
        f" {rows.n.max()} sentences{_describe_merged(merged)}. Bars show the 95 % CI"
        " (Holm-corrected) of the difference from the baseline. If a bar touches the baseline, the"
        " difference is not significant",
        ["accuracy"],
    )
    rows = rows.assign(line=rows.line.replace(comparison.SHOWN))
    names = tuple(dict.fromkeys(rows.line))
    last = rows[rows.distance == rows.distance.iloc[-1]].sort_values(
        "value", ascending=False, kind="stable"
    )
    baseline_at = {}
    above = math.inf
    for line in last.itertuples():
        above = baseline_at[line.Index] = min(line.value, above - NEAR)
    drawn = rows.assign(
        end=rows.line.where(rows.index.isin(baseline_at), ""),
        at=[baseline_at.get(n, 0.0) for n in rows.index],
    )
    chart(
        charts.by_distance(names),
        drawn,
        "Accuracy by the number of words between subject and verb.",
        height=330,
    )


def _describe_merged(bins: list[tuple[str, list[str]]]) -> str:
    """Return " (sparse bins merged: 6–8, …)" from (name, distances) of all bins; "" for none."""
    together = [name for name, distances in bins if len(distances) > 1]
    return f" (sparse bins merged: {', '.join(together)})" if together else ""


@st.cache_data
def _read_comparison() -> pd.DataFrame:
    """Return the table of the stored comparison of the family; cached."""
    return comparison.read()


@st.cache_data
def _distances(member: str) -> pd.DataFrame:
    """Return a table of accuracy by distance for one removed component; cached."""
    return comparison.compare_by_distance(_read_comparison(), member)


@st.cache_data
def _summary(metric_key: str) -> pd.DataFrame:
    """Return comparison.summary: a table of one metric's means for every component; cached."""
    return comparison.summary(_read_comparison(), metric_key)


def _model_choice(context: TrainedContext) -> list[Control]:
    """Return the control that opens one of these models; [] if none is shipped."""
    family_members = models.family_models()
    offered = [f"{models.FAMILY}{member}.{seed}" for member in members() for seed in SEEDS]
    offered = [name for name in offered if name in family_members]
    if not offered:
        return []
    now = context.look.model if context.look.model in offered else offered[0]
    words = [
        f"Open: {label(member)}, seed {seed}" for member, seed in map(family_members.get, offered)
    ]
    open_model = lambda name: change(model=name, out="", taken="attention")  # noqa: E731
    return [choice("Open a model", "open_member", now, offered, words, on_select=open_model)]
