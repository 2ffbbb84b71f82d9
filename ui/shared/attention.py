"""Views of attention in one pass, on the pages One block and Trained model."""

import math
from functools import partial

import pandas as pd
import streamlit as st
import torch

from core.experiments.block import attention as experiment
from core.experiments.block.attention import scaling, walk
from core.experiments.block.dependencies import share, write_pairs
from core.experiments.weights import weights as weights_menu
from core.figures import charts
from core.model.parts import MENUS
from core.settings.wording import count, distinct, in_sentence
from ui.kit import beside
from ui.kit.page import capital, chart, figure, literal
from ui.kit.panel.control import numbered, of, tabs
from ui.kit.panel.panel import bar
from ui.kit.store import bind, change
from ui.pictures.heatmaps import heatmaps, lines
from ui.shared.base import maps as menu
from ui.shared.base import needs, pick, picks, sure, weights


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


def pairs(forward_pass, look, text: str):
    """How much attention falls on words that belong together."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    marked, notes = look.pairs_of(forward_pass, text)
    for note in notes:
        st.warning(literal(note))
    if not beside.second():
        with beside.above():
            _editor(forward_pass, marked)
    if not marked:
        st.info(
            "No pair is marked yet. Choose a word and the word it depends on, then mark the pair.",
            icon=":material/link:",
        )
        return
    pick("layer", forward_pass=forward_pass)
    layer = look.layer_of(forward_pass)
    _marked_arcs(forward_pass, marked)
    left, right = beside.columns([3, 2])
    with left:
        _marked_map(forward_pass, layer, marked)
    with right:
        _marked_share(forward_pass, layer, marked)


def _marked_share(forward_pass, layer, marked):
    table = share(forward_pass, layer, marked).rename(columns={"uniform": "reference"})
    hidden = [pair for pair in marked if not forward_pass.allowed_in(layer)[pair]]
    outside = sum(bool(forward_pass.allowed[pair]) for pair in hidden)  # the mask would let them be seen
    figure(
        "Does any head look there?",
        _verdict(
            table, len(marked), len(hidden), _forbidden_by(len(hidden), outside), partial(forward_pass.head_name, layer)
        ),
        weights(forward_pass),
    )
    chart(charts.per_head("attention on marked pairs", "even spread", True), table, "Share of attention on the marked pairs, by head.", height=300)  # fmt: skip


def _marked_arcs(forward_pass, marked):
    figure(
        "Which words depend on which?",
        "Arcs join the marked pairs." + " Only their words are shown." * (forward_pass.n_real > 30),
        "Marked by hand, not by the model",
    )
    chart(charts.arcs(), _arcs(forward_pass, marked), "Marked pairs as arcs over the sentence.", height=170)


def _marked_map(forward_pass, layer, marked):
    figure(
        "Where do the marked pairs lie in the attention map?",
        "Average over heads; marked pairs are outlined.",
        weights(forward_pass),
    )
    heatmaps(
        "pairs_map", experiment.patterns(forward_pass, layer).mean(0, keepdim=True), forward_pass.labels, forward_pass.labels,
        what="mean weight", blank="masked", alt="Attention with the marked pairs outlined.", marks=[list(pair) for pair in marked], height=360,
    )  # fmt: skip


def _forbidden_by(hidden: int, outside: int) -> str:
    """Name what hides pairs: the mask, the layer's window, or both. outside: how many are hidden by the window alone."""
    if outside == hidden:
        return "the window of this layer"
    return "the mask and the window of this layer" if outside else "the mask"


def _verdict(table, marked, hidden, by, name) -> str:
    """What the shares say, in words. by: what hides pairs. name: of a head, from 0."""
    if hidden == marked:
        return f"{capital(by)} forbid{'' if ' and ' in by else 's'} all marked pairs: their readers may not look there."
    best = table.loc[table.value.fillna(0).idxmax()]
    ratio = best.value / best.reference
    words = "more than" if ratio > 1.05 else "less than" if ratio < 0.95 else "about as much as"
    return sure(
        f"{capital(name(int(best['head']) - 1))} most: {best.value:.1%} of the marked readers' attention, {words} an even spread would "
        f"give ({best.reference:.1%}, the line)."
        + f" {hidden} of {count(marked, 'pair')} {'is' if hidden == 1 else 'are'} forbidden by {by}, and taken as 0."
        * (hidden > 0),
        *table.value,
    )


