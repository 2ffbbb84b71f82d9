import pandas as pd
import streamlit as st

from core import charts
from core.experiments import attention as experiment
from core.experiments.dependencies import share, write_pairs
from ui.controls import put
from ui.heatmaps import heatmaps
from ui.page import chart, figure, literal
from ui.views.base import needs, views, weights


@views
def pairs(seen, look):
    """Marked pairs: how much attention falls on words that belong together."""
    if not needs(seen, "attention", "Attention"):
        return
    text = st.session_state.text
    marked, notes = look.pairs_of(seen, text)
    for note in notes:
        st.warning(literal(note))
    _editor(seen, marked)
    if not marked:
        st.info(
            "No pair is marked yet. Choose a word and the word it depends on, then mark the pair.",
            icon=":material/link:",
        )
        return
    layer = look.layer_of(seen)
    table = share(seen, layer, marked).rename(columns={"uniform": "reference"})
    best = table.loc[table.value.idxmax()]
    verdict = (
        "more than"
        if best.value > 1.05 * best.reference
        else "about what"
        if best.value > 0.95 * best.reference
        else "less than"
    )
    verdict += " an even spread gives" if verdict == "about what" else " an even spread"
    figure("Which words depend on which?", "Arcs join the marked pairs.", "Marked by hand, not by the model")
    chart(charts.arcs(), _arcs(seen, marked), "Marked pairs as arcs over the sentence.", height=170)
    left, right = st.columns([3, 2])
    with left:
        figure(
            "Where do the marked pairs lie in the attention map?",
            "Average over heads; marked pairs are outlined.",
            weights(seen),
        )
        heatmaps(
            "pairs_map", experiment.patterns(seen, layer).mean(0, keepdim=True), seen.labels, seen.labels,
            what="mean weight", alt="Attention with the marked pairs outlined.", marks=[list(pair) for pair in marked], height=360,
        )  # fmt: skip
    with right:
        figure(
            "Does any head look there?",
            f"Head {best['head']:.0f} most: {best.value:.1%} of the marked readers' attention, {verdict} ({best.reference:.1%}, the line).",
            weights(seen),
        )
        chart(charts.per_head("attention on marked pairs", "even spread", True), table, "Share of attention on the marked pairs, by head.", height=300)  # fmt: skip


def _editor(seen, marked):
    """Mark and unmark pairs."""
    name = lambda n: f"{n} {seen.labels[n - 1]}"  # noqa: E731
    words = range(1, seen.n_real + 1)
    for key in ("pair_from", "pair_to"):
        if st.session_state.get(key, 1) not in words:
            st.session_state[key] = 1
    columns = st.columns([2, 2, 1], vertical_alignment="bottom")
    with columns[0]:
        st.selectbox("This word", words, format_func=name, key="pair_from")
    with columns[1]:
        st.selectbox("depends on", words, format_func=name, key="pair_to")
    with columns[2]:
        st.button("Mark pair", on_click=_mark, args=(marked,), width="stretch")
    labels = [write_pairs([pair]) for pair in marked]
    st.session_state.pair_list = labels
    both = {label: f"{seen.labels[a]} → {seen.labels[b]}" for label, (a, b) in zip(labels, marked)}
    st.multiselect(
        "Marked pairs",
        labels,
        format_func=both.get,
        key="pair_list",
        on_change=_keep,
        placeholder="none yet",
        label_visibility="collapsed",
    )


def _mark(marked):
    pair = (st.session_state.pair_from - 1, st.session_state.pair_to - 1)
    put(pairs=write_pairs([*marked, *([] if pair in marked else [pair])]))


def _keep():
    put(pairs=",".join(st.session_state.pair_list) or "none")


def _arcs(seen, marked) -> pd.DataFrame:
    rows = []
    for a, b in marked:
        for step in range(25):
            share_ = step / 24
            x = a + (b - a) * share_
            rows.append(
                (f"{seen.labels[a]} → {seen.labels[b]}", x, 4 * share_ * (1 - share_) * max(1, abs(b - a)), step, None)
            )
    rows += [(None, at, 0.0, 0, word) for at, word in enumerate(seen.labels[: seen.n_real])]
    return pd.DataFrame(rows, columns=["pair", "x", "y", "step", "word"])
