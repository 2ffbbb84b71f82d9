import math

import pandas as pd
import streamlit as st

from core.experiments.training import results, sentences
from core.measure.intervals import Interval
from core.tasks import task
from ui.kit.page import literal, table
from ui.kit.takeaway import note
from ui.pictures.curves import Line, Panel, curves
from ui.shared.trainings import arms_shown, gone, label, legend, rates_chosen, said_alike, said_of_ends

# With the rest as wide as a page of 1280 pixels.
WIDTHS = {"model": 125, "accuracy, %": 120, "seeds": 85, "Δ accuracy, points": 135, "parameters": 115, "MFLOP": 90}
SAID = {
    1: "",
    2: "Thick lines: mean of the two seeds, here the geometric one; thin lines: the seeds.",
    3: "Thick lines: mean over seeds, here the geometric one; bands: its 95 % interval; thin lines: the seeds.",
}
MANY = "Lines: mean over seeds, here the geometric one; bands: its 95 % interval."
FEW = 12  # seeds of which each can have a line


def learning(trainings):
    """Accuracy and loss as they grow, and what each model costs."""
    plan = trainings.plan
    learnt = task[plan.training.task]
    legend(trainings)
    steps, accuracy = lines(trainings, "accuracy")
    _, loss = lines(trainings, "loss", log=True)
    sentence = sentences.finding(trainings.runs, plan)
    said = SAID[min(3, len(plan.seeds))] if len(plan.seeds) <= FEW else MANY
    panels = [
        Panel(
            "How much does it get right?", f"Accuracy on {learnt.tested_on(plan.training.length, plan.training.steps * plan.training.batch)}", sentence, accuracy,
            bounds=(0.0, 1.0), marks=((learnt.chance, "chance"),),
            help=f"Share of right answers. Chance {learnt.chance:.3f}: always the most frequent one. Best possible: {learnt.best:g}.",
        ),
        Panel(
            "How far off are its answers?", "Loss: cross-entropy of the training batch, in nats", said, loss, log=True,
            help="Mean over all answers of −ln(probability of the right one). Lower is better.",
        ),
    ]  # fmt: skip
    names = {arm.colour: label(arm) for arm in arms_shown(trainings)}
    curves("learning", panels, names, x="step", at=steps or [0], ends=(0, plan.training.steps), height=265, across=2)
    note("every row of every run", lambda: results.every_row(trainings.every_run, plan))
    costs(trainings)
    if learnt.remains and sentences.beats_chance(trainings.runs, plan):
        st.caption(f"Why more than chance is left: {learnt.remains}")


def costs(trainings):
    """What each model got right, and what it costs, beside each other."""
    chosen = rates_chosen(trainings)
    summary = results.summary(trainings.runs, trainings.plan, chosen)
    several = len(trainings.plan.seeds) > 1
    if trainings.plan.guards:
        st.caption(f"{said_alike(trainings.plan.guards)} {literal(said_of_ends(trainings))}")
    rates = {"learning rate on seeds": list(summary.rates)} if chosen else {}
    rows = pd.DataFrame({
        "model": [f"{row.variant}{f' ({row.note})' if row.note else ''}" for row in summary.itertuples()],
        **rates,
        "accuracy, %": spans(summary.accuracy, summary.low, summary.high, several),
        "seeds": [f"{row.seeds}{f' ({row.diverged} diverged)' if row.diverged else ''}" for row in summary.itertuples()],
        "Δ accuracy, points": spans(summary.difference, summary.difference_low, summary.difference_high, several),
        "p, corrected (Holm)" if summary.p.notna().sum() > 1 else "p, paired t-test": [chance(row.p, row.difference_low, row.difference_high) for row in summary.itertuples()],
        "steps to 90 %": [arrived(row.steps_to_90, row.seeds_at_90, len(trainings.plan.seeds)) for row in summary.itertuples()],
        "parameters": [f"{row.parameters:,}{change(row.parameters_difference)}" for row in summary.itertuples()],
        "MFLOP": [f"{row.flops / 1e6:.3g}{change(row.flops_difference)}" for row in summary.itertuples()],
    })  # fmt: skip
    widths = WIDTHS if several else {}
    table(
        rows, "Accuracy and cost of each model.", taken=summary, width="stretch",
        column_config={name: st.column_config.Column(width=width) for name, width in widths.items()},
    )  # fmt: skip


def spans(values, lows, highs, several: bool) -> list[str]:
    """Write a column of shares in percent, each with its interval where there is one, all with the same decimals."""
    decimals = sentences.decimals_of(values)
    return [span(*each, several, decimals) for each in zip(values, lows, highs)]


def span(value, low, high, several: bool, decimals: int = 1) -> str:
    """A share in percent, with its interval where there is one."""
    if math.isnan(value):
        return "–"
    text = sentences.points(value, decimals)
    shown = several and not math.isnan(low) and low < high  # where all seeds agree there is no noise to tell one from
    return f"{text}  [{sentences.points(low, decimals)}, {sentences.points(high, decimals)}]" if shown else text


def chance(p: float, low: float, high: float) -> str:
    """The p of a difference; none where all seeds agree to the last bit."""
    if math.isnan(p) or low == high:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def arrived(steps: float, seeds: int, of: int) -> str:
    """When a model had come to 90 % right, on average, and how many of its seeds did."""
    if not seeds:
        return "–"
    return f"{steps:,.0f}" + (f" ({seeds} of {of})" if seeds < of else "")


def change(share: float) -> str:
    """A relative difference of cost, in brackets, where there is one."""
    return "" if share == 0 else f"  ({100 * share:+.{1 if abs(share) >= 0.0005 else 2}f} %)".replace("-", "−")


def lines(trainings, field: str, log: bool = False) -> tuple[list[int], list[Line]]:
    """-> (steps, one line per model: the mean over seeds, its 95 % interval, and every seed)"""
    plan, runs = trainings.plan, trainings.runs
    steps = sorted({row.step for rows in runs.values() for row in rows if not row.note})
    several, banded = (
        1 < len(plan.seeds) <= FEW,
        len(plan.seeds) > 2,
    )  # of two seeds an interval spans nearly everything
    unknown = Interval(math.nan, math.nan, math.nan, 0)
    panels = []
    for arm in arms_shown(trainings):
        spans = dict(results.course(runs, plan, arm.name, field, log))
        spans = [spans.get(step, unknown) for step in steps]
        seeds = [{row.step: getattr(row, field) for row in runs[arm.name, seed] if not row.note} for seed in plan.seeds]
        panels.append(
            Line(
                arm.colour,
                [span.mean for span in spans],
                gone(trainings, arm.name),
                [span.low for span in spans] if banded else None,
                [span.high for span in spans] if banded else None,
                [[values.get(step, math.nan) for step in steps] for values in seeds] if several else None,
            )
        )
    return steps, panels
