"""Views of attention in one pass, on the pages One block and Trained model."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
import torch

from core.experiments.block import attention as experiment
from core.experiments.block.attention import (
    entropy_by_scaling,
    list_head_steps,
    pair_attention,
    write_pairs,
)
from core.experiments.forward import Pass
from core.experiments.weights import weights as weights_menu
from core.figures.charts import attention as charts
from core.figures.spec import word_label
from core.model.parts import MENUS
from core.settings.wording import capitalise, count, distinct, lower_first
from ui.kit import side_by_side, takeaway
from ui.kit.page import chart, draw_finding, figure, literal
from ui.kit.panel.control import among, control_of, html_control
from ui.kit.panel.panel import draw_bar
from ui.kit.store import bind, change
from ui.pictures.heatmaps import draw_attention_lines, draw_heatmaps
from ui.shared.base import Picked, draw_picks, finite_sentence, has_sublayer, pick_controls


def attention(forward_pass: Pass, look: Picked):
    """Draw controls and a layer's attention as `look.maps` says: all heads, one, mean or lines."""
    if not has_sublayer(forward_pass, "attention", "Attention"):
        return
    layer = look.layer_of(forward_pass)
    head = look.head_of(forward_pass)
    patterns = experiment.patterns(forward_pass, layer)  # (head, query, key)
    selected_head = ["head"] if look.maps in ("one", "lines") else []
    name = forward_pass.head_name(layer, head)
    title = "Mean attention pattern" if look.maps == "average" else "Attention pattern"
    draw_picks(
        "layer", *selected_head, forward_pass=forward_pass, before=[html_control(f"<b>{title}</b>")]
    )
    sentence = ""
    if look.maps in ("heads", "one"):
        first = head if look.maps == "one" else 0
        patterns_shown = patterns[head : head + 1] if look.maps == "one" else patterns
        weight = find_strongest(forward_pass, layer, patterns_shown)
        sentence = describe_strongest(forward_pass, layer, weight, first)
        ring = (
            {"panel": weight.head, "row": weight.query, "col": weight.key}
            if weight.stands_out()
            else None
        )
    takeaway.set_announcement(sentence)
    weights = "Attention weight"
    if look.maps == "heads":
        alt = (
            f"Attention maps of {count(len(patterns), 'head')} over"
            f" {count(len(forward_pass.tokens), 'token')}."
        )
        titles = [forward_pass.head_name(layer, n) for n in range(len(patterns))]
        height = 500 if side_by_side.has_full_width() else 240
        open_head = lambda panel, row, column: change(maps="one", head=panel + 1)  # noqa: E731
        details = {
            "titles": titles,
            "quantity": weights,
            "alt": alt,
            "enlarge": weight.head,
            "ring": ring,
            "stacked": True,
        }
        if not side_by_side.has_full_width() and len(patterns) <= 4:
            details["across"] = len(patterns)  # one row, so that both models fit one screen
        _draw_maps("all_heads", forward_pass, patterns, height=height, on_pick=open_head, **details)
    elif look.maps == "one":
        height = 470 if len(forward_pass.tokens) <= 64 else 620
        details = {
            "titles": [name],
            "quantity": weights,
            "alt": f"Attention map of {name}.",
            "table_name": f"Attention map of head {layer + 1}.{head + 1}",
            "numbers": True,
            "ring": ring,
        }
        exported = partial(_weight_table, forward_pass, patterns[head])
        _draw_maps(
            "one_head",
            forward_pass,
            patterns[head : head + 1],
            height=height,
            exported=exported,
            **details,
        )
    elif look.maps == "average":
        details = {
            "quantity": "Mean attention weight",
            "alt": "Attention averaged over the heads.",
            "numbers": True,
        }
        _draw_maps("average", forward_pass, patterns.mean(0, keepdim=True), height=520, **details)
    else:
        sentence = "Thicker lines mean more attention. Hover over a word on the left."
        alt = f"Lines from each token to those it attends to, {name}."
        draw_attention_lines("lines", patterns[head], forward_pass.labels, alt=alt, height=470)
    note = forward_pass.weights
    if side_by_side.has_full_width() or side_by_side.is_second_side():
        note += f". {_explain_axes(forward_pass, look)}"
    draw_finding(sentence, note)


