"""View of an ablation: its effect on held-out texts, and compensation by later components."""

import math

import pandas as pd
import streamlit as st

from core.experiments.trained import contributions, tables
from core.experiments.trained.knockout import ENOUGH
from core.experiments.trained.knockout import effect as effects
from core.experiments.trained.questions import Questions
from core.experiments.training.sentences import decimals_of, format_percent, format_points
from core.measure.intervals import excludes_zero
from core.model.knockout import Cut, mode, name_of
from core.model.knockout import part as parts
from core.settings.wording import capitalise, count, fixed, format_aligned, number
from ui.kit import pins
from ui.kit.page import figure, literal, small_table
from ui.kit.store import is_movable
from ui.kit.takeaway import offer_table
from ui.pictures import drawing
from ui.pictures.curves import Line, Panel, draw_curves
from ui.trained.context import WHOLE, TrainedContext, ablate_part, toggle_part, view
from ui.trained.parts import sweep
from ui.trained.words import compute_logits, describe_change

NONE = "No later component increases its contribution significantly."
TELLS = 0.05  # of what was lost: a rise that is less is not called a takeover


@view.register(
    "knockout",
    label="Ablation",
    help="effect of removing the chosen components, and compensation by later ones.",
)
def knockout(context: TrainedContext):
    """Draw an ablation's effect, compensation, block; without one, a suggestion and the sweep."""
    if not context.cuts:
        _draw_invitation(context)
        sweep(context)
        return
    left, right = st.columns([31, 69], gap="medium")
    bench = context.bench
    table = tables.tabulate_effects(context.effect, bench.baseline)
    with right:
        if context.predicts_next_token:
            after = context.prompt.labels[context.after]
            figure(f"Next token after “{after}”", describe_change(context, compute_logits(context)))
        figure(
            f"Effect of removing {name_of(context.cuts).replace('− ', '')}",
            _describe_effect(bench.questions, table.set_index("effect")),
            f"{capitalise(bench.questions.what)}: {bench.questions.asks}",
            other_texts=[effects.label(name) for name in effects],
        )
        small_table(_format_effects(table), "Effects of the ablation.", exported=table)
        _draw_compensation(context)
        _draw_by_distance(context)
    with left:
        layer = max(cut.layer for cut in context.cuts)
        drawing.draw_block(
            context.full_pass,
            layer,
            key="knife",
            cuts=context.cuts,
            on_pick=toggle_part,
            locked_with="out",
        )
        kinds = dict.fromkeys(cut.part for cut in context.cuts)
        where = " ".join(f"{parts.label(kind)}: {parts.help(kind)}" for kind in kinds)
        where += f" {mode.label(context.look.mode)} ablation: {mode.help(context.look.mode)}"
        own_positions = bench.positions_with_means
        longest = max(bench.questions.tokens.shape[1], len(context.prompt.ids))
        if context.look.mode == "mean" and own_positions < longest:
            where += (
                f" Positions from {own_positions + 1} on share one mean: fewer than {ENOUGH} texts"
                " are that long."
            )
        st.caption(literal(where))


def _draw_invitation(context: TrainedContext):
    """Ask for a component to remove; a button removes the head that attends to the subject, if any.

    Where the link allows no ablations, draw a notice instead.
    """
    if not is_movable("out"):
        st.info("The link you opened does not allow ablations.", icon=":material/lock:")
        return
    offer = ", or try the head that attends to the subject" if context.readings else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        for reading in context.readings[:1]:
            cut = Cut(reading.layer, "head", reading.head)
            words = f"Remove {cut.name} (verb → subject {reading.verb.mean:.2f})"
            st.button(
                words,
                on_click=ablate_part,
                args=(cut.write(),),
                type="primary",
                key="remove_reader",
            )
        st.markdown(f"Choose a component to remove{offer}.")


def _describe_effect(questions: Questions, effect_table) -> str:
    """Return a sentence on changes (without − full): accuracy, probability, logit difference."""
    right = effect_table.loc["accuracy"]
    chance = effect_table.loc["probability"]
    gap = effect_table.loc["difference"]
    texts = count(int(right.texts), "text")
    if right.change == 0:
        sentence = f"Accuracy stays at {format_percent(right.whole)} on {texts}."
    else:
        fine = decimals_of([right.change])
        moved = f"from {format_percent(right.whole, fine)} to {format_percent(right.without, fine)}"
        by = (
            f"{format_points(right.change)} points (95 % CI {format_points(right.low)} to"
            f" {format_points(right.high)}, {texts})."
        )
        way = "falls" if right.change < 0 else "rises"
        sentence = f"Accuracy {way} {moved}: {by}"
        if not excludes_zero(right.low, right.high):
            sentence = f"Accuracy {moved}, not significant: {by}"
    if questions.among:
        sentence += f" Chance: {format_percent(questions.guessing)}."
    change, low, high = format_aligned([gap.change, gap.low, gap.high])
    return (
        f"{sentence} Probability of the correct token: {number(chance.whole)} →"
        f" {number(chance.without)}. Logit difference: {number(gap.whole)} → {number(gap.without)}"
        f" ({change}, 95 % CI {low} to {high})."
    )


