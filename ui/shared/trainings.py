"""Curves, costs and sentences on trainings, for the pages Training and Studies."""

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from core.experiments.training import results, sentences
from core.experiments.training.judged import describe_rates, models_at_edge
from core.experiments.training.plan import SEARCHED, Arm, list_guards
from core.measure.intervals import Interval
from core.measure.power import MOST_SEEDS
from core.settings.cache import LRUCache
from core.settings.setting import ConfigError
from core.settings.wording import fixed
from core.study.curves import Made
from core.study.plan import Run
from core.tasks import task
from core.train import Row
from core.workers.job import ROW
from ui.kit import pins
from ui.kit.jobs import StartedTrainings
from ui.kit.page import caption, literal, table
from ui.kit.takeaway import offer_table
from ui.pictures.curves import Line, Panel, draw_curves


def arms_shown(trainings: Any) -> list[Arm]:
    """Return the arms (models) that have a colour: baseline and variants, no combinations."""
    return [arm for arm in trainings.plan.arms if arm.colour is not None]


TIMED = list_guards("time", False)[0]


def describe_guards(names: list[str]) -> str:
    """Describe what is equal for all models, from names of guards; "" without any."""
    if not names:
        return ""
    words = ", ".join(names).replace(SEARCHED, "tuned learning rate")
    sentences = [f"Same for every model: {words}."]
    if SEARCHED in names:
        sentences.append(
            "For each seed, the rate with the lowest training loss is used; the test set is not."
        )
    if TIMED in names:
        sentences.append("Curves are aligned with the baseline's steps by training time.")
    return " ".join(sentences)


def chosen_rates(trainings: StartedTrainings) -> dict[str, str]:
    """Return model -> chosen rates, "0.003 on 4, 0.01 on 1", or "–" until trained; or {}.

    {} without a search.
    """
    plan = trainings.plan
    if plan.trial.search == "none":
        return {}
    rates_by_name = describe_rates(plan, trainings.judge.now.names)
    return {
        arm.name: rates_by_name[arm.name] if _has_ended(trainings, arm) else "–"
        for arm in plan.arms
    }


def _has_ended(trainings: StartedTrainings, arm: Arm) -> bool:
    """Return whether a model has ended, or diverged, at all its rates and with all seeds."""
    runs = [
        (trainings.every_run[name, seed], way)
        for name, way in trainings.plan.ways(arm).items()
        for seed in trainings.plan.seeds
    ]
    return all(rows and (rows[-1].note or rows[-1].step == way.steps) for rows, way in runs)


def describe_edge_rates(trainings: StartedTrainings) -> str:
    """Describe which models' best rate is at the edge of the range; "" if none is."""
    ended = {name for name, rate in chosen_rates(trainings).items() if rate != "–"}
    edge_names = (
        [
            name
            for name in models_at_edge(trainings.plan, trainings.judge.now.names)
            if name in ended
        ]
        if ended
        else []
    )
    names = ", ".join(edge_names)
    return (
        f"For {names}, the best rate is at the edge of the range tried; a rate outside it may be"
        " better."
        if edge_names
        else ""
    )


def label_of(arm: Arm) -> str:
    """Return an arm's name for legends, with its note (fixed by the plan) in brackets, if any."""
    return f"{arm.name} ({arm.note})" if arm.note else arm.name


def draw_legend(trainings: Any, notes=None):
    """Draw the legend of trained models, with seeds and shared facts; notes by model's name.

    Args:
        trainings: Trainings to draw.
        notes: Note by model's name; at which step its seeds diverged if None.
    """
    plan = trainings.plan
    ended = (
        {arm.name: describe_divergence(trainings, arm.name) for arm in arms_shown(trainings)}
        if notes is None
        else notes
    )
    first = plan.seeds[0]
    last = plan.seeds[-1]
    seeds = f"seeds {first} to {last}" if last > first else f"seed {first}"
    if last - first >= len(plan.seeds):  # a study may have any seeds
        seeds = f"{len(plan.seeds)} seeds from {first} to {last}"
    paired = "All variants share the seeds, the data and, where shapes match, the initial weights."
    common = [f"{trainings.origin}, {seeds}. {paired}"]
    if any("diverged" in (text or "") for text in ended.values()):
        common.append(pins.DIVERGED)
    marks = [(arm.colour, label_of(arm), ended.get(arm.name)) for arm in arms_shown(trainings)]
    pins.draw_variant_legend(marks, common)


