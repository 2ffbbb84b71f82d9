"""Studies: variants × tasks × seeds, trained unattended and stored; looked at from the store alone."""

import streamlit as st

from core.cluster import ClusterError
from core.study.database import StoreError
from ui import controls, takeaway
from ui.page import heading, literal, page
from ui.studies import frame
from ui.studies.base import StudyLook

with page("Studies", ":material/lab_research:"):
    started = st.session_state.pop("_start_study", None)
    if started:
        st.session_state.study = started
    (look,), notes = controls.settings("studies", StudyLook)
    corner = heading("Studies")
    for note in notes:
        st.warning(literal(note), icon=":material/info:")
    opened = None
    try:
        opened = frame.choose(look)
        if opened:
            frame.body(opened)
        else:
            frame.empty()
    except (StoreError, ClusterError) as error:
        st.error(literal(error), icon=":material/database:")
    with corner:
        takeaway.offer("Studies", {}, frame.files(opened), opened.name if opened else "")
