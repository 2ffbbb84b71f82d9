import math

import pandas as pd
import streamlit as st

from core.experiments.training import results, sentences
from core.measure.intervals import apart
from ui.kit.page import caption, figure, table
from ui.shared.trainings import chance, spans
from ui.training.context import view

NOTHING = "Nothing can be said before all have been trained a little."


@view.register(
    "together",
    label="Together",
    help="what each part is worth alone, what with the others, and whether their losses add up.",
)
def together(context):
    plan, runs = context.trainings.plan, context.trainings.runs
    if len(plan.parts) < 2:
        st.info("Two variants at least can act together: choose another one above.", icon=":material/add:")
        return
    if not plan.trial.together:
        st.info(
            "Only single variants were trained. Switch on **All combinations** in the sidebar under Comparison, and start again.",
            icon=":material/join_inner:",
        )
        return
    several = len(plan.seeds) > 1
    nothing = sentences.lost(runs, plan).strip() or NOTHING
    worth(results.effects(runs, plan), several, nothing)
    pairs(results.interactions(runs, plan), several, nothing)


def worth(interaction, several, nothing: str):
    figure("What is each part worth?", worth_said(interaction, nothing))
    rows = pd.DataFrame({
        "taken out": interaction.part,
        "leave one out: points lost when it alone is taken out": spans(interaction.removed, interaction.removed_low, interaction.removed_high, several),
        "add one back: points won when it alone is put back, all others missing": spans(interaction.alone, interaction.alone_low, interaction.alone_high, several),
    })  # fmt: skip
    table(rows, "Leave one out, add one back.", taken=interaction, width="stretch")


def worth_said(interaction, nothing: str = NOTHING) -> str:
    """nothing: what is said where no two models can be compared."""
    known = interaction[interaction.removed.notna()]
    if known.empty:
        return nothing
    most = known.loc[known.removed.idxmax()]
    if math.isnan(most.removed_low):
        return f"Alone, {most.part} costs the most: {sentences.points(most.removed)} points. One seed says nothing about noise."
    certain = known[known.removed_low > 0]
    if certain.empty and most.removed <= 0:
        return "Alone, none of them costs anything on average."
    if certain.empty:
        return f"Alone, no loss can be told from seed noise; the largest is {sentences.points(most.removed)} points, of {most.part}."
    most = certain.loc[certain.removed.idxmax()]
    return f"Alone, {most.part} costs the most of those that can be told from seed noise: {sentences.points(most.removed)} points."


def pairs(interaction, several, nothing: str):
    figure("Do the losses add up?", pairs_said(interaction, nothing))
    rows = pd.DataFrame({
        "first": interaction.one,
        "second": interaction.other,
        "accuracy with both parts": interaction.neither.map(sentences.percent),
        "first taken out": interaction["first"].map(sentences.percent),
        "second taken out": interaction.second.map(sentences.percent),
        "both taken out": interaction.both.map(sentences.percent),
        "interaction, points": spans(interaction.interaction, interaction.low, interaction.high, several),
        "p, corrected (Holm)": [chance(r.p, r.low, r.high) for r in interaction.itertuples()],
    })  # fmt: skip
    table(rows, "2 × 2: interaction of every pair of variants.", taken=interaction, width="stretch")
    caption(
        "Interaction: accuracy with both taken out − first taken out − second taken out + neither. 0: the losses add up. "
        "Above 0: they overlap. Below 0: together they cost more than one by one. Intervals and p are corrected for all pairs, "
        "those above for all parts (Holm)."
    )


def pairs_said(interaction, nothing: str = NOTHING) -> str:
    """nothing: what is said where no pair can be compared."""
    known = interaction[interaction.interaction.notna()]
    if known.empty:
        return nothing
    if not known.interaction.any():
        return "The losses add up."
    most = known.loc[known.interaction.abs().idxmax()]
    if math.isnan(most.low):
        return f"{_they(most)} One seed says nothing about noise."
    certain = known[[apart(*ends) for ends in zip(known.low, known.high)]]
    if certain.empty:
        size = sentences.points(abs(most.interaction))
        return (
            f"No interaction can be told from seed noise; the largest is {size} points, of {most.one} and {most.other}."
        )
    return _they(certain.loc[certain.interaction.abs().idxmax()])


def _they(pair) -> str:
    how = "overlap" if pair.interaction > 0 else "make each other worse"
    return f"{pair.one} and {pair.other}: the losses {how}, by {sentences.points(abs(pair.interaction))} points."
