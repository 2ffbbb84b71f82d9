import streamlit as st

from core.seeds import LEVEL
from core.study.tables import comparison
from ui.page import figure, literal, table
from ui.studies.base import cells, views


@views
def compare(opened):
    """Compare: this study and another one, cell by cell, on the seeds that both have."""
    if not opened.others:
        st.caption("There is no other study in the store to compare this one with.")
        return
    if st.session_state.against not in opened.others:
        st.session_state.against = opened.others[0]
    name = st.selectbox(
        "Against",
        opened.others,
        key="against",
        format_func=lambda name: f"against: {name}",
        label_visibility="collapsed",
    )
    found = comparison(opened.store, opened.number, opened.store.find(name))
    if found.empty:
        st.caption(f"No task and variant of {literal(opened.name)} has the name of one in {literal(name)}.")
        return
    kept = cells(found, "compare")
    clear = kept[kept.p < 1 - LEVEL]
    same = (kept.settings == "same").sum()
    figure(
        f"{opened.name} against {name}",
        f"{len(kept)} cells are in both, {same} of them with the same settings; {len(clear)} differ by more than seed noise "
        f"(paired t-test, p < {1 - LEVEL:.2g}, each for itself: one in twenty does by chance).",
    )
    words = {
        "other_accuracy": f"accuracy, {name}",
        "accuracy": f"accuracy, {opened.name}",
        "low": "95 % from",
        "high": "to",
    }
    table(kept.rename(columns=words), "This study and the other, cell by cell.", taken=kept, width="stretch")
