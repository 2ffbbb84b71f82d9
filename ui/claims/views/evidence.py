import pandas as pd
import streamlit as st

from core.teaching.claims import claim
from core.teaching.claims.wording import smallest, told
from ui.claims.context import view
from ui.kit.page import capital, figure, literal, small_table
from ui.kit.pages import PAGES, TRAINING, Page
from ui.kit.store import bind
from ui.pictures.claims import claims

RERUN = "Anew: “make claims” trains all of it. “python -m core.teaching.claims --only {name}” measures this one on the trainings that ship."


@view
def evidence(context):
    """One claim: the experiment, every seed, and the rule; from here it can be run."""
    names = list(claim)
    st.selectbox(
        "Claim", names, format_func=claim.label, label_visibility="collapsed", **bind("claim", context.look.claim)
    )
    name = context.look.claim
    of, found, values = claim[name], context.found[name], context.values[name]
    figure(capital(claim.help(name)), told(found, of))
    claims("claim", {name: found}, values=list(values.values()))
    rule = f"within ±{smallest(of)}" if of.alike else f"above {smallest(of)}"
    st.markdown(
        f"**Source:** {literal(of.paper)}.  \n**Here:** {literal(of.here)}.  \n**Measured:** {literal(of.number)}.  \n"
        f"**Rule, fixed before the run:** it replicates here where the whole interval is {rule}."
    )
    to, params = live(of, values)
    st.page_link(to.path, label=f"**Open the experiment** on the page {to.name}", icon=to.icon, query_params=params)
    rows = pd.DataFrame({"seed": list(values), "value": list(values.values())})
    with st.expander("Every seed"):
        small_table(
            rows.assign(value=rows.value.map("{:.4f}".format), seed=rows.seed.map(str)),
            "Every seed of this claim.",
            rows,
        )
    st.caption(literal(RERUN.format(name=name)))


def live(of, values) -> tuple[Page, dict[str, str]]:
    """The page on which a claim's experiment is open, and its link: where it is trained, with the seeds of the claim, so that what
    ships of it is shown at once."""
    there, params = of.live
    to = next(page for page in PAGES if page.key == there)
    as_measured = {"seeds": str(len(values)), "device": "cpu"}
    return to, dict(params) | (as_measured if to is TRAINING else {})
