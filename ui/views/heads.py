import streamlit as st
import torch

from core import charts
from core.dial import ConfigError
from core.experiments import attention as experiment
from core.experiments.forward import forward
from core.variants import apply
from ui.controls import control
from ui.heatmaps import heatmaps
from ui.page import chart, figure
from ui.views.base import Look, needs, pick, sure, views, weights
from ui.views.base import count as plural


@views
def heads(seen, look):
    """Heads: what each head does differently."""
    if not needs(seen, "attention", "Attention"):
        return
    left, right = st.columns([1, 2], vertical_alignment="center")
    recut = isinstance(look, Look)  # a trained model cannot be cut up into other heads
    if recut:
        with left:
            control(look, "compare")
    with right:
        pick("layer", seen=seen)
    layer = look.layer_of(seen)
    if recut and look.compare:
        for count in (1, 4, 8):
            _compared(seen, layer, count)
        return
    table = experiment.heads(seen, layer).pivot(index="head", columns="meter", values="value").reset_index()
    even = table.uniform.iloc[0]
    first, second = st.columns(2)
    with first:
        figure(
            "How spread out is each head's attention?",
            sure(f"Entropy in bits; line: attending evenly, {even:.2f}.", *table.entropy),
            weights(seen),
        )
        chart(charts.per_head("entropy (bits)", "attending evenly"), table.rename(columns={"entropy": "value", "uniform": "reference"}), "Entropy of each head.", height=240)  # fmt: skip
    with second:
        figure(
            "How far away does each head look?",
            "Mean distance in tokens, weighted by attention; line: mean over heads.",
            weights(seen),
        )
        far = table.assign(reference=table.distance.mean()).rename(columns={"distance": "value"})
        chart(
            charts.per_head("tokens away", "mean over heads"), far, "Mean distance attended by each head.", height=240
        )
    alike = experiment.similarity(seen, layer)
    count = len(alike)
    pairs = (alike.sum() - alike.trace()) / max(1, count * (count - 1))
    sentence = (
        f"Cosine similarity of their maps, {pairs:.3f} on average over pairs."
        if count > 1
        else "There is only one head."
    )
    figure("Do the heads do the same?", sentence, weights(seen))
    names = [f"head {n + 1}" for n in range(count)]
    heatmaps(
        "alike",
        alike[None],
        names,
        names,
        what="similarity",
        alt="Similarity between heads.",
        numbers=True,
        arrow="and",
        height=320,
    )


def _compared(seen, layer, count):
    """The same sentence with another number of heads; the same initial weights, cut up differently."""
    if seen.config.d_model % count:
        st.info(f"{count} heads do not divide d_model {seen.config.d_model}.")
        return
    config = _recut(seen.config, count)
    other = forward(config, seen.tokens[: seen.n_real], seen.machine, seen.dropout)
    patterns = experiment.patterns(other, layer)
    means = experiment.heads(other, layer).groupby("meter").value.mean()
    spread = torch.nanmean(patterns[:, : other.n_real].std(0, correction=0)).item()
    figure(
        f"{plural(count, 'head')} of {plural(config.d_head, 'number')}",
        sure(
            f"Entropy {means['entropy']:.2f} bits on average (evenly: {means['uniform']:.2f})"
            + (f"; the heads' weights differ by {spread:.3f} (standard deviation) on average." if count > 1 else ".")
            + " Without positions here: RoPE needs an even head size." * (config.position != seen.config.position),
            means["entropy"],
        ),
        weights(seen),
    )
    heatmaps(
        f"compare_{count}", patterns, seen.labels, seen.labels, titles=[f"head {n + 1}" for n in range(count)],
        what="attention weight", blank="masked", alt=f"Attention with {count} heads.", height=220 if count <= 4 else 400,
    )  # fmt: skip


def _recut(config, count):
    """The same model with another number of heads, without positions where RoPE cannot be."""
    try:
        return apply({"n_heads": count}, config)
    except ConfigError:
        return apply({"n_heads": count, "position": "none"}, config)