def describe_divergence(trainings: StartedTrainings, name: str) -> str | None:
    """Return when which seeds diverged, as text (of 3 or more the first, and how many); or None."""
    steps = [(seed, trainings.runs[name, seed]) for seed in trainings.plan.seeds]
    lost = sorted(
        (rows[-1].step, seed, results.diverged(rows))
        for seed, rows in steps
        if results.diverged(rows)
    )
    phrases = [f"{note}, seed {seed}" for _, seed, note in lost]  # the first to go comes first
    if len(phrases) > 2:
        return f"{phrases[0]}; {len(phrases)} of {len(steps)} seeds diverged"
    return "; ".join(phrases) or None


_kept = LRUCache(megabytes=8)  # hash of a run -> FromStudy


class FromStudy(NamedTuple):
    """Rows of a run from a study, with the study's name and the run's provenance."""

    rows: list[Row]
    study: str
    provenance: Made


def find_cached_rows(run: Run) -> FromStudy | None:
    """Return a run's rows, study and provenance as cached by cache_rows(); None if they are not."""
    cached_run: FromStudy | None = _kept.peek(run.hash)
    return cached_run


def cache_rows(store, study_id: int, study_name: str, task: str, variant: str) -> None:
    """Cache a cell's and its baseline's rows for find_cached_rows(), as far as readable.

    Errors of the store and unreadable settings are ignored.
    """
    from core.study.database.connection import StoreError  # loaded by whoever has a store
    from core.study.tables import load_cell_runs

    with suppress(StoreError, ConfigError):
        for run, rows, provenance in load_cell_runs(store, study_id, task, variant):
            _kept.store(run.hash, FromStudy(rows, study_name, provenance), ROW * len(rows))


# With the rest as wide as a page of 1280 pixels.
VERDICTS = (
    "difference: significant. equivalent: the interval lies within {margin}. undecided: neither;"
    " more seeds may tell."
)
NOISE = (
    "Spread: standard deviation of the paired differences. Pairing by seed helps where the"
    " correlation is above 0. Exact p: from a sign-flip permutation test, not corrected, for"
    " reference. Detectable: the smallest difference that would be found with 80 % power at this"
    " spread. A spread estimated from few seeds is itself uncertain."
)
WIDTHS = {
    "model": 125,
    "accuracy, %": 120,
    "seeds": 85,
    "Δ accuracy, points": 135,
    "parameters": 115,
    "MFLOPs": 90,
}
SAID = {
    1: "",
    2: "Thick line: geometric mean of two seeds. Thin lines: single seeds.",
    3: "Thick line: geometric mean. Band: 95 % CI. Thin lines: single seeds.",
}
MANY = "Line: geometric mean over seeds. Band: 95 % CI."
FEW = 12  # seeds of which each can have a line


def draw_learning(trainings):
    """Draw legend, accuracy and loss over steps, and the table of each model's results and cost."""
    plan = trainings.plan
    learnt = task[plan.training.task]
    chosen = chosen_rates(trainings)
    summary: Any = results.summary(trainings.runs, plan, chosen)
    counts = {
        row.variant: sentences.format_learnt(row.learnt, row.seeds)
        for row in summary.itertuples()
        if row.two_groups
    }
    notes = {}
    for arm in arms_shown(trainings):
        parts = (describe_divergence(trainings, arm.name), counts.get(arm.name))
        notes[arm.name] = "; ".join(filter(None, parts))
    draw_legend(trainings, notes)
    threshold = ((learnt.learnt_from, "learnt"),) if counts else ()
    steps, accuracy = chart_lines(trainings, "accuracy")
    _, loss = chart_lines(trainings, "loss", log=True)
    sentence = sentences.describe_finding(trainings.runs, plan)
    band_note = SAID[min(3, len(plan.seeds))] if len(plan.seeds) <= FEW else MANY
    panels = [
        Panel(
            "Share of correct answers.",
            "Accuracy on"
            f" {learnt.tested_on(plan.training.length, plan.training.steps * plan.training.batch)}",
            sentence,
            accuracy,
            bounds=(0.0, 1.0),
            marks=((learnt.chance, "chance"), *threshold),
            help=(
                f"Chance {learnt.chance:.3f} (always the most frequent answer), best possible"
                f" {learnt.best:g}."
            ),
        ),
        Panel(
            "Cross-entropy of the training batch, in nats.",
            "Training loss",
            band_note,
            loss,
            log=True,
            help="Mean of −ln(probability of the correct answer). Lower is better.",
        ),
    ]
    names = {arm.colour: label_of(arm) for arm in arms_shown(trainings)}
    draw_curves(
        "learning",
        panels,
        names,
        x="step",
        positions=steps or [0],
        ends=(0, plan.training.steps),
        height=265,
        across=2,
    )
    offer_table("all logged steps", lambda: results.every_row(trainings.every_run, plan))
    draw_costs(trainings, summary, chosen)
    if learnt.remains and sentences.beats_chance(trainings.runs, plan):
        st.caption(f"Why accuracy is above chance: {learnt.remains}")


