import math

import pandas as pd
import streamlit as st

from core.experiments.trained import contributions, tables
from core.experiments.trained.knockout import ENOUGH
from core.experiments.trained.knockout import effect as effects
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


@view.register(
    "knockout",
    label="Knock-out",
    help="how much worse the model gets without what was taken out, and whether another part takes over.",
)
def knockout(context):
    if not context.cuts:
        _nothing(context)
        return
    left, right = st.columns([3, 7], gap="medium")
    bench = context.bench
    table = tables.told(context.effect, bench.baseline)
    with right:
        if context.language:
            after = context.prompt.labels[context.after]
            figure(f"What comes after “{after}”?", consequence(context, scores_of(context)))
        figure(
            f"What does it cost to take out {name_of(context.cuts).replace('− ', '')}?",
            _finding(bench.questions, table.set_index("effect")),
            f"Over {bench.questions.what}: {bench.questions.asks}",
            words=[effects.label(name) for name in effects],
        )
        small_table(_effects(table), "What the knock-out costs.", taken=table)
        _took_over(context)
        _by_distance(context)
    with left:
        layer = max(cut.layer for cut in context.cuts)
        drawing.block(context.whole, layer, key="knife", knocked=context.cuts, on_pick=switch, sets="out")
        kinds = dict.fromkeys(cut.part for cut in context.cuts)
        where = " ".join(f"{parts.label(kind)}: {parts.help(kind)}" for kind in kinds)
        where += f" In its place, {mode.label(context.look.mode).lower()}: {mode.help(context.look.mode)}"
        own, longest = bench.positions_with_means, max(bench.questions.tokens.shape[1], len(context.prompt.ids))
        if context.look.mode == "mean" and own < longest:
            where += f" Tokens from number {own + 1} on share one mean: fewer than {ENOUGH} texts are that long."
        st.caption(literal(where))


def _nothing(context):
    """Say that nothing is knocked out, and offer the head that reads the subject."""
    if not is_moved("out"):
        st.info("The link with which this was opened keeps the model whole.", icon=":material/lock:")
        return
    offer = ", or take the head that reads the subject" if context.readings else ""
    st.info(f"Nothing is knocked out yet: choose a part above{offer}.", icon=":material/content_cut:")
    for reading in context.readings[:1]:
        cut = Cut(reading.layer, "head", reading.head)
        words = f"Remove {cut.name}, which puts {reading.verb.mean:.2f} of its verb's attention on the subject"
        st.button(words, on_click=take_out, args=(cut.write(),), type="primary", key="remove_reader")


def _finding(questions, effect) -> str:
    """Return what becomes of accuracy, probability and logit difference. effect: name -> its row of the table."""
    right, chance, gap = effect.loc["accuracy"], effect.loc["probability"], effect.loc["difference"]
    texts = count(int(right.texts), "text")
    if right.change == 0:
        sentence = f"Accuracy stays at {percent(right.whole)} on {texts}."
    else:
        fine = decimals_of([right.change])
        moved = f"from {percent(right.whole, fine)} to {percent(right.without, fine)}"
        by = f"{points(right.change)} points (95 % interval {points(right.low)} to {points(right.high)}, {texts})."
        way = "falls" if right.change < 0 else "rises"
        sentence = f"Accuracy {way} {moved}: {by}"
        if not apart(right.low, right.high):
            sentence = f"Accuracy goes {moved}, a change that cannot be told from noise: {by}"
    if questions.among:
        sentence += f" Guessing gets {percent(questions.guessing)}."
    return (
        f"{sentence} Probability of the right word: {number(chance.whole)} → {number(chance.without)}. "
        f"Logit difference: {number(gap.whole)} → {number(gap.without)} "
        f"({number(gap.change)}, {number(gap.low)} to {number(gap.high)})."
    )


