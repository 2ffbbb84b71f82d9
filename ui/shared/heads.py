import streamlit as st
import torch

from core.experiments.block import attention as experiment
from core.experiments.weights import weights as weights_menu
from core.figures.charts import attention as charts
from core.settings.wording import count
from ui.kit import beside
from ui.kit.page import chart, figure
from ui.kit.panel.control import of
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import needs, pick, sure, weights


def heads(forward_pass, look, recut: bool = False):
    """What each head does differently. recut: whether the same width can be cut up into other heads, as that of a trained model cannot."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    pick("layer", forward_pass=forward_pass, before=[of(look, "compare")] if recut else [])
    layer = look.layer_of(forward_pass)
    if recut and look.compare:
        for number, config in experiment.recut(forward_pass.config).items():
            _compared(forward_pass, layer, number, config)
        return
    _spread_and_distance(forward_pass, layer)
    _similarity(forward_pass, layer)


def _spread_and_distance(forward_pass, layer):
    """How spread out each head's attention is, and how far away it looks."""
    table = experiment.heads(forward_pass, layer).pivot(index="head", columns="meter", values="value").reset_index()
    even = table.uniform.iloc[0]
    first, second = beside.columns(2)
    with first:
        figure(
            "How spread out is each head's attention?",
            sure(f"Entropy in bits; line: attending evenly, {even:.2f}.", *table.entropy),
            weights(forward_pass),
        )
        chart(charts.per_head("entropy (bits)", "attending evenly"), table.rename(columns={"entropy": "value", "uniform": "reference"}), "Entropy of each head.", height=240)  # fmt: skip
    with second:
        figure(
            "How far away does each head look?",
            "Mean distance in tokens, weighted by attention; line: mean over heads.",
            weights(forward_pass),
        )
        far = table.assign(reference=table.distance.mean()).rename(columns={"distance": "value"})
        chart(
            charts.per_head("tokens away", "mean over heads"), far, "Mean distance attended by each head.", height=240
        )


def _similarity(forward_pass, layer):
    alike = experiment.similarity(forward_pass, layer)
    many = len(alike)
    mean = (alike.sum() - alike.trace()) / max(1, many * (many - 1))
    sentence = (
        sure(f"Cosine similarity of their maps, {mean:.3f} on average over pairs.", mean)
        if many > 1
        else "There is only one head."
    )
    figure("Do the heads do the same?", sentence, weights(forward_pass))
    names = [forward_pass.head_name(layer, n) for n in range(many)]
    heatmaps(
        "alike", alike[None], names, names, what="similarity", alt="Similarity between heads.", numbers=True, arrow="and", height=320
    )  # fmt: skip


def _compared(forward_pass, layer, number, config):
    """The same sentence with another number of heads; the same initial weights, cut up differently."""
    if config is None:
        st.info(f"{count(number, 'head')} cannot share d_model {forward_pass.config.d_model} evenly.")
        return
    why = weights_menu[forward_pass.kind].refused(config)
    if why:
        st.info(why)
        return
    other = forward_pass.other(config)
    patterns = experiment.patterns(other, layer)
    means = experiment.heads(other, layer).groupby("meter").value.mean()
    spread = torch.nanmean(patterns[:, : other.n_real].std(0, correction=0)).item()
    figure(
        f"{count(number, 'head')} of {count(config.d_head, 'number')}",
        sure(
            f"Entropy {means['entropy']:.2f} bits on average (evenly: {means['uniform']:.2f})"
            + (f"; the heads' weights differ by {spread:.3f} (standard deviation) on average." if number > 1 else ".")
            + " Without positions here: RoPE needs an even head size."
            * (config.position != forward_pass.config.position),
            means["entropy"],
        ),
        weights(other),
    )
    heatmaps(
        f"compare_{number}", patterns, forward_pass.labels, forward_pass.labels, titles=[other.head_name(layer, n) for n in range(number)],
        what="attention weight", blank="masked", alt=f"Attention with {count(number, 'head')}.", height=220 if number <= 4 else 400,
    )  # fmt: skip
