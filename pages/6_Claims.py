"""Claims: statements of papers about transformer components, tested at this size."""

import streamlit as st

from core.settings.setting import ConfigError
from core.study.plan import StudyError
from core.teaching.claims import FILE, claim, judge_claim, read_values
from ui.claims import ClaimsContext, ClaimsLook
from ui.kit import takeaway
from ui.kit.page import draw_head, draw_notice, page
from ui.kit.pages import CLAIMS


@st.cache_data
def read_measured(stamp: int) -> dict[str, dict[int, float]]:
    """Return claim -> seed -> value of claims.csv, cached by `stamp`; StudyError or OSError."""
    return read_values(FILE)


with page(CLAIMS):
    (look,), notes = CLAIMS.settings(ClaimsLook)
    draw_head(CLAIMS, [CLAIMS.tabs()])
    draw_notice(*notes)
    try:
        values = read_measured(FILE.stat().st_mtime_ns)
    except (OSError, StudyError):
        raise ConfigError(
            "results",
            "The table of claims, results/claims.csv, is missing or damaged; make claims"
            " recreates it.",
        ) from None
    results = {name: judge_claim(values[name], claim[name]) for name in claim}
    CLAIMS.open_view(ClaimsContext(values, results, look))
    takeaway.draw_export(CLAIMS.name, None, name_prefix="claims")
