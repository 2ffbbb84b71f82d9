import streamlit as st

from core.measure.intervals import apart
from core.settings.wording import count
from core.study.tables import comparison
from ui.kit.page import figure, literal, table
from ui.kit.store import bind
from ui.studies.cells import cells
from ui.studies.context import NOT_STORED, view


@view
def compare(context):
    """Compare: this study and another one, cell by cell, on the seeds that both have."""
    if context.store is None:
        st.caption(NOT_STORED)
        return
    if not context.others:
        st.caption("There is no other study in the store to compare this one with.")
        return
    against = context.look.against
    name = st.selectbox(
        "Against",
        context.others,
        **bind("against", against if against in context.others else context.others[0]),
        format_func=lambda name: f"against: {name}",
        label_visibility="collapsed",
    )
    compared = comparison(context.store, context.number, context.store.find(name))
    if compared.empty:
        st.caption(f"No task and variant of {literal(context.name)} has the name of one in {literal(name)}.")
        return
    kept = cells(compared, context.look)
    clear = [line for line in kept.itertuples() if apart(line.low, line.high)]
    same = (kept.settings == "same").sum()
    figure(
        f"{context.name} against {name}",
        f"{count(len(kept), 'cell')} {'is' if len(kept) == 1 else 'are'} in both, {same} of them with the same settings. "
        f"{len(clear)} differ{'s' * (len(clear) == 1)} by what can be told from seed noise "
        "(paired t-test, corrected for all cells by Holm's method).",
    )
    words = {
        "other_accuracy": f"accuracy, {name}",
        "accuracy": f"accuracy, {context.name}",
        "low": "95 % from",
        "high": "to",
    }
    table(kept.rename(columns=words), "This study and the other, cell by cell.", taken=kept, width="stretch")
