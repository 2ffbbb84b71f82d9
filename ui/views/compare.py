import math

import streamlit as st
import torch

from core.experiments.compare import compare as measure
from core.experiments.forward import forward
from core.streams import statistic
from core.variants import Pins, lineup
from ui import pins
from ui.controls import current
from ui.heatmaps import heatmaps
from ui.page import figure, literal
from ui.takeaway import note
from ui.views.base import pick, sure, views, weights


@views
def compare(seen, look):
    """Compare: baseline and variants side by side."""
    pinned = current(Pins)
    variants, left_out = lineup(seen.config, pinned)
    for reason in left_out:
        st.caption(literal(reason))
    tokens = seen.tokens[: seen.n_real]
    passes = {v.name: forward(v.config, tokens, seen.machine, seen.dropout) for v in variants}
    table = measure(passes)
    pins.legend(variants, {}, pins.baseline_words(pinned))
    figure("What does each difference do to the output?", farthest(table), weights(seen))
    numbers(table)
    pick("layer", seen=seen)
    maps(passes, look)


def farthest(table) -> str:
    """Which variant's output is farthest from the baseline's."""
    known = table[1:][table.distance[1:].notna()]
    if not len(known):
        return "Nothing to compare with yet: choose a part above to take it out."
    most = known.loc[known.distance.idxmax()]
    return sure(
        f"Farthest from the baseline is {most.variant}: its output is {most.distance:.0%} of the baseline's length away from it, "
        f"with a cosine similarity of {most.direction:.2f}.",
        most.distance,
        most.direction,
    )


def numbers(table):
    """The table of all variants, a row each."""
    words = {
        "variant": st.column_config.TextColumn("", width=130),
        "parameters": st.column_config.NumberColumn("Parameters", format="localized"),
        "distance": st.column_config.NumberColumn("Distance", help="‖output − baseline's‖ / ‖baseline's‖", format="%.4f"),
        "direction": st.column_config.NumberColumn("Direction", help="Cosine similarity to the baseline's output, averaged over tokens.", format="%.4f"),
    }  # fmt: skip
    words |= {
        name: st.column_config.NumberColumn(statistic.label(name), help=f"{statistic.help(name)} Of the output.", format="%.4g")
        for name in statistic
    }  # fmt: skip
    note("Baseline and variants", lambda: table)
    first = ["variant", "distance", "direction", "rms", "cosine", "rank", "entropy"]
    table = table[[*first, *[name for name in table if name not in first]]]
    st.dataframe(table, column_config=words, hide_index=True, width="stretch", height=35 * len(table) + 37)


def maps(passes, look):
    """Attention of every variant, averaged over its heads, at one layer."""
    shown, titles, labels = [], [], []
    for name, seen in passes.items():
        found = seen.sites.get("pattern")
        labels = max(labels, seen.labels, key=len)
        if found:
            layer = min(look.layer_of(seen), len(found) - 1)
            shown.append(found[layer].mean(0).masked_fill(~seen.allowed, math.nan))
        else:
            shown.append(torch.full((len(seen.tokens), len(seen.tokens)), math.nan))
        titles.append(name)
    size = len(labels)
    cells = torch.full((len(shown), size, size), math.nan)
    for at, each in enumerate(shown):
        cells[at, : len(each), : len(each)] = each
    heatmaps(
        "compared_maps", cells, labels, labels, titles=titles, what="mean attention weight over heads, row reads column",
        blank="masked or switched off", alt="Attention of each variant, averaged over its heads.", height=330,
    )  # fmt: skip
