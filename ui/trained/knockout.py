import math

import pandas as pd
import streamlit as st

from core.experiments.trained import contributions, effects, tables
from core.experiments.trained.knockout import ENOUGH
from core.experiments.training.sentences import decimals_of, percent, points
from core.measure.intervals import apart
from core.model.knockout import Cut, mode, name_of
from core.model.knockout import part as parts
from core.settings.wording import aligned, count, fixed, number
from ui.kit import pins
from ui.kit.page import figure, literal, small_table
from ui.kit.store import is_moved
from ui.kit.takeaway import note
from ui.pictures import drawing
from ui.pictures.curves import Line, Panel, curves
from ui.trained.context import WHOLE, switch, take_out, view
from ui.trained.words import consequence, scores_of

NOBODY = "No part that comes after the cut is shown to add more to the logit difference than before."
TELLS = 0.05  # of what was lost: a rise that is less is not called a takeover


@view
def knockout(context):
    """Knock-out: how much worse the model gets without what was taken out, and whether another part takes over."""
    if not context.cuts:
        _nothing(context)
        return
    left, right = st.columns([3, 7], gap="medium")
    effect, baseline = context.effect, context.bench.baseline
    table = tables.told(effect, baseline)
    with right:
        _next_word(context)
        figure(
            f"What does it cost to take out {name_of(context.cuts).replace('− ', '')}?",
            _finding(context, table),
            f"Over {context.bench.questions.what}: {context.bench.questions.asks}",
            words=[effects.effect.label(name) for name in effects.effect],
        )
        _effects(table)
        _took_over(context)
        _by_distance(context)
    with left:
        layer = max(cut.layer for cut in context.cuts)
        drawing.block(context.whole, layer, key="knife", knocked=context.cuts, on_pick=switch, sets="out")
        st.caption(literal(_where(context)))


def _next_word(context):
    """What becomes of this very text: a consequence that can be read."""
    if context.language:
        figure(f"What comes after “{context.prompt.labels[context.after]}”?", consequence(context, scores_of(context)))


def _nothing(context):
    if not is_moved("out"):
        st.info("The link with which this was opened keeps the model whole.", icon=":material/lock:")
        return
    st.info(
        "Nothing is knocked out yet: choose a part above"
        + ", or take the head that reads the subject." * bool(context.readings),
        icon=":material/content_cut:",
    )
    for each in context.readings[:1]:
        cut = Cut(each.layer, "head", each.head)
        st.button(
            f"Remove {cut.name}, which puts {each.verb.mean:.2f} of its verb's attention on the subject",
            on_click=take_out,
            args=(cut.write(),),
            type="primary",
            key="remove_reader",
        )


def _where(context) -> str:
    """Where the knife goes, in words."""
    kinds = dict.fromkeys(cut.part for cut in context.cuts)
    where = " ".join(f"{parts.label(kind)}: {parts.help(kind)}" for kind in kinds)
    return f"{where} In its place, {mode.label(context.mode).lower()}: {mode.help(context.mode)}{_shared_mean(context)}"


def _shared_mean(context) -> str:
    """Say from which token on the mean is not one of its position alone."""
    bench = context.bench
    own, longest = bench.positions_with_means, max(bench.questions.tokens.shape[1], len(context.prompt.ids))
    if context.mode != "mean" or own >= longest:
        return ""
    return f" Tokens from number {own + 1} on share one mean: fewer than {ENOUGH} texts are that long."


def _finding(context, table) -> str:
    by = table.set_index("effect")
    right, chance, gap = by.loc["accuracy"], by.loc["probability"], by.loc["difference"]
    texts = count(int(right.texts), "text")
    if right.change == 0:
        sentence = f"Accuracy stays at {percent(right.whole)} on {texts}."
    elif not apart(right.low, right.high):
        fine = decimals_of([right.change])
        sentence = f"Accuracy goes from {percent(right.whole, fine)} to {percent(right.without, fine)}, a change that cannot be told from noise: {points(right.change)} points (95 % interval {points(right.low)} to {points(right.high)}, {texts})."
    else:
        way, fine = "falls" if right.change < 0 else "rises", decimals_of([right.change])
        sentence = f"Accuracy {way} from {percent(right.whole, fine)} to {percent(right.without, fine)}: {points(right.change)} points (95 % interval {points(right.low)} to {points(right.high)}, {texts})."
    sentence += f" Guessing gets {percent(context.bench.questions.guessing)}." if context.bench.questions.among else ""
    sentence += f" Probability of the right word: {number(chance.whole)} → {number(chance.without)}. Logit difference: {number(gap.whole)} → {number(gap.without)}"
    return sentence + f" ({number(gap.change)}, {number(gap.low)} to {number(gap.high)})."


