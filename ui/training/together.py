import math

import pandas as pd
import streamlit as st

from core.experiments import training as results
from ui.page import figure, table
from ui.takeaway import note
from ui.training.base import views
from ui.training.learning import span


@views
def together(running, look):
    """Together: what each part is worth alone, what with the others, and whether their losses add up."""
    plan = running.plan
    singles = [arm for arm in plan.arms if arm.place]
    if len(singles) < 2:
        st.info("Two variants at least can act together: choose another one above.", icon=":material/add:")
        return
    if not plan.trial.together:
        st.info(
            "Only single variants were trained. Switch on **All combinations** in the sidebar under Comparison, and start again.",
            icon=":material/join_inner:",
        )
        return
    several = len(plan.seeds) > 1
    worth(results.effects(running.runs, plan), several)
    pairs(results.interactions(running.runs, plan), several)


def worth(made, several):
    note("leave one out, add one back", lambda: made)
    figure("What is each part worth?", worth_said(made))
    rows = pd.DataFrame({
        "taken out": made.part,
        "leave one out: points lost when it alone is taken out": [span(r.removed, r.removed_low, r.removed_high, several) for r in made.itertuples()],
        "add one back: points won when it alone is put back, all others missing": [span(r.alone, r.alone_low, r.alone_high, several) for r in made.itertuples()],
    })  # fmt: skip
    table(rows, "Leave one out, add one back.", width="stretch")


def worth_said(made) -> str:
    known = made[made.removed.notna()]
    if known.empty:
        return "Nothing can be said before all have been trained a little."
    most = known.loc[known.removed.idxmax()]
    if most.removed <= 0:
        return "Alone, none of them costs anything."
    return (
        f"Alone, {most.part} costs the most: {results.points(most.removed)} points.{noise(most.removed_p, len(known))}"
    )


def noise(p: float, of: int) -> str:
    """Whether the largest of so many differences is one; see core.experiments.training.told()."""
    if math.isnan(p):
        return " One seed says nothing about noise."
    return " That is smaller than seed noise." if p * of >= 0.05 else ""


def pairs(made, several):
    note("interactions", lambda: made)
    figure("Do the losses add up?", pairs_said(made))
    rows = pd.DataFrame({
        "first": made.one,
        "second": made.other,
        "accuracy with both parts": made.neither.map(results.percent),
        "first taken out": made["first"].map(results.percent),
        "second taken out": made.second.map(results.percent),
        "both taken out": made.both.map(results.percent),
        "interaction, points": [span(r.interaction, r.low, r.high, several) for r in made.itertuples()],
        "p, paired t-test": made.p.map(lambda p: "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"),
    })  # fmt: skip
    table(rows, "2 × 2: interaction of every pair of variants.", width="stretch")
    st.caption(
        "Interaction: accuracy with both taken out − first taken out − second taken out + neither. 0: the losses add up. "
        "Above 0: they overlap. Below 0: together they cost more than one by one."
    )


def pairs_said(made) -> str:
    known = made[made.interaction.notna()]
    if known.empty:
        return "Nothing can be said before all have been trained a little."
    most = known.loc[known.interaction.abs().idxmax()]
    size = results.points(abs(most.interaction))
    how = f"overlap, by {size} points" if most.interaction > 0 else f"make each other worse, by {size} points"
    how = how if most.interaction else "add up"
    return f"{most.one} and {most.other}: the losses {how}.{noise(most.p, len(known)) if most.interaction else ''}"
