from functools import partial

import streamlit as st

from core.study.picture import told
from core.study.summary import in_one_column, is_sparse
from ui.kit.page import figure, literal, table
from ui.kit.pages import TRAINING
from ui.pictures.matrix import matrix as picture
from ui.shared.known import hand_over
from ui.shared.trainings import said_alike
from ui.studies.cells import cells
from ui.studies.context import view

READING = (
    "Change of accuracy against the baseline in percentage points: mean over seeds and 95 % interval (paired t). "
    "Intervals are corrected for the variants of a task by Holm's method. Pale: not distinguishable from seed noise."
)


@view
def matrix(context):
    """Matrix: what each variant costs on each task, with its interval; a click opens the experiment."""
    kept = cells(context.summary, context.look)
    if kept.empty:
        st.caption("No cell is both of a chosen task and of a chosen variant.")
        return
    figure(
        "What does each part cost, on each task?",
        f"{READING} A click opens the experiment on the page {TRAINING.name}.",
    )
    if "guards" in kept and kept.guards.iloc[0] != "none":
        st.caption(said_alike(kept.guards.iloc[0].split(", ")))
    drawn = in_one_column(kept, "change of accuracy") if is_sparse(kept) else kept
    picture(drawn, "study_matrix", partial(_hand_over, context))
    with st.expander("The same as a table"):
        table(kept.drop(columns=["link"]), "Accuracy, difference and cost of each cell.", taken=kept, width="stretch")
        for line in kept[kept.diverged > 0].itertuples():
            st.caption(literal(told(line)))


def _hand_over(context, line):
    if context.store is not None:
        name, variant = getattr(line, "cell", (line.task, line.variant))
        hand_over(context.store, context.number, context.name, name, variant)