def _editor(forward_pass, marked):
    """Mark and unmark pairs."""
    words = [f"{n} {label}" for n, label in enumerate(forward_pass.labels[: forward_pass.n_real], 1)]
    left, right, button = st.columns([2, 2, 1], vertical_alignment="bottom")
    with left:
        reader = words.index(st.selectbox("This word", words, index=len(words) - 1, key="pair_from"))
    with right:
        other = words.index(st.selectbox("depends on", words, key="pair_to"))
    with button:
        pair = (reader, other)
        st.button(
            "Mark pair",
            on_click=_mark,
            args=(marked, pair),
            disabled=reader == other or pair in marked,
            width="stretch",
        )
    labels = [write_pairs([pair]) for pair in marked]
    both = dict(zip(labels, distinct([_words(forward_pass, pair) for pair in marked])))
    st.multiselect(
        "Marked pairs",
        labels,
        format_func=both.get,
        **bind("pair_list", labels, _keep),
        placeholder="none yet",
        label_visibility="collapsed",
    )


def _mark(marked, pair):
    change(pairs=write_pairs([*marked, pair]))


def _keep(chosen: list[str]):
    change(pairs=",".join(chosen) or "none")


def _arcs(forward_pass, marked) -> pd.DataFrame:
    rows = []
    for arc, (a, b) in enumerate(marked):
        for step in range(25):
            share_ = step / 24
            x = a + (b - a) * share_
            rows.append(
                (
                    arc,
                    _words(forward_pass, (a, b)),
                    x,
                    4 * share_ * (1 - share_) * max(1, abs(b - a)),
                    step,
                    None,
                )
            )
    ends = {end for pair in marked for end in pair}
    shown = [
        at for at in range(forward_pass.n_real) if forward_pass.n_real <= 30 or at in ends
    ]  # more would run into each other
    rows += [(None, None, at, 0.0, 0, forward_pass.labels[at]) for at in shown]
    return pd.DataFrame(rows, columns=["arc", "pair", "x", "y", "step", "word"])


def _words(forward_pass, pair) -> str:
    """Name a pair by its words."""
    reader, other = pair
    return f"{forward_pass.labels[reader]} → {forward_pass.labels[other]}"


def steps(forward_pass, look):
    """One head by hand, from queries to output."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    layer, head = look.layer_of(forward_pass), look.head_of(forward_pass)
    stages = walk(forward_pass, layer, head)
    names = [f"{n} {stage.name}" for n, stage in enumerate(stages, 1)]
    bar("lens", picks("layer", "head", forward_pass=forward_pass), [numbered("Step", "step", names)])
    step = stages[min(look.step, len(stages)) - 1]
    figure(
        f"{look.step}. {step.name}: {step.formula}",
        step.explanation + _entropies(forward_pass, layer, head, step),
        weights(forward_pass),
    )
    by_token = step.columns == "token"
    matrix = step.matrix.masked_fill(step.matrix == -float("inf"), float("nan"))
    heatmaps(
        f"step_{step.columns}",
        matrix[None],
        forward_pass.labels,
        forward_pass.labels if by_token else [str(n + 1) for n in range(matrix.shape[1])],
        colTips=None if by_token else [f"dimension {n + 1}" for n in range(matrix.shape[1])],
        what="weight" if step.name == "Softmax" else "value",
        alt=f"{step.name}, one row per token.",
        diverging=step.name != "Softmax",
        square=by_token,
        numbers=True,
        blank="minus infinity: may not look",
        height=470,
    )


def _entropies(forward_pass, layer, head, step) -> str:
    if step.name not in ("Raw scores", "Scaled scores", "Softmax"):
        return ""
    bits, config = scaling(forward_pass, layer, head), forward_pass.config
    softmax = in_sentence(MENUS["softmax"].label(config.softmax))
    left = "" if config.part("softmax").sums_to_one else ", with nothing left over,"
    return " " + sure(
        f"Entropy of this head's {softmax}: {bits['scaled']:.2f} bits with scores divided by √{config.d_head}, "
        f"{bits['unscaled']:.2f} bits without; attending evenly{left} would be {bits['uniform']:.2f}.",
        *bits.values(),
    )


ALTAIR_UP_TO = 64  # tokens; a picked head larger than this stays on the canvas


def attention(forward_pass, look):
    """Who reads from whom, head by head."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    layer, head = look.layer_of(forward_pass), look.head_of(forward_pass)
    patterns = experiment.patterns(forward_pass, layer)
    one = ["head"] if look.maps in ("one", "lines") else []
    pick("layer", *one, forward_pass=forward_pass, before=[tabs("Picture", menu, "maps")])
    SHOWN[look.maps](forward_pass, patterns, layer, head)


