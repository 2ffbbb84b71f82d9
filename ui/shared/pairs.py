from functools import partial

import pandas as pd
import streamlit as st

from core.experiments.block import attention as experiment
from core.experiments.block.attention import share, write_pairs
from core.figures.charts import attention as charts
from core.settings.wording import count, distinct
from ui.kit import beside
from ui.kit.page import capital, chart, figure, literal
from ui.kit.store import bind, change
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import needs, pick, sure, weights


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
