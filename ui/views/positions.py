import streamlit as st
import torch

from core import charts
from core.experiments import positions as experiment
from core.parts import MENUS
from ui.heatmaps import heatmaps
from ui.page import chart, figure
from ui.views.base import needs, views, weights


@views
def positions(seen, look):
    """Positions: how the model is told the order of words."""
    if needs(seen, "attention", "Attention"):
        table = experiment.order(seen)
        found = table.set_index(["position", "mask"]).value
        now = found.get((seen.config.position, seen.config.mask))
        figure(
            "“dog bites man” against “man bites dog”: does the block notice?",
            f"Now ({MENUS['position'].label(seen.config.position)}, mask {seen.config.mask}): {_in_words(now)} "
            "A difference of zero, but for rounding, means the outputs are a permutation of each other. "
            "ALiBi without a mask sees distance only, and these two orders are mirror images.",
            weights(seen),
        )
        table["seen"] = table["mask"].map({"none": "every word sees every word", "causal": "causal mask"})
        chart(charts.order(), table, "Difference between the two orders under every position encoding.", height=270)
    made = experiment.tables(seen)
    rows = [str(n + 1) for n in range(len(made["sinusoidal"]))]
    left, right = st.columns(2)
    with left:
        figure(
            "What is added to each position?",
            "Sinusoidal table: one row per position, one column per dimension.",
            "Not learned",
        )
        heatmaps("sinusoid", made["sinusoidal"][None], [f"position {n}" for n in rows], [str(n + 1) for n in range(seen.config.d_model)],
                 colTips=[f"dimension {n + 1}" for n in range(seen.config.d_model)], what="value", alt="The sinusoidal table.", diverging=True, square=False, height=600)  # fmt: skip
    with right:
        figure(
            "How alike are two positions?",
            "Sinusoidal: near ones alike. Learned: nothing before training.",
            weights(seen),
        )
        both = [experiment.position_similarity(made[name]) for name in ("sinusoidal", "learned")]
        heatmaps("position_pairs", torch.stack(both), rows, rows, titles=["sinusoidal", "learned (untrained)"], what="cosine similarity",
                 alt="Similarity between positions.", diverging=True, rowTips=[f"position {n}" for n in rows], arrow="and", height=600)  # fmt: skip


def _in_words(value) -> str:
    if value is None:
        return "these settings cannot be compared."
    return f"no ({value:.1e})." if value < 1e-4 else f"yes, outputs differ by up to {value:.2f}."