def _effects(table):
    """Every effect with its interval, in words. (Lists, and one table at the end: pandas is slow at single cells.)"""
    rows = []
    for row in table.itertuples():
        label, known = effects.effect.label(row.effect), effects.effect[row.effect]
        if known.distance:
            without, low, high = aligned([row.without, row.low, row.high])
            changed = f"{without}  [{low}, {high}] {known.unit}".rstrip()
            rows.append((label, number(row.whole), changed, "–", "–"))
            continue
        unit, word = (" %", " points") if known.share else ("", f" {known.unit}".rstrip())
        ends = _written([row.whole, row.without], known.share)
        change, low, high = _written([row.change, row.low, row.high], known.share)
        rows.append((label, f"{ends[0]}{unit}", f"{ends[1]}{unit}", f"{change}{word}  [{low}, {high}]", _chance(row.p)))
    names = ["effect", "whole model", "without", "change  [95 % interval]", "p"]
    small_table(pd.DataFrame(rows, columns=names), "What the knock-out costs.", taken=table)


def _written(values: list[float], share: bool) -> list[str]:
    """Write numbers that stand together with the same decimals. share: in percentage points."""
    if not share:
        return aligned(values)
    decimals = decimals_of(values)
    return [points(value, decimals) for value in values]


def _chance(p: float) -> str:
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else fixed(p, 3)


def _took_over(context):
    """Which part after the cut moves the answer more than it did."""
    changes = contributions.takeover(context.bench, context.cuts, context.mode)
    title = "Did another part take over?"
    if changes.empty:
        figure(
            title, "None could: no part comes after the cut, and what stands before or beside it writes what it wrote."
        )
        return
    did, sentence = _taken_over(context, changes)
    figure(title, sentence)
    note("every part that comes after the cut", lambda: changes)
    if not did:
        return  # rows of noise say no more
    first = changes.head(6)
    written = iter(aligned(first[["change", "low", "high"]].to_numpy().flatten()))
    spans = [f"{change}  [{low}, {high}]" for change, low, high in zip(written, written, written)]
    rows = list(zip(first["name"], aligned(first.before), aligned(first.after), spans, map(_chance, first.p)))
    names = ["part", "adds, whole model", "adds now", "change  [95 % interval]", "p, corrected (Holm)"]
    small_table(pd.DataFrame(rows, columns=names), "Who took over.", taken=changes)


def _taken_over(context, changes) -> tuple[bool, str]:
    """-> (whether a part did, the same in words)"""
    bench = context.bench
    lost = contributions.mean_difference(bench) - contributions.mean_difference(bench, context.cuts, context.mode)
    capped = " before the soft-cap" if context.opened.config.logit_cap else ""
    clear = changes[changes.low > 0]
    if not lost > 0:
        return False, "Nothing was to be taken over: without it the right word leads by no less."
    if clear.empty:
        return (
            False,
            f"{NOBODY}{_less(changes)} (Paired t-test over texts, corrected for all these parts by Holm's method.)",
        )
    best = clear.iloc[0]
    rise = f"{best['name']} adds {number(best.after)} to the logit difference instead of {number(best.before)}"
    if best.change < TELLS * lost:
        return False, f"None to speak of: {rise}, the largest rise; the model lost {number(lost)}{capped}."
    sentence = f"{rise} (+{number(best.change)}, 95 % interval {number(best.low)} to {number(best.high)}); the model still lost {number(lost)}{capped}."
    if "head" not in clear.kind.values:
        sentence += " No head does." if "head" in changes.kind.values else " No head comes after the cut."
    return True, sentence


def _less(changes) -> str:
    """Who adds less than before, among the parts that come after the cut: the greatest fall stands last."""
    fallen = changes[changes.high < 0]
    if fallen.empty:
        return ""
    most = fallen.iloc[-1]
    now = f"{number(most.after)} instead of {number(most.before)}"
    if len(changes) == 1:
        return f" {most['name']} adds less: {now}."
    return f" {len(fallen)} of {len(changes)} add{'s' * (len(fallen) == 1)} less; the greatest fall is that of {most['name']}: {now}."


def _by_distance(context):
    q, lines = context.bench.questions, []
    for place, effect in enumerate((context.bench.baseline, context.effect)):
        rows = sorted(tables.by_distance(effect, q, tables.LEAST).itertuples(index=False, name=None))
        at, right, low, high, many = (list(column) for column in zip(*rows))
        lines.append(Line(place, right, None, low, high))
    panel = Panel(
        f"Does it depend on the {q.by}?", "Accuracy (1: all right)", f"Each point: {min(many)} to {max(many)} questions, neighbours with few of them together; bands: 95 % interval (Wilson).",
        lines, bounds=(0.0, 1.0), help="Share of right answers among the questions of each kind; bands grow where there are few.",
    )  # fmt: skip
    pins.marks([(0, WHOLE, None), (1, context.named, None)], [])
    curves("accuracy_by_distance", [panel], {0: WHOLE, 1: context.named}, x=q.by, at=at, height=170, across=1)
