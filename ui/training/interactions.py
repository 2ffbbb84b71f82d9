"""View of interactions between ablations: leave one out, add one back, pairs."""

import math

import pandas as pd
import streamlit as st

from core.experiments.training import results, sentences
from core.measure.intervals import LEVEL
from ui.kit.page import caption, figure, table
from ui.shared.trainings import format_p, format_spans
from ui.training.context import TrainingContext, view

NOTHING = "No results yet: all models need at least a few steps."


@view.register(
    "together",
    label="Interactions",
    help="leave one out, add one back, and interactions between ablations.",
)
def draw_interactions_view(context: TrainingContext):
    """Draw leave-one-out and add-one-back effects and pair interactions, or say how to get them."""
    plan = context.trainings.plan
    runs = context.trainings.runs
    if len(plan.parts) < 2:
        st.info("Interactions need at least two ablations.", icon=":material/add:")
        return
    if not plan.trial.together:
        st.info(
            "Only single variants were trained. Switch on **All combinations** in the sidebar under"
            " Comparison and start again.",
            icon=":material/join_inner:",
        )
        return
    several = len(plan.seeds) > 1
    nothing = sentences.describe_divergence(runs, plan).strip() or NOTHING
    draw_effects(results.effects(runs, plan), several, nothing)
    draw_interactions(results.interactions(runs, plan), several, nothing)


def draw_effects(effects, has_several_seeds: bool, text_if_none: str):
    """Draw leave-one-out and add-one-back effects, headed by `text_if_none` if none is measured."""
    figure("Leave-one-out and add-one-back", describe_largest_effect(effects, text_if_none))
    rows = pd.DataFrame(
        {
            "removed": effects.part,
            "leave one out: points lost when only this one is removed": format_spans(
                effects.removed, effects.removed_low, effects.removed_high, has_several_seeds
            ),
            "add one back: points gained when only this one is restored": format_spans(
                effects.alone, effects.alone_low, effects.alone_high, has_several_seeds
            ),
        }
    )
    table(rows, "Leave one out, add one back.", exported=effects, width="stretch")


def describe_largest_effect(effects, text_if_none: str = NOTHING) -> str:
    """Return a sentence on the component whose removal costs most, a significant one if any.

    Args:
        effects: Table of results.effects.
        text_if_none: Text where no two models can be compared.
    """
    finite = effects[effects.removed.notna()]
    if finite.empty:
        return text_if_none
    largest = finite.loc[finite.removed.idxmax()]
    if math.isnan(largest.removed_p):
        return (
            f"Largest single effect: {largest.part}, {sentences.format_points(largest.removed)}"
            " points. Too few seeds for a verdict."
        )
    certain = finite[(finite.removed_p < 1 - LEVEL) & (finite.removed > 0)]
    if certain.empty and largest.removed <= 0:
        return "No single ablation lowers accuracy on average."
    if certain.empty:
        return (
            f"No single effect is significant; largest: {largest.part},"
            f" {sentences.format_points(largest.removed)} points."
        )
    largest = certain.loc[certain.removed.idxmax()]
    return (
        f"Largest significant single effect: {largest.part},"
        f" {sentences.format_points(largest.removed)} points."
    )


def draw_interactions(interaction, has_several_seeds: bool, text_if_none: str):
    """Draw the table of pairwise interactions, headed by `text_if_none` if none is measured."""
    figure("Interactions", describe_pairs(interaction, text_if_none))
    rows = pd.DataFrame(
        {
            "first": interaction.one,
            "second": interaction.other,
            "accuracy with both": interaction.neither.map(sentences.format_percent),
            "first removed": interaction["first"].map(sentences.format_percent),
            "second removed": interaction.second.map(sentences.format_percent),
            "both removed": interaction.both.map(sentences.format_percent),
            "interaction, points": format_spans(
                interaction.interaction, interaction.low, interaction.high, has_several_seeds
            ),
            "p (Holm)": [format_p(r.p, r.low, r.high) for r in interaction.itertuples()],
        }
    )
    table(
        rows, "2 × 2: interaction of every pair of variants.", exported=interaction, width="stretch"
    )
    caption(
        "Interaction: accuracy with both removed − first removed − second removed + neither"
        " removed. 0 = additive. Above 0 the effects overlap, below 0 they reinforce each other."
        " Intervals and p are Holm-corrected."
    )


def describe_pairs(interaction, text_if_none: str = NOTHING) -> str:
    """Return a sentence on the pair with the largest interaction, among significant ones if any.

    Args:
        interaction: Table of results.interactions.
        text_if_none: Text where no pair can be compared.
    """
    finite = interaction[interaction.interaction.notna()]
    if finite.empty:
        return text_if_none
    if not finite.interaction.any():
        return "Effects are additive."
    largest = finite.loc[finite.interaction.abs().idxmax()]
    if math.isnan(largest.p):
        return f"{_describe_pair(largest)} Too few seeds for a verdict."
    certain = finite[finite.p < 1 - LEVEL]
    if certain.empty:
        size = sentences.format_points(abs(largest.interaction))
        return (
            f"No interaction is significant; largest: {largest.one} and {largest.other}, {size}"
            " points."
        )
    return _describe_pair(certain.loc[certain.interaction.abs().idxmax()])


def _describe_pair(pair) -> str:
    """Return a sentence on one pair's interaction."""
    how = "overlap" if pair.interaction > 0 else "reinforce each other"
    return (
        f"{pair.one} and {pair.other}: the effects {how}, by"
        f" {sentences.format_points(abs(pair.interaction))} points."
    )