def draw_costs(trainings, summary, chosen: dict[str, str]):
    """Draw guards, the table of each model's accuracy, difference, verdict and cost, and noise.

    Args:
        trainings: Trainings to draw.
        summary: Their summary, from results.summary().
        chosen: Model -> chosen learning rates as text; {} without a search.
    """
    several = len(trainings.plan.seeds) > 1
    if trainings.plan.guards:
        st.caption(
            f"{describe_guards(trainings.plan.guards)} {literal(describe_edge_rates(trainings))}"
        )
    rates = {"learning rate on seeds": list(summary.rates)} if chosen else {}
    rows = pd.DataFrame(
        {
            "model": [
                f"{row.variant}{f' ({row.note})' if row.note else ''}"
                for row in summary.itertuples()
            ],
            **rates,
            "accuracy, %": format_accuracies(summary, several),
            "seeds": [
                f"{row.seeds}{f' ({row.diverged} diverged)' if row.diverged else ''}"
                for row in summary.itertuples()
            ],
            "Δ accuracy, points": format_spans(
                summary.difference, summary.difference_low, summary.difference_high, several
            ),
            "p (Holm)" if summary.p.notna().sum() > 1 else "p": [
                format_p(row.p, row.difference_low, row.difference_high)
                for row in summary.itertuples()
            ],
            "verdict": [row.verdict or "–" for row in summary.itertuples()],
            "steps to 90 %": [
                format_arrival(row.steps_to_90, row.seeds_at_90, len(trainings.plan.seeds))
                for row in summary.itertuples()
            ],
            "parameters": [
                f"{row.parameters:,}{format_change(row.parameters_difference)}"
                for row in summary.itertuples()
            ],
            "MFLOPs": [
                f"{row.flops / 1e6:.3g}{format_change(row.flops_difference)}"
                for row in summary.itertuples()
            ],
        }
    )
    widths = WIDTHS if several else {}
    table(
        rows,
        "Accuracy and cost of each model.",
        exported=summary,
        width="stretch",
        column_config={name: st.column_config.Column(width=width) for name, width in widths.items()}
        | {"verdict": st.column_config.Column(help=VERDICTS.format(margin=format_margin(summary)))},
    )
    draw_noise(summary)


def draw_noise(summary):
    """Draw noise over seeds and seeds needed, a table in a fold; nothing if no noise is known."""
    rows = summary[summary.spread.notna()]
    if rows.empty:
        return
    with st.expander("Variation across seeds, and seeds needed"):
        shown = pd.DataFrame(
            {
                "model": rows.variant,
                "spread, points": [
                    sentences.format_points(row.spread) for row in rows.itertuples()
                ],
                "correlation of pairs": rows.correlation.map(format_correlation),
                "exact p (least possible)": [
                    f"{row.p_exact:.2g} ({row.p_exact_least:.2g})" for row in rows.itertuples()
                ],
                "smallest detectable, points": rows.smallest_effect.map(sentences.format_points),
                "seeds for 5 points": rows.seeds_for_5.map(format_seeds_needed),
                "seeds for 1 point": rows.seeds_for_1.map(format_seeds_needed),
            }
        )
        table(shown, "Variation across seeds by comparison.", exported=rows, width="stretch")
        caption(NOISE)


