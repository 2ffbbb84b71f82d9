"""Studies: variants × tasks × seeds, trained in the background, read from the store."""

import streamlit as st

from core.export.sheets import slug
from core.study.database.connection import StoreError
from core.study.file import search_of
from core.study.ladder import read_sizes
from core.workers.cluster import ClusterError
from ui.kit import takeaway
from ui.kit.page import draw_head, draw_notice, literal, page
from ui.kit.pages import STUDIES
from ui.kit.panel.panel import draw_bar
from ui.studies.chooser import draw_chooser, study_files
from ui.studies.context import StudyLook

FROM_STORE = (
    "curves",
    "runs",
    "compare",
)  # views that show runs, of which a built-in study ships the summary

with page(STUDIES):
    (look,), notes = STUDIES.settings(StudyLook)
    draw_head(STUDIES)
    draw_notice(*notes)
    context = None
    try:
        context = draw_chooser(look)
        if context:
            absent: tuple[str, ...] = FROM_STORE if context.store is None else ()
            absent += () if read_sizes(context.source) else ("sizes",)
            absent += () if search_of(context.source) != "none" else ("rates",)
            draw_bar("views", [STUDIES.tabs(without=absent)])
            if context.summary.empty:
                st.caption("This study has no runs left.")
            else:
                STUDIES.open_view(context)
    except (StoreError, ClusterError) as error:
        st.error(literal(error.public_message), icon=":material/database:")
    file_prefix = slug(context.name, context.number) if context else ""
    takeaway.draw_export(STUDIES.name, None, study_files(context), file_prefix)
