from dataclasses import replace

from core.experiments.training import results
from core.settings.wording import number
from ui.pictures.curves import Panel, curves
from ui.shared.learning import lines
from ui.shared.trainings import arms_shown, label, legend
from ui.training.context import view

ALIKE = "The same for all models."
EACH = "Of each model, mean over seeds."


@view
def steps(context):
    """Steps: how large the gradients are, and how far each step moves the weights."""
    trainings = context.trainings
    legend(trainings)
    at, gradients = lines(trainings, "gradient_norm", log=True)
    _, updates = lines(trainings, "update_size", log=True)
    _, rates = lines(trainings, "learning_rate")
    rates = [replace(rate, low=None, high=None, seeds=None) for rate in rates]
    alike = trainings.plan.one_training
    clip = trainings.plan.training.clip
    panels = [
        Panel("How strongly does the error pull?", "Norm of all gradients together, before clipping", pulled(trainings), gradients,
              log=True, marks=((clip, "clipped to"),) if clip else ()),
        Panel("How far does a step go?", "Norm of the change of all weights / their norm", moved(trainings), updates, log=True),
        Panel("What is the learning rate?", "Warm-up, then decay", ALIKE if alike else EACH, rates[:1] if alike else rates),
    ]  # fmt: skip
    names = {arm.colour: label(arm) for arm in arms_shown(trainings)}
    curves(
        "training_steps",
        panels,
        names,
        x="step",
        at=at or [0],
        ends=(0, trainings.plan.training.steps),
        height=265,
        across=3,
    )


def pulled(trainings) -> str:
    """The largest gradient of each model, and where it was."""
    phrases = []
    for arm in arms_shown(trainings):
        rows = [
            (row.gradient_norm, row.step) for seed in trainings.plan.seeds for row in trainings.runs[arm.name, seed]
        ]
        rows = [(norm, step) for norm, step in rows if norm == norm]
        if rows:
            norm, step = max(rows)
            phrases.append(f"{arm.name} {number(norm)} (step {step})")
    return f"Largest: {'; '.join(phrases)}." if phrases else ""


def moved(trainings) -> str:
    """How far the newest step of each model went, averaged over seeds."""
    phrases = []
    for arm in arms_shown(trainings):
        sizes = [results.last(trainings.runs[arm.name, seed], "update_size") for seed in trainings.plan.seeds]
        sizes = [size for size in sizes if size == size]
        if sizes:
            phrases.append(f"{arm.name} {100 * sum(sizes) / len(sizes):.2g} %")
    return f"The newest step moves the weights by: {'; '.join(phrases)}." if phrases else ""
