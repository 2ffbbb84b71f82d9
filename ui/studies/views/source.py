import streamlit as st

from core.study.plan import StudyError
from ui.kit.page import literal
from ui.studies.context import view
from ui.studies.server import parsed


@view
def source(context):
    """File: the text from which the study was made, and what is left out of it."""
    st.code(context.source, language="toml", line_numbers=True, height=420)
    try:
        study = parsed(context.source)
    except StudyError as error:
        st.caption(f"This version of the project does not read it any more: {literal(error.problems[0])}")
        return
    for note in study.notes:
        st.caption(literal(note))
    st.caption("The same from the command line: save it as `study.toml`, then `python -m core.study run study.toml`.")
