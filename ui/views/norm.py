import math

import streamlit as st

from core import charts
from core.experiments.stages import normalised
from ui.page import chart, figure
from ui.views.base import pick, sure, views, weights


@views
def norm(seen, look):
    """Norm: what LayerNorm does to one token."""
    sites = [site for site in ("ln1", "ln2") if site in seen.sites]
    if not sites and seen.config.norm != "none":
        st.info("Both sub-layers are off, and their norms with them.", icon=":material/toggle_off:")
        return
    if not sites:
        st.info(
            "There is no norm in this block. Choose LayerNorm or RMSNorm under Parts.", icon=":material/toggle_off:"
        )
        return
    pick("token", "layer", seen=seen)
    for site in sites:
        table, numbers = normalised(seen, look.layer_of(seen), site, look.token_of(seen))
        where = "attention" if site == "ln1" else "the feed-forward network"
        place = "before" if seen.config.placement == "pre" else "after"
        figure(
            f"Norm {site[-1]}, {place} {where}: “{seen.labels[look.token_of(seen)]}” before and after",
            sure(_formula(seen, numbers), numbers["variance"]),
            weights(seen),
        )
        chart(charts.before_after(), table, f"The token's vector before and after norm {site[-1]}.", height=260)


def _formula(seen, n) -> str:
    end = f"Gain is 1{' and bias 0' * seen.config.bias} before any training."
    if seen.config.norm == "RMSNorm":
        size = math.sqrt(n["mean square"] + n["epsilon"])
        return f"Each number is divided by √(mean square {n['mean square']:.4g} + {n['epsilon']:g}) = {size:.4g}; the mean, {n['mean']:.4g}, stays in. Gain is 1 before any training."
    return (
        f"Mean {n['mean']:.4g} is subtracted; the rest is divided by √(variance {n['variance']:.4g} + {n['epsilon']:g}) "
        f"= {math.sqrt(n['variance'] + n['epsilon']):.4g}. {end}"
    )