def _effects(table) -> pd.DataFrame:
    """Return every effect with its interval, as text."""
    rows = []
    for row in table.itertuples():
        label, effect = effects.label(row.effect), effects[row.effect]
        if effect.distance:
            without, low, high = aligned([row.without, row.low, row.high])
            changed = f"{without}  [{low}, {high}] {effect.unit}".rstrip()
            rows.append((label, number(row.whole), changed, "–", "–"))
            continue
        unit, word = (" %", " points") if effect.share else ("", f" {effect.unit}".rstrip())
        whole, without = _written([row.whole, row.without], effect.share)
        change, low, high = _written([row.change, row.low, row.high], effect.share)
        changed = f"{change}{word}  [{low}, {high}]"
        rows.append((label, f"{whole}{unit}", f"{without}{unit}", changed, _chance(row.p)))
    return pd.DataFrame(rows, columns=["effect", "whole model", "without", "change  [95 % interval]", "p"])


def _written(values: list[float], share: bool) -> list[str]:
    """Write numbers that stand together with the same decimals. share: in percentage points."""
    if not share:
        return aligned(values)
    decimals = decimals_of(values)
    return [points(value, decimals) for value in values]


def _chance(p: float) -> str:
    if math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else fixed(p, 3)


def _took_over(context):
    """Draw which part after the cut moves the answer more than it did."""
    title = "Did another part take over?"
    changes = contributions.takeover(context.bench, context.cuts, context.look.mode)
    if changes.empty:
        none = "None could: no part comes after the cut, and what stands before or beside it writes what it wrote."
        figure(title, none)
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
    """Return whether a part took over, and the same in words."""
    bench = context.bench
    without = contributions.mean_difference(bench, context.cuts, context.look.mode)
    lost = contributions.mean_difference(bench) - without
    capped = " before the soft-cap" if context.opened.config.logit_cap else ""
    clear = changes[changes.low > 0]
    if not lost > 0:
        return False, "Nothing was to be taken over: without it the right word leads by no less."
    if clear.empty:
        test = "(Paired t-test over texts, corrected for all these parts by Holm's method.)"
        return False, f"{NOBODY}{_less(changes)} {test}"
    best = clear.iloc[0]
    rise = f"{best['name']} adds {number(best.after)} to the logit difference instead of {number(best.before)}"
    if best.change < TELLS * lost:
        return False, f"None to speak of: {rise}, the largest rise; the model lost {number(lost)}{capped}."
    span = f"95 % interval {number(best.low)} to {number(best.high)}"
    sentence = f"{rise} (+{number(best.change)}, {span}); the model still lost {number(lost)}{capped}."
    if "head" not in clear.kind.values:
        sentence += " No head does." if "head" in changes.kind.values else " No head comes after the cut."
    return True, sentence


def _less(changes) -> str:
    """Return which parts after the cut add less than before: the greatest fall stands last."""
    fallen = changes[changes.high < 0]
    if fallen.empty:
        return ""
    most = fallen.iloc[-1]
    now = f"{number(most.after)} instead of {number(most.before)}"
    if len(changes) == 1:
        return f" {most['name']} adds less: {now}."
    add = "adds" if len(fallen) == 1 else "add"
    return f" {len(fallen)} of {len(changes)} {add} less; the greatest fall is that of {most['name']}: {now}."


def _by_distance(context):
    """Draw accuracy by what the questions of this task depend on."""
    questions, lines = context.bench.questions, []
    for place, effect in enumerate((context.bench.baseline, context.effect)):
        rows = sorted(tables.by_distance(effect, questions, tables.LEAST).itertuples(index=False, name=None))
        at, right, low, high, many = (list(column) for column in zip(*rows))
        lines.append(Line(place, right, None, low, high))
    panel = Panel(
        f"Does it depend on the {questions.by}?",
        "Accuracy (1: all right)",
        f"Each point: {min(many)} to {max(many)} questions, neighbours with few of them together; bands: 95 % interval (Wilson).",
        lines,
        bounds=(0.0, 1.0),
        help="Share of right answers among the questions of each kind; bands grow where there are few.",
    )
    names = {0: WHOLE, 1: context.named}
    pins.marks([(colour, name, None) for colour, name in names.items()], [])
    curves("accuracy_by_distance", [panel], names, x=questions.by, at=at, height=170, across=1)