def _explain_axes(forward_pass: Pass, look: Picked) -> str:
    """Return a sentence on how to read the maps' rows and columns, or the lines."""
    if look.maps == "lines":
        return "Left: query, right: key"
    at_most = "" if forward_pass.config.part("softmax").sums_to_one else "at most "
    enlarge = (
        ". Click a head to enlarge it"
        if look.maps == "heads" and side_by_side.has_full_width()
        else ""
    )
    return f"Row: query, column: key. Rows sum to {at_most}1{enlarge}"


def _draw_maps(key: str, forward_pass: Pass, patterns: torch.Tensor, **options):
    """Draw one heat map per panel of `patterns`, (panels, tokens, tokens); options as in pack()."""
    draw_heatmaps(
        key, patterns, forward_pass.labels, forward_pass.labels, blank="masked", **options
    )


def _weight_table(forward_pass: Pass, pattern: torch.Tensor) -> pd.DataFrame:
    """Return a head's weights that are not masked: query, key, weight, reader, source.

    A row for each; reader and source are the two tokens.
    """
    labels = [word_label(index, label) for index, label in enumerate(forward_pass.labels)]
    tokens = forward_pass.tokens
    rows = [
        (labels[q], labels[k], weight, tokens[q], tokens[k])
        for q, row in enumerate(pattern.tolist())
        for k, weight in enumerate(row)
        if not math.isnan(weight)
    ]
    return pd.DataFrame(rows, columns=["query", "key", "weight", "reader", "source"])


@dataclass(frozen=True)
class Weight:
    """An attention weight, its head, query and key, and the uniform weight of its row."""

    head: int
    query: int
    key: int
    value: float
    uniform: float

    def stands_out(self) -> bool:
        """Whether the weight exceeds 1 / (visible tokens) by at least 0.0005; True for NaN."""
        return not self.value - self.uniform < 0.0005


def find_strongest(forward_pass: Pass, layer: int, patterns: torch.Tensor) -> Weight:
    """Return the weight in patterns (head, query, key) of a layer most above a uniform one.

    Padding is no query; NaN counts least.
    """
    uniform = 1 / forward_pass.allowed_in(layer).sum(-1).clamp_min(1)
    above = (patterns[:, : forward_pass.n_real] - uniform[: forward_pass.n_real, None]).nan_to_num_(
        -1
    )
    head, query, key = (int(index) for index in torch.unravel_index(above.argmax(), above.shape))
    return Weight(head, query, key, patterns[head, query, key].item(), uniform[query].item())


def describe_strongest(forward_pass: Pass, layer: int, weight: Weight, first: int = 0) -> str:
    """Describe `weight`, of head `first` + weight.head (from 0), or attention as near uniform."""
    if not weight.stands_out():
        return "Attention is close to uniform."
    name = forward_pass.head_name(layer, first + weight.head)
    query = forward_pass.labels[weight.query]
    key = forward_pass.labels[weight.key]
    sentence = (
        f"Strongest: {name}, {query} → {key} {weight.value:.3f} (uniform {weight.uniform:.3f})."
    )
    return finite_sentence(sentence, weight.value)


