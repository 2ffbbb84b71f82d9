import streamlit as st

from core.experiments.training.plan import BASELINE
from core.model.variants import MOST
from core.study.tables import stored
from ui.kit.page import literal
from ui.kit.store import bind
from ui.shared.learning import learning
from ui.studies.cells import several
from ui.studies.context import NOT_STORED, view


@view
def curves(context):
    """Curves: accuracy and loss as they grew, each seed, mean and interval, of a task's baseline and up to four variants."""
    if context.store is None:
        st.caption(NOT_STORED)
        return
    summary = context.summary
    tasks = list(dict.fromkeys(summary.task))
    chosen = context.look.of_task if context.look.of_task in tasks else tasks[0]
    left, right = st.columns([1, 2])
    with left:
        name = st.selectbox("Task", tasks, **bind("of_task", chosen), label_visibility="collapsed")
    lines = summary[(summary.task == name) & (summary.variant != BASELINE)]
    with right:
        chosen = several(
            context.look, "curves_of", list(lines.variant), _telling(lines), BASELINE, max_selections=MOST,
            placeholder="the baseline alone",
        )  # fmt: skip
    runs = stored(context.store, context.number, name, chosen)
    if runs is None:
        st.caption("There is no seed yet on which all of these have numbers.")
        return
    if "rates" in summary:
        st.caption(
            "Every model at its own learning rate: of those that were searched, the matrix says which were chosen."
        )
    for note in runs.notes:
        st.caption(literal(note))
    learning(runs)


def _telling(lines) -> list[str]:
    """List the variants that end lowest beside the baseline: those that diverged first."""
    comparable = lines[lines.difference.notna() | (lines.diverged > 0)]
    return list(comparable.sort_values("difference", na_position="first").variant[:MOST])