def _format_effects(table) -> pd.DataFrame:
    """Return effects as text: metric, full model, without, change  [95 % CI], p.

    Shares are in percent, and their changes in points.
    """
    rows = []
    for row in table.itertuples():
        label = effects.label(row.effect)
        effect = effects[row.effect]
        if effect.distance:
            without, low, high = format_aligned([row.without, row.low, row.high])
            changed = f"{without}  [{low}, {high}] {effect.unit}".rstrip()
            rows.append((label, number(row.whole), changed, "–", "–"))
            continue
        unit, word = (" %", " points") if effect.share else ("", f" {effect.unit}".rstrip())
        with_part, without = _format_values([row.whole, row.without], effect.share)
        change, low, high = _format_values([row.change, row.low, row.high], effect.share)
        changed = f"{change}{word}  [{low}, {high}]"
        rows.append((label, f"{with_part}{unit}", f"{without}{unit}", changed, _format_p(row.p)))
    return pd.DataFrame(rows, columns=["metric", "full model", "without", "change  [95 % CI]", "p"])


def _format_values(values: list[float], is_share: bool) -> list[str]:
    """Format numbers with equal decimals; shares in percent, without the sign, if `is_share`."""
    if not is_share:
        return format_aligned(values)
    decimals = decimals_of(values)
    return [format_points(value, decimals) for value in values]


def _format_p(p: float) -> str:
    """Format a p-value; NaN: "–"."""
    if math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else fixed(p, 3)


def _draw_compensation(context: TrainedContext):
    """Draw a finding on compensation and, if there is any, the six components that rise most."""
    title = "Compensation"
    changes = contributions.compare_contributions(context.bench, context.cuts, context.look.mode)
    if changes.empty:
        none = "No component comes after the ablation, so nothing can compensate."
        figure(title, none)
        return
    did, sentence = _describe_takeover(context, changes)
    figure(title, sentence)
    offer_table("every component after the ablation", lambda: changes)
    if not did:
        return  # rows of noise say no more
    first = changes.head(6)
    written = iter(format_aligned(first[["change", "low", "high"]].to_numpy().flatten()))
    spans = [f"{change}  [{low}, {high}]" for change, low, high in zip(written, written, written)]
    rows = list(
        zip(
            first["name"],
            format_aligned(first.before),
            format_aligned(first.after),
            spans,
            map(_format_p, first.p),
        )
    )
    names = [
        "component",
        "contribution, full model",
        "contribution now",
        "change  [95 % CI]",
        "p (Holm)",
    ]
    small_table(
        pd.DataFrame(rows, columns=names), "Compensation by later components.", exported=changes
    )


def _describe_takeover(context: TrainedContext, changes: pd.DataFrame) -> tuple[bool, str]:
    """Return whether a later component compensates, significantly, and a sentence on it.

    `changes` has name, before, after, change, low and high, the largest rise first.
    """
    bench = context.bench
    without = contributions.mean_difference(bench, context.cuts, context.look.mode)
    lost = contributions.mean_difference(bench) - without
    capped = " before the soft-cap" if context.opened.config.logit_cap else ""
    clear = changes[changes.low > 0]
    if not lost > 0:
        return False, "Nothing to compensate: the logit difference does not fall."
    if clear.empty:
        test = "(Paired t-test over texts, Holm-corrected.)"
        return False, f"{NONE}{_describe_falls(changes)} {test}"
    best = clear.iloc[0]
    rise = (
        f"{best['name']} contributes {number(best.after)} to the logit difference instead of"
        f" {number(best.before)}"
    )
    if best.change < TELLS * lost:
        return False, f"Negligible. Largest rise: {rise}; the model lost {number(lost)}{capped}."
    span = f"95 % CI {number(best.low)} to {number(best.high)}"
    sentence = (
        f"{rise} (+{number(best.change)}, {span}); the model still lost {number(lost)}{capped}."
    )
    if "head" not in clear.kind.values:
        sentence += (
            " No head compensates."
            if "head" in changes.kind.values
            else " No head comes after the ablation."
        )
    return True, sentence


def _describe_falls(changes: pd.DataFrame) -> str:
    """Return, after a space, a sentence on later components that contribute less; "" for none.

    `changes` are as in _describe_takeover().
    """
    fallen = changes[changes.high < 0]
    if fallen.empty:
        return ""
    last_row = fallen.iloc[-1]
    now = f"{number(last_row.after)} instead of {number(last_row.before)}"
    if len(changes) == 1:
        return f" {last_row['name']} contributes less: {now}."
    add = "contributes" if len(fallen) == 1 else "contribute"
    return f" {len(fallen)} of {len(changes)} {add} less; largest fall: {last_row['name']}, {now}."


def _draw_by_distance(context: TrainedContext):
    """Draw accuracy by distance of subject and verb, with and without the ablation."""
    questions = context.bench.questions
    lines = []
    for place, effect in enumerate((context.bench.baseline, context.effect)):
        rows = sorted(
            tables.accuracy_by_distance(effect, questions, tables.LEAST).itertuples(
                index=False, name=None
            )
        )
        distances, right, low, high, counts = (list(column) for column in zip(*rows))
        lines.append(Line(place, right, None, low, high))
    distance = f"number of {questions.by}" if questions.by.startswith("words") else questions.by
    panel = Panel(
        f"By {distance}",
        "Accuracy",
        f"{min(counts)}–{max(counts)} sentences per point (sparse bins merged); band: 95 % CI"
        " (Wilson).",
        lines,
        bounds=(0.0, 1.0),
        help="Share of correct answers; bands are wider where there are few sentences.",
    )
    names = {0: WHOLE, 1: context.ablation_name}
    pins.draw_variant_legend([(colour, name, None) for colour, name in names.items()], [])
    draw_curves(
        "accuracy_by_distance",
        [panel],
        names,
        x=questions.by,
        positions=distances,
        height=170,
        across=1,
    )
