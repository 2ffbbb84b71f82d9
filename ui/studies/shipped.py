"""The study that ships with its results: it can be looked at in every place, and trained anew."""

from pathlib import Path

import streamlit as st

from core.study.file.text import read
from core.study.plan import StudyError
from core.study.summary import read_summary
from ui.studies.context import StudyContext, StudyLook

ROOT = Path(__file__).parent.parent.parent
FILE, RESULTS = ROOT / "studies" / "ablation_matrix.toml", ROOT / "results" / "ablation_matrix.csv"
NAME = "ablation matrix (ships with the lab)"


def shipped(look: StudyLook) -> StudyContext | None:
    """None where one of its files is missing or damaged."""
    try:
        study, summary = _read(FILE.stat().st_mtime_ns, RESULTS.stat().st_mtime_ns)
    except (OSError, StudyError):
        return None
    return StudyContext(None, 0, NAME, study.question, study.source, summary, (), look)


@st.cache_data
def _read(*stamps):
    return read(FILE), read_summary(RESULTS)