def heads(forward_pass: Pass, look, can_vary_heads: bool = False):
    """Draw entropy, distance, similarity of a layer's heads, or the maps of other head counts.

    Args:
        forward_pass: Pass to draw.
        look: View settings of the page.
        can_vary_heads: Whether the same width can be split into other numbers of heads; False for
            a trained model's own weights.
    """
    if not has_sublayer(forward_pass, "attention", "Attention"):
        return
    draw_picks(
        "layer",
        forward_pass=forward_pass,
        before=[control_of(look, "compare")] if can_vary_heads else [],
    )
    layer = look.layer_of(forward_pass)
    if can_vary_heads and look.compare:
        for number, config in experiment.vary_head_count(forward_pass.config).items():
            _draw_other_heads(forward_pass, layer, number, config)
        return
    table = (
        experiment.measure_heads(forward_pass, layer)
        .pivot(index="head", columns="meter", values="value")
        .reset_index()
    )
    first, second = side_by_side.columns(2)
    with first:
        sentence = (
            "How spread out is each head's attention? Orange marks show uniform attention,"
            f" {table.uniform.iloc[0]:.2f} bits."
        )
        figure(
            "Attention entropy by head",
            finite_sentence(sentence, *table.entropy),
            forward_pass.weights,
        )
        spread = table.rename(columns={"entropy": "value", "uniform": "reference"})
        chart(
            charts.per_head("entropy (bits)", "uniform"),
            spread,
            "Entropy of each head.",
            height=240,
        )
    with second:
        sentence = (
            "How far away does each head attend? Attention-weighted mean distance in tokens. Orange"
            " marks show the mean over heads."
        )
        figure("Attention distance by head", sentence, forward_pass.weights)
        far = table.assign(reference=table.distance.mean()).rename(columns={"distance": "value"})
        spec = charts.per_head("distance (tokens)", "mean over heads")
        chart(spec, far, "Mean distance attended by each head.", height=240)
    alike = experiment.head_similarity(forward_pass, layer)
    n_tokens = len(alike)
    sentence = "There is only one head."
    if n_tokens > 1:
        mean = (alike.sum() - alike.trace()) / (n_tokens * (n_tokens - 1))
        sentence = finite_sentence(
            f"Are the heads redundant? Mean cosine similarity over pairs: {mean:.3f}.", mean
        )
    figure("Similarity of attention patterns", sentence, forward_pass.weights)
    names = [forward_pass.head_name(layer, n) for n in range(n_tokens)]
    words = {
        "quantity": "similarity",
        "alt": "Similarity between heads.",
        "numbers": True,
        "arrow": "and",
    }
    draw_heatmaps("alike", alike[None], names, names, height=320, **words)


def _draw_other_heads(forward_pass: Pass, layer: int, n_heads: int, config):
    """Draw attention with `n_heads` heads and the same weights; a notice if None or refused."""
    if config is None:
        st.info(
            f"d_model {forward_pass.config.d_model} is not divisible by {count(n_heads, 'head')}."
        )
        return
    why = weights_menu[forward_pass.kind].refused(config)
    if why:
        st.info(why)
        return
    other = forward_pass.run_with(config)
    patterns = experiment.patterns(other, layer)
    means = experiment.measure_heads(other, layer).groupby("meter").value.mean()
    sentence = f"Mean entropy {means['entropy']:.2f} bits (uniform: {means['uniform']:.2f})"
    if n_heads > 1:
        spread = torch.nanmean(patterns[:, : other.n_real].std(0, correction=0)).item()
        sentence += f"; mean standard deviation of weights across heads {spread:.3f}"
    sentence += "."
    if config.position != forward_pass.config.position:
        sentence += " No positions here: RoPE needs an even head width."
    title = f"{count(n_heads, 'head')} of width {config.d_head}"
    figure(title, finite_sentence(sentence, means["entropy"]), other.weights)
    titles = [other.head_name(layer, n) for n in range(n_heads)]
    words = {"quantity": "attention weight", "alt": f"Attention with {count(n_heads, 'head')}."}
    _draw_maps(
        f"compare_{n_heads}",
        forward_pass,
        patterns,
        titles=titles,
        height=220 if n_heads <= 4 else 400,
        **words,
    )