def sharpest(forward_pass, layer, patterns, first: int = 0) -> str:
    """The weight that stands out most from an even spread, in words."""
    even = 1 / forward_pass.allowed_in(layer).sum(-1).clamp_min(1)
    above = (patterns[:, : forward_pass.n_real] - even[: forward_pass.n_real, None]).nan_to_num_(-1)
    head, rest = divmod(int(above.argmax()), above[0].numel())
    reader, source = divmod(rest, above.shape[2])
    left = "" if forward_pass.config.part("softmax").sums_to_one else ", with nothing left over,"
    if above[head, reader, source] < 0.0005:
        return "No weight stands out from an even spread."
    return sure(
        f"Stands out most: in {forward_pass.head_name(layer, first + head)}, “{forward_pass.labels[reader]}” puts {patterns[head, reader, source]:.3f} of its "
        f"attention on “{forward_pass.labels[source]}”; an even spread{left} would be {even[reader]:.3f}.",
        patterns[head, reader, source],
    )


def all_heads(forward_pass, patterns, layer, head):
    at_most = "" if forward_pass.config.part("softmax").sums_to_one else "at most "
    figure(
        "Who reads from whom?"
        + f" Each row is one word reading, and adds up to {at_most}1. Click a head to open it." * beside.alone(),
        sharpest(forward_pass, layer, patterns),
        weights(forward_pass),
    )
    heatmaps(
        "all_heads",
        patterns,
        forward_pass.labels,
        forward_pass.labels,
        titles=[forward_pass.head_name(layer, n) for n in range(len(patterns))],
        what="attention weight, row reads column",
        blank="masked",
        alt=f"Attention maps of {count(len(patterns), 'head')} over {count(len(forward_pass.tokens), 'token')}.",
        height=500,
        on_pick=lambda panel, row, column: change(maps="one", head=panel + 1),
    )


def one_head(forward_pass, patterns, layer, head):
    """The picked head, large."""
    name = forward_pass.head_name(layer, head)
    figure(
        f"{capital(name)}: who reads from whom?",
        sharpest(forward_pass, layer, patterns[head : head + 1], head),
        weights(forward_pass),
    )
    if len(forward_pass.tokens) > ALTAIR_UP_TO:
        heatmaps(
            "one_head",
            patterns[head : head + 1],
            forward_pass.labels,
            forward_pass.labels,
            what="attention weight, row reads column",
            blank="masked",
            alt=f"Attention map of {name}.",
            height=620,
        )
        return
    rows = [
        (
            charts.word(q, forward_pass.labels[q]),
            charts.word(k, forward_pass.labels[k]),
            value,
            forward_pass.tokens[q],
            forward_pass.tokens[k],
        )
        for q, row in enumerate(patterns[head].tolist())
        for k, value in enumerate(row)
        if not math.isnan(value)
    ]
    table = pd.DataFrame(rows, columns=["query", "key", "weight", "reader", "source"])
    dense = len(forward_pass.tokens) <= 32
    chart(charts.attention_map(dense), table, f"Attention map of {name}", height=470)


def averaged(forward_pass, patterns, layer, head):
    figure(f"Who reads from whom, on average over {count(len(patterns), 'head')}?", "", weights(forward_pass))
    heatmaps("average", patterns.mean(0, keepdim=True), forward_pass.labels, forward_pass.labels, what="mean attention weight, row reads column", blank="masked", alt="Attention averaged over the heads.", height=520, numbers=True)  # fmt: skip


def as_lines(forward_pass, patterns, layer, head):
    name = forward_pass.head_name(layer, head)
    figure(f"{capital(name)}: thicker means more attention. Point at a word on the left.", "", weights(forward_pass))
    lines(
        "lines",
        patterns[head],
        forward_pass.labels,
        alt=f"Lines from each token to those it reads, {name}.",
        height=470,
    )


SHOWN = {"heads": all_heads, "one": one_head, "average": averaged, "lines": as_lines}
