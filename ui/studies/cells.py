"""The choice of tasks and variants above a table."""

import pandas as pd
import streamlit as st


def cells(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The lines of a table whose task and variant are chosen; nothing chosen is everything."""
    left, right = st.columns(2)
    with left:
        tasks = st.multiselect(
            "Tasks",
            list(dict.fromkeys(table.task)),
            key=f"{key}_tasks",
            placeholder="all tasks",
            label_visibility="collapsed",
        )
    with right:
        variants = st.multiselect(
            "Variants", list(dict.fromkeys(table.variant)), key=f"{key}_variants", placeholder="all variants",
            label_visibility="collapsed",
        )  # fmt: skip
    kept = table.task.isin(tasks) | (not tasks)
    return table[kept & (table.variant.isin(variants) | (not variants))]