def format_margin(summary: pd.DataFrame) -> str:
    """Format the margin of a summary table, that of its first row: "±2 points"."""
    return sentences.format_margin(summary.margin.iloc[0])


def format_correlation(correlation: float) -> str:
    """Format a correlation; "–" where one of the models has the same accuracy on all seeds."""
    return "–" if math.isnan(correlation) else fixed(correlation, 2)


def format_seeds_needed(seeds: float) -> str:
    """Format a number of seeds: "12", and "> 1,000" for infinity, which stands for that."""
    return f"> {MOST_SEEDS:,}" if math.isinf(seeds) else f"{seeds:,.0f}"


def format_accuracies(summary, several: bool) -> list[str]:
    """Format accuracies of a summary, a text per row: mean with interval, or with learnt runs."""
    spans = format_spans(summary.accuracy, summary.low, summary.high, several)
    return [
        f"{sentences.format_points(row.accuracy)}  ({row.learnt} of {row.seeds} learnt it)"
        if row.two_groups
        else span
        for row, span in zip(summary.itertuples(), spans)
    ]


def format_spans(values, lows, highs, several: bool) -> list[str]:
    """Format a column of shares in percent (no sign), with intervals if `several` seeds."""
    decimals = sentences.decimals_of(values)
    return [format_span(*bounds, several, decimals) for bounds in zip(values, lows, highs)]


def format_span(value: float, low: float, high: float, several: bool, decimals: int = 1) -> str:
    """Format a share in percent (no sign), with its interval if `several` seeds; NaN: "–"."""
    if math.isnan(value):
        return "–"
    text = sentences.format_points(value, decimals)
    has_interval = (
        several and not math.isnan(low) and low < high
    )  # where all seeds agree there is no noise to tell one from
    return (
        f"{text}  [{sentences.format_points(low, decimals)},"
        f" {sentences.format_points(high, decimals)}]"
        if has_interval
        else text
    )


def format_p(p: float, low: float, high: float) -> str:
    """Format a p-value: "0.012", "< 0.001"; "–" for NaN, or if low to high has no width."""
    if math.isnan(p) or low == high:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_arrival(steps: float, seeds: int, total: int) -> str:
    """Format the mean step of reaching 90 % accuracy: "1,200 (3 of 5)" seeds; "–" for none."""
    if not seeds:
        return "–"
    return f"{steps:,.0f}" + (f" ({seeds} of {total})" if seeds < total else "")


def format_change(share: float) -> str:
    """Format a relative difference behind a number: 0.05 becomes "  (+5.0 %)"; "" for 0."""
    return (
        ""
        if share == 0
        else f"  ({100 * share:+.{1 if abs(share) >= 0.0005 else 2}f} %)".replace("-", "−")
    )


def chart_lines(trainings, field: str, log: bool = False) -> tuple[list[int], list[Line]]:
    """Return logged steps, and per model a Line of a Row's field: mean, 95 % CI and seeds.

    The interval is drawn from 3 seeds on, single seeds for 2 to 12. NaN where a step lacks.

    Args:
        trainings: Trainings to draw.
        field: Field of core.train.Row.
        log: Whether to use the geometric mean.
    """
    plan = trainings.plan
    runs = trainings.runs
    steps = sorted({row.step for rows in runs.values() for row in rows if not row.note})
    several = 1 < len(plan.seeds) <= FEW
    banded = len(plan.seeds) > 2  # of two seeds an interval spans nearly everything
    unknown = Interval(math.nan, math.nan, math.nan, 0)
    panels = []
    for arm in arms_shown(trainings):
        span_at = dict(results.values_by_step(runs, plan, arm.name, field, log))
        spans = [span_at.get(step, unknown) for step in steps]
        seeds = [
            {row.step: getattr(row, field) for row in runs[arm.name, seed] if not row.note}
            for seed in plan.seeds
        ]
        line = Line(
            arm.colour, [span.mean for span in spans], describe_divergence(trainings, arm.name)
        )
        if banded:
            line = replace(
                line, low=[span.low for span in spans], high=[span.high for span in spans]
            )
        if several:
            line = replace(
                line, seeds=[[values.get(step, math.nan) for step in steps] for values in seeds]
            )
        panels.append(line)
    return steps, panels
