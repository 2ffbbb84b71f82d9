"""Views of a training over steps: curves, an animation, and gradient statistics."""

import math
from dataclasses import replace
from statistics import fmean

import torch

from core.experiments.training import results
from core.experiments.training.plan import Arm
from core.experiments.training.results import diverged
from core.experiments.training.sentences import format_percent
from core.settings.wording import count, number
from ui.kit.page import figure
from ui.pictures.curves import Panel, draw_curves
from ui.pictures.heatmaps import Frames, draw_animation
from ui.shared.trainings import arms_shown, chart_lines, draw_learning, draw_legend, label_of
from ui.training.context import TrainingContext, view


@view.register("play", label="Play", help="animation of training: accuracy of each model and seed.")
def play(context: TrainingContext):
    """Draw an animation of the accuracy of each model and seed, with the mean as curves."""
    trainings = context.trainings
    plan = trainings.plan
    arms = arms_shown(trainings)
    steps, accuracy = chart_lines(trainings, "accuracy")
    figure(
        "Accuracy over training",
        f"One row per model, one column per seed, {count(len(steps), 'checkpoint')}.",
    )
    draw_legend(trainings)
    if steps:
        _draw_animation(trainings, arms, steps)
    panel = Panel(
        "Share of correct answers.",
        "Test accuracy, mean over seeds",
        "",
        accuracy,
        bounds=(0.0, 1.0),
    )
    names = {arm.colour: label_of(arm) for arm in arms}
    draw_curves(
        "played_learning",
        [panel],
        names,
        x="step",
        positions=steps or [0],
        ends=(0, plan.training.steps),
        height=170,
    )


def _draw_animation(trainings, arms: list[Arm], steps: list[int]):
    """Draw a heat map of accuracy by model and seed, animated over checkpoints."""
    plan = trainings.plan
    finite = {
        name: {row.step: row.accuracy for row in rows if not row.note}
        for name, rows in trainings.runs.items()
    }  # (model, seed) -> step -> accuracy
    cells = [
        [[finite[arm.name, seed].get(step, math.nan) for seed in plan.seeds] for arm in arms]
        for step in steps
    ]
    draw_animation(
        "played_training",
        torch.tensor(cells)[:, None],
        [arm.name for arm in arms],
        [f"seed {seed}" for seed in plan.seeds],
        Frames(
            "Step",
            steps,
            [f"step {step:,} of {plan.training.steps:,}" for step in steps],
            [
                _describe_accuracy(arms, moment, _diverged_by(trainings, step))
                for step, moment in zip(steps, cells)
            ],
            [[f"step {step:,}"] for step in steps],
            "training_animated",
            trainings.origin,
            trainings.going,
        ),
        quantity="test accuracy, 0 to 1",
        alt="Accuracy of each model with each seed, step after step.",
        blank="diverged or not reached",
        height=60 + 44 * len(arms),
        arrow="with",
        square=False,
    )


def _diverged_by(trainings, step: int) -> dict[str, int]:
    """Return model's name -> number of its seeds that have diverged by a step."""
    lost = {arm.name: 0 for arm in trainings.plan.arms}
    for (name, _), rows in trainings.runs.items():
        lost[name] += bool(diverged(rows)) and rows[-1].step <= step
    return lost


def _describe_accuracy(
    arms: list[Arm], accuracies: list[list[float]], n_diverged_by_name: dict[str, int]
) -> str:
    """Return a sentence on each model's mean accuracy, from shares (model, seed); NaN: none.

    Seeds that diverged or have no value do not count in the mean.
    """
    sentences = []
    for arm, row in zip(arms, accuracies):
        reached = [value for value in row if not math.isnan(value)]
        diverged_seeds = n_diverged_by_name[arm.name]
        words = "no results yet"
        if reached:
            words = format_percent(fmean(reached))
        elif diverged_seeds:
            words = "diverged"
        of_seeds = (
            f" ({diverged_seeds} of {count(len(row), 'seed')} diverged)"
            if diverged_seeds and len(row) > 1
            else ""
        )
        sentences.append(f"{arm.name}: {words}{of_seeds}")
    return f"Mean accuracy: {'; '.join(sentences)}."


ALIKE = "Same for all models."
EACH = "Mean over seeds, per model."


@view.register(
    "steps", label="Steps", help="gradient norm, update size and learning rate at each step."
)
def steps(context: TrainingContext):
    """Draw gradient norm, update size and learning rate over steps."""
    trainings = context.trainings
    draw_legend(trainings)
    gradient_table, gradients = chart_lines(trainings, "gradient_norm", log=True)
    _, updates = chart_lines(trainings, "update_size", log=True)
    _, rates = chart_lines(trainings, "learning_rate")
    rates = [replace(rate, low=None, high=None, seeds=None) for rate in rates]
    alike = trainings.plan.one_training
    clip = trainings.plan.training.clip
    panels = [
        Panel(
            "Global norm before clipping.",
            "Gradient norm",
            describe_gradients(trainings),
            gradients,
            log=True,
            marks=((clip, "clipped to"),) if clip else (),
        ),
        Panel(
            "Norm of the update ÷ norm of the weights.",
            "Relative update size",
            describe_updates(trainings),
            updates,
            log=True,
        ),
        Panel(
            "As set by the schedule.",
            "Learning rate",
            ALIKE if alike else EACH,
            rates[:1] if alike else rates,
        ),
    ]
    names = {arm.colour: label_of(arm) for arm in arms_shown(trainings)}
    ends = (0, trainings.plan.training.steps)
    draw_curves(
        "training_steps",
        panels,
        names,
        x="step",
        positions=gradient_table or [0],
        ends=ends,
        height=265,
        across=3,
    )


def describe_gradients(trainings) -> str:
    """Return a sentence on the largest gradient norm of each model; "" without any."""
    phrases = []
    for arm in arms_shown(trainings):
        rows = [
            (row.gradient_norm, row.step)
            for seed in trainings.plan.seeds
            for row in trainings.runs[arm.name, seed]
        ]
        rows = [(norm, step) for norm, step in rows if norm == norm]
        if rows:
            norm, step = max(rows)
            phrases.append(f"{arm.name} {number(norm)} (step {step})")
    return f"Largest: {'; '.join(phrases)}." if phrases else ""


def describe_updates(trainings) -> str:
    """Return a sentence on each model's last relative update (%, mean over seeds); "" for none."""
    phrases = []
    for arm in arms_shown(trainings):
        sizes = [
            results.last_value(trainings.runs[arm.name, seed], "update_size")
            for seed in trainings.plan.seeds
        ]
        sizes = [size for size in sizes if size == size]
        if sizes:
            phrases.append(f"{arm.name} {100 * sum(sizes) / len(sizes):.2g} %")
    return f"Last step: {'; '.join(phrases)}." if phrases else ""


@view.register(
    "learning",
    label="Curves",
    help="accuracy and loss during training, and the cost of each model.",
)
def learning(context: TrainingContext):
    """Draw learning curves, and the table of results and costs."""
    draw_learning(context.trainings)
