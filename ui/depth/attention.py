import math

import streamlit as st
import torch

from core.experiments.findings import finding
from core.text import shown
from ui import pins
from ui.depth.base import matrices, views
from ui.heatmaps import heatmaps
from ui.page import figure


@views
def attention(seen):
    """First, middle, last: attention and likeness of the words at three passes."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        st.segmented_control(
            "Matrix",
            list(matrices),
            format_func=matrices.label,
            key="matrix",
            label_visibility="collapsed",
            required=True,
        )
    of_words = seen.look.matrix == "alike"
    if not of_words:
        with right:
            _pick_head(seen)
    passes = dict.fromkeys(seen.depth.shown.values())  # one or two passes have no middle of their own
    variants_across = len(seen.variants) > 2
    cells, titles = [], []
    pairs = (
        [(v, at) for at in passes for v in seen.variants]
        if variants_across
        else [(v, at) for v in seen.variants for at in passes]
    )
    for variant, at in pairs:
        cells.append(_alike(seen, variant, at) if of_words else _pattern(seen, variant, at))
        titles.append(_title(seen, variant, at, of_words))
    labels = [shown(word) for word in (seen.tokens if of_words else _padded(seen))]
    figure(
        "How alike are the words?" if of_words else "Who reads from whom, pass after pass?",
        finding("cosine" if of_words else "entropy", seen.journeys),
        seen.weights,
    )
    pins.legend(seen.variants, {}, pins.baseline_words(seen.pins))
    heatmaps(
        "three_passes", torch.stack(cells), labels, labels, titles=titles, height=490,
        what="cosine similarity" if of_words else "attention weight, row reads column",
        alt=f"{'Likeness of words' if of_words else 'Attention'} at passes {', '.join(map(str, passes))}.",
        diverging=of_words, blank="diverged" if of_words else "masked, diverged or switched off",
        arrow="and" if of_words else "→", across=len(seen.variants) if variants_across else len(passes),
    )  # fmt: skip


def _pick_head(seen):
    most = max(v.config.n_heads for v in seen.variants)
    st.session_state.map_head = min(st.session_state.map_head, most)
    st.selectbox(
        "Head",
        range(most + 1),
        format_func=lambda n: f"head {n}" if n else "average over heads",
        key="map_head",
        label_visibility="collapsed",
    )


def _padded(seen):
    return max((journey.tokens for journey in seen.journeys.values()), key=len)


def _pattern(seen, variant, at) -> torch.Tensor:
    """(T, T); NaN where there is nothing to look at. Variants of other padding are filled up."""
    journey, length = seen.journeys[variant.name], len(_padded(seen))
    cells = torch.full((length, length), math.nan)
    if at in journey.patterns:
        weights, head = journey.patterns[at], seen.look.map_head
        chosen = weights[min(head, len(weights)) - 1] if head else weights.mean(0)
        mask = variant.config.part("mask")(len(journey.tokens))
        allowed = torch.ones_like(chosen, dtype=torch.bool) if mask is None else mask.clone()
        allowed[:, journey.n_real :] = False
        cells[: len(chosen), : len(chosen)] = chosen.masked_fill(~allowed, math.nan)
    return cells


def _alike(seen, variant, at) -> torch.Tensor:
    n_real = len(seen.tokens)
    return seen.journeys[variant.name].alike.get(at, torch.full((n_real, n_real), math.nan))


def _title(seen, variant, at, of_words) -> str:
    journey = seen.journeys[variant.name]
    if journey.diverged is not None and journey.diverged <= at:
        said = f"diverged at {journey.diverged}"
    elif of_words:
        said = f"{journey.of('cosine')[at]:.2f}" if journey.n_real > 1 else ""
    else:
        entropy = journey.of("entropy")[at]
        said = f"{entropy:.2f} bits" if math.isfinite(entropy) else "no attention"
    return f"{variant.name}, pass {at}: {said}"