def pairs(forward_pass: Pass, look: Picked, text: str):
    """Draw marked pairs of words as arcs, a layer's mean pattern, their weights, and the editor."""
    if not has_sublayer(forward_pass, "attention", "Attention"):
        return
    marked, notes = look.pairs_of(forward_pass, text)
    for note in notes:
        st.warning(literal(note))
    if not side_by_side.is_second_side():
        with (
            side_by_side.shared_rows(),
            st.container(key="mark_pairs"),
            st.popover("Pairs", icon=":material/link:"),
        ):
            _draw_pair_editor(forward_pass, marked)
    draw_picks("layer", forward_pass=forward_pass)
    if not marked:
        none = "No pairs marked yet. Open *Pairs* and choose a word and the word it depends on."
        st.info(none, icon=":material/link:")
        return
    layer = look.layer_of(forward_pass)
    sentence = "Arcs join the marked pairs."
    if forward_pass.n_real > 30:
        sentence += " Only their words are labelled."
    figure("Dependencies between words", sentence, "Marked by hand, not by the model")
    rows: list[tuple[Any, ...]] = []
    for arc, (a, b) in enumerate(marked):
        for step in range(25):
            x = a + (b - a) * step / 24
            y = 4 * (step / 24) * (1 - step / 24) * max(1, abs(b - a))
            rows.append((arc, _format_pair(forward_pass, (a, b)), x, y, step, None))
    ends = {end for pair in marked for end in pair}
    # More than 30 words would run into each other.
    labelled = [
        index for index in range(forward_pass.n_real) if forward_pass.n_real <= 30 or index in ends
    ]
    rows += [(None, None, index, 0.0, 0, forward_pass.labels[index]) for index in labelled]
    table = pd.DataFrame(rows, columns=["arc", "pair", "x", "y", "step", "word"])
    chart(charts.arcs(), table, "Marked pairs as arcs over the sentence.", height=170)
    left, right = side_by_side.columns([3, 2])
    with left:
        title = "Mean attention pattern"
        sentence = "Averaged over heads. Marked pairs are outlined."
        figure(title, sentence, forward_pass.weights)
        mean = experiment.patterns(forward_pass, layer).mean(0, keepdim=True)
        words = {"quantity": "mean weight", "alt": "Attention with the marked pairs outlined."}
        _draw_maps(
            "pairs_map",
            forward_pass,
            mean,
            marks=[list(pair) for pair in marked],
            height=360,
            **words,
        )
    with right:
        table = pair_attention(forward_pass, layer, marked).rename(columns={"uniform": "reference"})
        figure(
            "Attention on the marked pairs",
            _describe_pairs(forward_pass, layer, marked, table),
            forward_pass.weights,
        )
        spec = charts.per_head("attention on marked pairs", "uniform", True)
        chart(spec, table, "Share of attention on the marked pairs, by head.", height=300)


def _describe_pairs(forward_pass: Pass, layer: int, marked, table) -> str:
    """Describe which head attends most to the (query, key) index pairs, or what hides them.

    `table` has head (from 1), value and reference, as shares.
    """
    hidden = [pair for pair in marked if not forward_pass.allowed_in(layer)[pair]]
    outside = sum(
        bool(forward_pass.allowed[pair]) for pair in hidden
    )  # the mask would let them be seen
    by = "the mask"
    if outside:
        by = (
            "the window of this layer"
            if outside == len(hidden)
            else "the mask and the window of this layer"
        )
    if len(hidden) == len(marked):
        return f"{capitalise(by)} hide{'' if ' and ' in by else 's'} all marked pairs."
    best = table.loc[table.value.fillna(0).idxmax()]
    name = forward_pass.head_name(layer, int(best["head"]) - 1)
    sentence = (
        f"Which head attends most to these pairs? {name}: {100 * best.value:.1f} % (orange mark:"
        f" uniform, {100 * best.reference:.1f} %)."
    )
    if hidden:
        are = "is" if len(hidden) == 1 else "are"
        sentence += (
            f" {len(hidden)} of {count(len(marked), 'pair')} {are} hidden by {by} (weight 0)."
        )
    return finite_sentence(sentence, *table.value)


