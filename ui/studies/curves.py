import streamlit as st

from core.experiments.training import BASELINE
from core.study.stored import stored
from core.variants import MOST
from ui.page import literal
from ui.studies.base import views
from ui.training.learning import learning


@views
def curves(opened):
    """Curves: accuracy and loss as they grew, each seed, mean and interval, of a task's baseline and up to four variants."""
    summary = opened.summary
    tasks = list(dict.fromkeys(summary.task))
    if st.session_state.of_task not in tasks:
        st.session_state.of_task = tasks[0]
    left, right = st.columns([1, 2])
    with left:
        name = st.selectbox("Task", tasks, key="of_task", label_visibility="collapsed")
    lines = summary[(summary.task == name) & (summary.variant != BASELINE)]
    with right:
        chosen = st.multiselect(
            "Variants", list(lines.variant), default=_telling(lines), max_selections=MOST,
            key=f"curves_{opened.number}_{name}", placeholder="the baseline alone", label_visibility="collapsed",
        )  # fmt: skip
    found = stored(opened.store, opened.number, name, chosen)
    if found is None:
        st.caption("There is no seed yet on which all of these have numbers.")
        return
    for note in found.notes:
        st.caption(literal(note))
    learning(found, None)


def _telling(lines) -> list[str]:
    """The variants that lose most: all seeds, then accuracy."""
    told = lines[lines.difference.notna() | (lines.diverged > 0)]
    return list(told.sort_values("difference", na_position="first").variant[:MOST])
