"""Studies: variants × tasks × seeds, trained unattended and stored; looked at from the store alone."""

import streamlit as st

from core.export.slug import slug
from core.study.database.connection import StoreError
from core.workers.cluster import ClusterError
from ui.kit import controls, takeaway
from ui.kit.page import heading, literal, page
from ui.studies import frame
from ui.studies.base import StudyLook

with page("Studies"):
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
        st.error(literal(error.told), icon=":material/database:")
    with corner:
        takeaway.offer("Studies", {}, frame.files(opened), slug(opened.name, opened.number) if opened else "")