def _draw_pair_editor(forward_pass: Pass, marked):
    """Draw the controls that mark and unmark pairs."""
    words = [
        f"{n} {label}" for n, label in enumerate(forward_pass.labels[: forward_pass.n_real], 1)
    ]
    reader = words.index(st.selectbox("This word", words, index=len(words) - 1, key="pair_from"))
    other = words.index(st.selectbox("depends on", words, key="pair_to"))
    pair = (reader, other)
    useless = reader == other or pair in marked
    st.button("Mark pair", on_click=_add_pair, args=(marked, pair), disabled=useless)
    labels = [write_pairs([pair]) for pair in marked]
    both = dict(zip(labels, distinct([_format_pair(forward_pass, pair) for pair in marked])))
    st.multiselect(
        "Marked pairs",
        labels,
        format_func=both.get,
        placeholder="none yet",
        label_visibility="collapsed",
        **bind("pair_list", labels, _set_pairs),
    )


def _add_pair(marked, pair: tuple[int, int]):
    """Add a (query, key) pair of indices from 0 to the marked ones (a callback)."""
    change(pairs=write_pairs([*marked, pair]))


def _set_pairs(chosen: list[str]):
    """Set the marked pairs to these texts, such as "12-2"; "none" for [] (a callback)."""
    change(pairs=",".join(chosen) or "none")


def _format_pair(forward_pass: Pass, pair: tuple[int, int]) -> str:
    """Format a (query, key) pair of indices as its two words: "was → defendant"."""
    reader, other = pair
    return f"{forward_pass.labels[reader]} → {forward_pass.labels[other]}"


def steps(forward_pass: Pass, look: Picked):
    """Draw one step of a head's computation as a matrix, and controls of layer, head and step."""
    if not has_sublayer(forward_pass, "attention", "Attention"):
        return
    layer = look.layer_of(forward_pass)
    head = look.head_of(forward_pass)
    stages = list_head_steps(forward_pass, layer, head)
    numbers = range(1, len(stages) + 1)
    now = min(look.step, len(stages))
    steps_row = among("Step", "step", now, numbers, list(map(str, numbers))) | {
        "about": [stage.name for stage in stages]
    }
    draw_bar("lens", [*pick_controls("layer", "head", forward_pass=forward_pass), steps_row])
    step = stages[now - 1]
    sentence = step.explanation + _describe_entropies(forward_pass, layer, head, step)
    figure(f"{now}. {step.name}: {step.formula}", sentence, forward_pass.weights)
    by_token = step.columns == "token"
    matrix = step.matrix.masked_fill(step.matrix == -float("inf"), float("nan"))
    columns = forward_pass.labels
    tips = None
    if not by_token:
        columns = [str(n + 1) for n in range(matrix.shape[1])]
        tips = [f"dimension {n}" for n in columns]
    is_softmax = step.name == "Softmax"
    draw_heatmaps(
        f"step_{step.columns}",
        matrix[None],
        forward_pass.labels,
        columns,
        colTips=tips,
        square=by_token,
        quantity="weight" if is_softmax else "value",
        diverging=not is_softmax,
        blank="−∞ (masked)",
        alt=f"{step.name}, one row per token.",
        numbers=True,
        height=470,
    )


def _describe_entropies(forward_pass: Pass, layer: int, head: int, step) -> str:
    """Return, after a space, a sentence on entropy with and without scaling; "" at other steps."""
    if step.name not in ("Raw scores", "Scaled scores", "Softmax"):
        return ""
    bits = entropy_by_scaling(forward_pass, layer, head)
    config = forward_pass.config
    softmax = lower_first(MENUS["softmax"].label(config.softmax))
    left = "" if config.part("softmax").sums_to_one else ", weights summing to 1"
    return " " + finite_sentence(
        f"Entropy of this head's {softmax}: {bits['scaled']:.2f} bits with scores divided by"
        f" √{config.d_head}, {bits['unscaled']:.2f} bits without; uniform{left}:"
        f" {bits['uniform']:.2f}.",
        *bits.values(),
    )
