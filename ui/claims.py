"""Page "Claims": its context and its views."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.settings.wording import capitalise
from core.teaching.claims import (
    LOOKS,
    Claim,
    Judged,
    Values,
    claim,
    describe,
    describe_verdicts,
    format_smallest,
)
from ui.kit import takeaway
from ui.kit.page import figure, literal, small_table
from ui.kit.pages import PAGES, TRAINING, Page
from ui.kit.store import bind, change
from ui.pictures.claims import draw_claims

RULE = (
    "Claims from the literature, tested on small models. Dot: mean over seeds; bar: 95 % CI"
    " (simultaneous). If the whole bar is in the blue region, which was fixed before the runs, the"
    " claim replicates here. Click a claim for details."
)
RERUN = (
    "To reproduce all claims, run “make claims”. To reproduce this one from precomputed runs, run"
    " “python -m core.teaching.claims --only {name}”."
)

view: Menu[Any] = Menu("Views of claims")


@dataclass(frozen=True)
class ClaimsLook(Settings):
    """Settings of the page "Claims"."""

    shown: str = setting("gallery", "View", "What to look at.", group="Look", menu=view)
    claim: str = setting(next(iter(claim)), "Claim", "Claim shown alone.", group="Look", menu=claim)


@dataclass(frozen=True)
class ClaimsContext:
    """Context of the views of Claims: each claim's values per seed, and its result."""

    values: Mapping[str, Values]
    results: Mapping[str, Judged]
    look: ClaimsLook


@view.register("gallery", label="All claims", help="each claim with its measurement and verdict.")
def gallery(context: ClaimsContext):
    """Draw all claims with their intervals and verdicts; a click opens one."""
    figure(describe_verdicts(context.results.values()), RULE)
    draw_claims("claims", context.results, lambda name: change(shown="evidence", claim=name))
    takeaway.offer_table("Claims and verdicts", lambda: result_table(context))


def result_table(context: ClaimsContext) -> pd.DataFrame:
    """Return results: claim, paper, number, smallest, alike, mean, low, high, seeds, verdict.

    A row for each claim, in its own unit (a share where it is about accuracies).
    """
    rows = []
    for name, result in context.results.items():
        claim_shown = claim[name]
        about = (
            claim.label(name),
            claim_shown.paper,
            claim_shown.number,
            claim_shown.smallest,
            claim_shown.alike,
        )
        rows.append((*about, *result.interval, result.verdict))
    columns = "claim paper number smallest alike mean low high seeds verdict".split()
    return pd.DataFrame(rows, columns=columns)


@view.register(
    "evidence",
    label="One claim",
    help="experiment, seeds and rule of one claim, with a link to run it.",
)
def evidence(context: ClaimsContext):
    """Draw a menu of claims and one of them: result, source, rule, values by seed, link."""
    name = context.look.claim
    names = list(claim)
    st.selectbox(
        "Claim", names, format_func=claim.label, label_visibility="collapsed", **bind("claim", name)
    )
    claim_shown = claim[name]
    result = context.results[name]
    values = context.values[name]
    figure(capitalise(claim.help(name)), describe(result, claim_shown))
    draw_claims("claim", {name: result}, by_seed=list(values.values()))
    rule = (
        f"within ±{format_smallest(claim_shown)}"
        if claim_shown.alike
        else f"above {format_smallest(claim_shown)}"
    )
    st.markdown(
        f"**Source:** {literal(claim_shown.paper)}.  \n**Setup:** {literal(claim_shown.here)}. "
        f" \n**Measured:** {literal(claim_shown.number)}.  \n**Rule, fixed before the runs:** the"
        f" claim replicates if the whole interval is {rule}.  \n**Interval:** Student's t over"
        f" seeds. It is widened for {len(claim)} claims and {LOOKS} looks (Bonferroni at 95 %):"
        " claims that were inconclusive got more seeds."
    )
    page, params = experiment_link(claim_shown, values)
    st.page_link(
        page.path,
        label=f"**Open the experiment** in {page.name}",
        icon=page.icon,
        query_params=params,
    )
    rows = pd.DataFrame({"seed": list(values), "value": list(values.values())})
    formatted = rows.assign(value=rows.value.map("{:.4f}".format), seed=rows.seed.map(str))
    with st.expander("Results by seed"):
        small_table(formatted, "Results of this claim by seed.", rows)
    st.caption(literal(RERUN.format(name=name)))


def experiment_link(claim_shown: Claim, values: Values) -> tuple[Page, dict[str, str]]:
    """Return the page that runs a claim's experiment, and the parameters of its link.

    A training has the seeds of the claim, so that its shipped results are shown at once.
    """
    key, params = claim_shown.live
    page = next(page for page in PAGES if page.key == key)
    as_measured = {"seeds": str(len(values)), "device": "cpu"} if page is TRAINING else {}
    return page, {**params, **as_measured}
