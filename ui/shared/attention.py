"""Views of attention in one pass, on the pages One block and Trained model."""

import math

import pandas as pd
import streamlit as st
import torch

from core.experiments.block import attention as experiment
from core.experiments.block.attention import scaling, share, walk, write_pairs
from core.experiments.weights import weights as weights_menu
from core.figures.charts import attention as charts
from core.figures.spec import word
from core.model.parts import MENUS
from core.settings.wording import count, distinct, in_sentence
from ui.kit import beside
from ui.kit.page import capital, chart, figure, literal
from ui.kit.panel.control import among, of, tabs
from ui.kit.panel.panel import bar
from ui.kit.store import bind, change
from ui.pictures.heatmaps import heatmaps, lines
from ui.shared.base import maps as menu
from ui.shared.base import needs, pick, picks, sure

ALTAIR_UP_TO = 64  # tokens; a picked head larger than this stays on the canvas


def attention(forward_pass, look):
    """Draw which token reads from which, head by head."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    layer, head = look.layer_of(forward_pass), look.head_of(forward_pass)
    patterns = experiment.patterns(forward_pass, layer)  # (head, query, key)
    one = ["head"] if look.maps in ("one", "lines") else []
    pick("layer", *one, forward_pass=forward_pass, before=[tabs("Picture", menu, "maps")])
    name = forward_pass.head_name(layer, head)
    weights = "attention weight, row reads column"
    if look.maps == "heads":
        at_most = "" if forward_pass.config.part("softmax").sums_to_one else "at most "
        title = "Who reads from whom?"
        if beside.alone():
            title += f" Each row is one word reading, and adds up to {at_most}1. Click a head to open it."
        figure(title, sharpest(forward_pass, layer, patterns), forward_pass.weights)
        alt = f"Attention maps of {count(len(patterns), 'head')} over {count(len(forward_pass.tokens), 'token')}."
        titles = [forward_pass.head_name(layer, n) for n in range(len(patterns))]
        open_head = lambda panel, row, column: change(maps="one", head=panel + 1)  # noqa: E731
        _maps("all_heads", forward_pass, patterns, titles=titles, what=weights, alt=alt, height=500, on_pick=open_head)
    elif look.maps == "one":
        chosen = patterns[head : head + 1]
        said = sharpest(forward_pass, layer, chosen, head)
        figure(f"{capital(name)}: who reads from whom?", said, forward_pass.weights)
        if len(forward_pass.tokens) > ALTAIR_UP_TO:
            _maps("one_head", forward_pass, chosen, what=weights, alt=f"Attention map of {name}.", height=620)
        else:
            _large_map(forward_pass, patterns[head], name)
    elif look.maps == "average":
        figure(f"Who reads from whom, on average over {count(len(patterns), 'head')}?", "", forward_pass.weights)
        words = {"what": f"mean {weights}", "alt": "Attention averaged over the heads.", "numbers": True}
        _maps("average", forward_pass, patterns.mean(0, keepdim=True), height=520, **words)
    else:
        title = f"{capital(name)}: thicker means more attention. Point at a word on the left."
        figure(title, "", forward_pass.weights)
        alt = f"Lines from each token to those it reads, {name}."
        lines("lines", patterns[head], forward_pass.labels, alt=alt, height=470)


def _maps(key: str, forward_pass, patterns, **words):
    """Draw matrices of tokens by tokens."""
    heatmaps(key, patterns, forward_pass.labels, forward_pass.labels, blank="masked", **words)


def _large_map(forward_pass, pattern, name: str):
    """Draw the pattern of one head as a chart."""
    labels = [word(at, label) for at, label in enumerate(forward_pass.labels)]
    tokens = forward_pass.tokens
    rows = [
        (labels[q], labels[k], weight, tokens[q], tokens[k])
        for q, row in enumerate(pattern.tolist())
        for k, weight in enumerate(row)
        if not math.isnan(weight)
    ]
    table = pd.DataFrame(rows, columns=["query", "key", "weight", "reader", "source"])
    chart(charts.attention_map(len(tokens) <= 32), table, f"Attention map of {name}", height=470)


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


def heads(forward_pass, look, recut: bool = False):
    """Draw what each head does differently.

    Args:
        recut: Whether the same width can be cut up into other heads, as that of a trained model cannot.
    """
    if not needs(forward_pass, "attention", "Attention"):
        return
    pick("layer", forward_pass=forward_pass, before=[of(look, "compare")] if recut else [])
    layer = look.layer_of(forward_pass)
    if recut and look.compare:
        for number, config in experiment.recut(forward_pass.config).items():
            _compared(forward_pass, layer, number, config)
        return
    table = experiment.heads(forward_pass, layer).pivot(index="head", columns="meter", values="value").reset_index()
    first, second = beside.columns(2)
    with first:
        said = f"Entropy in bits; line: attending evenly, {table.uniform.iloc[0]:.2f}."
        figure("How spread out is each head's attention?", sure(said, *table.entropy), forward_pass.weights)
        spread = table.rename(columns={"entropy": "value", "uniform": "reference"})
        chart(charts.per_head("entropy (bits)", "attending evenly"), spread, "Entropy of each head.", height=240)
    with second:
        said = "Mean distance in tokens, weighted by attention; line: mean over heads."
        figure("How far away does each head look?", said, forward_pass.weights)
        far = table.assign(reference=table.distance.mean()).rename(columns={"distance": "value"})
        spec = charts.per_head("tokens away", "mean over heads")
        chart(spec, far, "Mean distance attended by each head.", height=240)
    alike = experiment.similarity(forward_pass, layer)
    many = len(alike)
    said = "There is only one head."
    if many > 1:
        mean = (alike.sum() - alike.trace()) / (many * (many - 1))
        said = sure(f"Cosine similarity of their maps, {mean:.3f} on average over pairs.", mean)
    figure("Do the heads do the same?", said, forward_pass.weights)
    names = [forward_pass.head_name(layer, n) for n in range(many)]
    words = {"what": "similarity", "alt": "Similarity between heads.", "numbers": True, "arrow": "and"}
    heatmaps("alike", alike[None], names, names, height=320, **words)


def _compared(forward_pass, layer, number, config):
    """Draw the same sentence with another number of heads; the same initial weights, cut up differently."""
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
    said = f"Entropy {means['entropy']:.2f} bits on average (evenly: {means['uniform']:.2f})"
    if number > 1:
        spread = torch.nanmean(patterns[:, : other.n_real].std(0, correction=0)).item()
        said += f"; the heads' weights differ by {spread:.3f} (standard deviation) on average"
    said += "."
    if config.position != forward_pass.config.position:
        said += " Without positions here: RoPE needs an even head size."
    title = f"{count(number, 'head')} of {count(config.d_head, 'number')}"
    figure(title, sure(said, means["entropy"]), other.weights)
    titles = [other.head_name(layer, n) for n in range(number)]
    words = {"what": "attention weight", "alt": f"Attention with {count(number, 'head')}."}
    _maps(f"compare_{number}", forward_pass, patterns, titles=titles, height=220 if number <= 4 else 400, **words)


def pairs(forward_pass, look, text: str):
    """Draw how much attention falls on words that belong together."""
    if not needs(forward_pass, "attention", "Attention"):
        return
    marked, notes = look.pairs_of(forward_pass, text)
    for note in notes:
        st.warning(literal(note))
    if not beside.second():
        with beside.above():
            _editor(forward_pass, marked)
    if not marked:
        none = "No pair is marked yet. Choose a word and the word it depends on, then mark the pair."
        st.info(none, icon=":material/link:")
        return
    pick("layer", forward_pass=forward_pass)
    layer = look.layer_of(forward_pass)
    said = "Arcs join the marked pairs." + " Only their words are shown." * (forward_pass.n_real > 30)
    figure("Which words depend on which?", said, "Marked by hand, not by the model")
    rows = []
    for arc, (a, b) in enumerate(marked):
        for step in range(25):
            x = a + (b - a) * step / 24
            y = 4 * (step / 24) * (1 - step / 24) * max(1, abs(b - a))
            rows.append((arc, _words(forward_pass, (a, b)), x, y, step, None))
    ends = {end for pair in marked for end in pair}
    # More than 30 words would run into each other.
    shown = [at for at in range(forward_pass.n_real) if forward_pass.n_real <= 30 or at in ends]
    rows += [(None, None, at, 0.0, 0, forward_pass.labels[at]) for at in shown]
    table = pd.DataFrame(rows, columns=["arc", "pair", "x", "y", "step", "word"])
    chart(charts.arcs(), table, "Marked pairs as arcs over the sentence.", height=170)
    left, right = beside.columns([3, 2])
    with left:
        title, said = (
            "Where do the marked pairs lie in the attention map?",
            "Average over heads; marked pairs are outlined.",
        )
        figure(title, said, forward_pass.weights)
        mean = experiment.patterns(forward_pass, layer).mean(0, keepdim=True)
        words = {"what": "mean weight", "alt": "Attention with the marked pairs outlined."}
        _maps("pairs_map", forward_pass, mean, marks=[list(pair) for pair in marked], height=360, **words)
    with right:
        table = share(forward_pass, layer, marked).rename(columns={"uniform": "reference"})
        figure("Does any head look there?", _verdict(forward_pass, layer, marked, table), forward_pass.weights)
        spec = charts.per_head("attention on marked pairs", "even spread", True)
        chart(spec, table, "Share of attention on the marked pairs, by head.", height=300)


def _verdict(forward_pass, layer: int, marked, table) -> str:
    """Return what the shares of attention on the marked pairs say, in words."""
    hidden = [pair for pair in marked if not forward_pass.allowed_in(layer)[pair]]
    outside = sum(bool(forward_pass.allowed[pair]) for pair in hidden)  # the mask would let them be seen
    by = "the mask"
    if outside:
        by = "the window of this layer" if outside == len(hidden) else "the mask and the window of this layer"
    if len(hidden) == len(marked):
        return f"{capital(by)} forbid{'' if ' and ' in by else 's'} all marked pairs: their readers may not look there."
    best = table.loc[table.value.fillna(0).idxmax()]
    ratio = best.value / best.reference
    words = "more than" if ratio > 1.05 else "less than" if ratio < 0.95 else "about as much as"
    said = (
        f"{capital(forward_pass.head_name(layer, int(best['head']) - 1))} most: {best.value:.1%} of the marked readers' "
        f"attention, {words} an even spread would give ({best.reference:.1%}, the line)."
    )
    if hidden:
        are = "is" if len(hidden) == 1 else "are"
        said += f" {len(hidden)} of {count(len(marked), 'pair')} {are} forbidden by {by}, and taken as 0."
    return sure(said, *table.value)


def _editor(forward_pass, marked):
    """Draw what marks and unmarks pairs."""
    words = [f"{n} {label}" for n, label in enumerate(forward_pass.labels[: forward_pass.n_real], 1)]
    left, right, button = st.columns([2, 2, 1], vertical_alignment="bottom")
    with left:
        reader = words.index(st.selectbox("This word", words, index=len(words) - 1, key="pair_from"))
    with right:
        other = words.index(st.selectbox("depends on", words, key="pair_to"))
    with button:
        pair = (reader, other)
        useless = reader == other or pair in marked
        st.button("Mark pair", on_click=_mark, args=(marked, pair), disabled=useless, width="stretch")
    labels = [write_pairs([pair]) for pair in marked]
    both = dict(zip(labels, distinct([_words(forward_pass, pair) for pair in marked])))
    st.multiselect(
        "Marked pairs", labels, format_func=both.get, placeholder="none yet", label_visibility="collapsed",
        **bind("pair_list", labels, _keep),
    )  # fmt: skip


def _mark(marked, pair):
    change(pairs=write_pairs([*marked, pair]))


def _keep(chosen: list[str]):
    change(pairs=",".join(chosen) or "none")


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
    now = min(look.step, len(stages))
    bar(
        "lens",
        picks("layer", "head", forward_pass=forward_pass),
        [among("Step", "step", now, range(1, len(stages) + 1), names)],
    )
    step = stages[now - 1]
    said = step.explanation + _entropies(forward_pass, layer, head, step)
    figure(f"{look.step}. {step.name}: {step.formula}", said, forward_pass.weights)
    by_token = step.columns == "token"
    matrix = step.matrix.masked_fill(step.matrix == -float("inf"), float("nan"))
    columns, tips = forward_pass.labels, None
    if not by_token:
        columns = [str(n + 1) for n in range(matrix.shape[1])]
        tips = [f"dimension {n}" for n in columns]
    is_softmax = step.name == "Softmax"
    heatmaps(
        f"step_{step.columns}", matrix[None], forward_pass.labels, columns, colTips=tips, square=by_token,
        what="weight" if is_softmax else "value", diverging=not is_softmax, blank="minus infinity: may not look",
        alt=f"{step.name}, one row per token.", numbers=True, height=470,
    )  # fmt: skip


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
