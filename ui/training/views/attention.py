import math

import streamlit as st
import torch

from core.experiments.training.trained import read, untrained
from core.model.text import shown
from core.settings.wording import fixed
from ui.kit.page import figure
from ui.kit.store import bind
from ui.pictures.heatmaps import heatmaps
from ui.shared.trainings import arms_shown
from ui.training.context import view
from ui.training.sequence import pick_sequence, sequence, without_models


@view
def attention(context):
    """Attention: before training and now, on one sequence."""
    if without_models(context):
        return
    look, arms, seed = context.look, arms_shown(context.trainings), context.trainings.plan.seeds[0]
    layers = max(arm.config.n_layers for arm in arms)
    _pick(context, arms, layers)
    layer, head = min(look.trained_layer, layers), look.trained_head
    learnt, tokens, targets = sequence(context)
    cells, titles, bits = [], [], {}
    few = len(arms) <= 2  # one row: each model before and now; else two rows: all before, all now
    pairs = (
        [(arm, now) for arm in arms for now in (False, True)]
        if few
        else [(a, now) for now in (False, True) for a in arms]
    )
    for arm, now in pairs:
        state = context.trainings.states[arm.name, seed]
        reading = read(state if now else untrained(state), tokens, targets)
        weights = _weights(reading, layer, head, arm.config)
        cells.append(weights)
        when = f"step {state.step}" if now else "before"
        bits[arm, now] = _entropy(reading, layer, head, arm.config)
        titles.append(f"{arm.name}, {when}: {'none' if weights is None else fixed(bits[arm, now])}")
    labels = [shown(learnt.vocabulary[token]) for token in tokens]
    figure("Who reads from whom, before training and now?", _said(arms, bits, head))
    heatmaps(
        "trained_attention", torch.stack([torch.full((len(labels),) * 2, math.nan) if c is None else c for c in cells]),
        labels, labels, titles=titles, height=470, across=2 * len(arms) if few else len(arms), blank="masked, or switched off",
        what=f"attention weight, row reads column (above: model, step, entropy in bits{'' if head else ', mean over heads'})",
        alt="Attention before training and now.",
    )  # fmt: skip


def _pick(context, arms, layers):
    heads = max(arm.config.n_heads for arm in arms)
    layer = bind("trained_layer", min(context.look.trained_layer, layers))
    head = bind("trained_head", min(context.look.trained_head, heads))
    columns = st.columns(3)
    with columns[0]:
        pick_sequence(context)
    with columns[1]:
        st.selectbox(
            "Layer", range(1, layers + 1), format_func=lambda n: f"layer {n} of {layers}", **layer,
            label_visibility="collapsed",
        )  # fmt: skip
    with columns[2]:
        st.selectbox(
            "Head", range(heads + 1), format_func=lambda n: f"head {n}" if n else "average over heads", **head,
            label_visibility="collapsed",
        )  # fmt: skip


def _weights(reading, layer: int, head: int, config) -> torch.Tensor | None:
    """(T, T), NaN where the mask forbids looking; None without attention. A model with fewer layers or heads shows its last."""
    if not reading.patterns:
        return None
    at = min(layer, len(reading.patterns)) - 1
    pattern = reading.patterns[at]
    weights = pattern[min(head, config.n_heads) - 1] if head else pattern.mean(0)
    return weights.masked_fill(~reading.allowed[at], math.nan)


def _entropy(reading, layer: int, head: int, config) -> float | None:
    """Return the mean entropy of the words' rows in bits, of one head or averaged over heads. Padding does not count."""
    if not reading.patterns:
        return None
    of_heads = reading.entropy(min(layer, len(reading.patterns)) - 1)
    return (of_heads[min(head, config.n_heads) - 1] if head else of_heads.mean()).item()


def _said(arms, bits, head: int) -> str:
    phrases = [
        f"{arm.name} {_change(fixed(bits[arm, False]), fixed(bits[arm, True]))} bits"
        for arm in arms
        if bits[arm, False] is not None
    ]
    if not phrases:
        return "No model has attention here."
    return f"Mean entropy of a row, {'of this head' if head else 'averaged over heads'}: {'; '.join(phrases)}."


def _change(before: str, now: str) -> str:
    return f"still {now}" if before == now else f"from {before} to {now}"
