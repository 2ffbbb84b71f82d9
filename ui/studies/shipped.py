"""The studies that ship with their results: they can be looked at in every place, and trained anew."""

import streamlit as st

from core.study.file import read
from core.study.plan import StudyError
from core.study.shipped import shipped, study_of, table_of
from core.study.summary import read_summary
from ui.studies.context import StudyContext, StudyLook

NAMES = {f"{name.replace('_', ' ')} (ships with the lab)": name for name in shipped}  # as they are offered


def offered() -> list[str]:
    """Those whose files are there."""
    return [name for name, of in NAMES.items() if study_of(of).exists() and table_of(of).exists()]


def ships(name: str, look: StudyLook) -> StudyContext | None:
    """The one that is offered by this name; None where one of its files is missing or damaged, which is said."""
    of = NAMES[name]
    try:
        study, summary = _read(of, study_of(of).stat().st_mtime_ns, table_of(of).stat().st_mtime_ns)
    except (OSError, StudyError):
        st.warning(f"What ships of {name} is missing or damaged; make matrix makes it again.", icon=":material/info:")
        return None
    return StudyContext(None, 0, name, study.question, study.source, summary, (), look)


@st.cache_data
def _read(name, *stamps):
    return read(study_of(name)), read_summary(table_of(name))
