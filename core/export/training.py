"""Settings -> Python scripts that print the numbers of the page "Training": every curve, and where it ends.

The flavours are those of scripts.py. Both train in the order in which the plan has it, with one thread, and on the
CPU of one machine their numbers are the app's to the last bit.
"""

import dataclasses
import textwrap
from typing import Any

from core.experiments.training.plan import Arm, Plan
from core.export.bundle.bundle import Bundle
from core.export.bundle.literals import WIDTH, braces, literal, quoted
from core.export.forms import (
    call_text,
    changed_text,
    checked,
    core_script,
    settings_call,
    torch_script,
    values,
    variants_text,
)
from core.export.plain_training import Problem, print_training
from core.model.config import Config
from core.model.transformer import Transformer
from core.tasks import Task, task
from core.train.settings import Training

SETTINGS = (
    "VARIANTS",
    "OTHERWISE",
    "SEARCH",
    "SEEDS",
    "VOCABULARY",
    "DEVICE",
    "DTYPE",
    "problem",
)  # names that a script gives itself

TRAINING = """\
# rows: the curves. loss: of the step's batch; accuracy: on held-out sequences; gradient_norm: before clipping;
#     update_size: how far the step moved all weights together, relative to their norm
# accuracy: where the curves end, averaged over the seeds that did not diverge, with its 95 % interval (low, high);
#     the difference from the first model, seed by seed, with its interval and the p of the paired t-test,
#     corrected for all models (Holm); and what each model costs
# Training makes differences grow: on another machine, where rounding differs, the curves part after a while."""


def training_script(flavour: str, plan: Plan) -> str:
    """A script that trains all models of a plan with all its seeds and prints CSV sections rows and accuracy.

    flavour: "core" or "torch". Raises ConfigError for what cannot be trained (Plan.states).
    """
    checked(flavour)
    plan.states()
    return _core(plan) if flavour == "core" else _torch(plan)


def _core(plan: Plan) -> str:
    baseline = plan.arms[0].config
    return core_script(
        TRAINING,
        plan.machine,
        CORE_TRAINING,
        CONFIG=settings_call(baseline, before=len("BASELINE = ")),
        ARMS=braces([_arm(arm, baseline) for arm in plan.arms], "[]", WIDTH),
        TRAINING=settings_call(plan.training, before=len("TRAINING = ")),
        TRIAL=settings_call(plan.trial, before=len("TRIAL = ")),
    )


def _torch(plan: Plan) -> str:
    learnt, baseline = task[plan.training.task], plan.arms[0].config
    ways = {name: (arm.config, how) for arm in plan.arms for name, how in plan.ways(arm).items()}
    configs = {name: config for name, (config, _) in ways.items()}
    taken = values(plan.training, *configs.values())
    taken |= {name: {getattr(learnt, name)} for name in ("held_out", "until", "rivals")}
    bundle = Bundle([Transformer, Training, learnt.draw, Problem, print_training], taken, SETTINGS)
    lines = [
        f"VARIANTS = {variants_text(configs, baseline, 'Config({})', 'Config()')}",
        f"SEEDS = range({plan.seeds[0]}, {plan.seeds[-1] + 1})",
        f"VOCABULARY = {_words(learnt.vocabulary)}",
    ]
    problem = _problem(learnt, bundle.name_of(learnt.draw)).replace("\n", "\n    ")
    call = f"problem = {problem}\n"
    otherwise = {name: how for name, (_, how) in ways.items() if how != plan.training}
    more = ", OTHERWISE" * bool(otherwise)
    if otherwise:
        changes = [
            f"{quoted(name)}: {changed_text(how, plan.training, 'Training({})', '', 6 + len(quoted(name)))}"
            for name, how in otherwise.items()
        ]
        lines.append(f"OTHERWISE = {braces(changes, before=WIDTH)}")
    if plan.trial.search != "none":
        lines.append(f"SEARCH = {_search(plan)}")
        more += ", SEARCH"
    call += f"    print_training(VARIANTS, SEEDS, Training(), problem, DEVICE, DTYPE{more})"
    return torch_script(bundle, TRAINING, plan.machine, [baseline, plan.training], lines, call)


def _problem(learnt: Task, draw: str) -> str:
    """Problem(…): how the data are drawn, and those facts of the task that are not its defaults."""
    facts = {name: getattr(learnt, name) for name in Problem._fields if name not in ("draw", "vocabulary")}
    given = [
        f"{name}={literal(value, before=12 + len(name), inside=8)}"
        for name, value in facts.items()
        if name not in Problem._field_defaults or value != Problem._field_defaults[name]
    ]
    return call_text("Problem({})", [draw, "VOCABULARY", *given], before=len("    problem = "))


def _search(plan: Plan) -> str:
    """The runs of each model by their learning rates."""
    runs = {
        arm.name: [f"{how.learning_rate!r}: {quoted(name)}" for name, how in plan.ways(arm).items()]
        for arm in plan.arms
    }
    return braces(
        [f"{quoted(name)}: {braces(each, before=6 + len(quoted(name)))}" for name, each in runs.items()], before=WIDTH
    )


def _words(vocabulary: tuple[str, ...]) -> str:
    """A tuple of words; where it is long, written as a text that is split, if none of them has what splits."""
    line = f"({', '.join(map(quoted, vocabulary))}{',' * (len(vocabulary) == 1)})"
    text = " ".join(vocabulary)
    if len("VOCABULARY = ") + len(line) <= WIDTH:
        return line
    if text.split() != list(vocabulary) or not text.isprintable() or '"' in text or "\\" in text:
        return braces(list(map(quoted, vocabulary)), "()", WIDTH)
    lines = textwrap.fill(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return f'tuple(\n    """\n{textwrap.indent(lines, "    ")}\n    """.split()\n)'


def _arm(arm: Arm, baseline: Config) -> str:
    """Arm(…), with all that is not a default."""
    given = {field.name: getattr(arm, field.name) for field in dataclasses.fields(arm) if _is_given(arm, field)}
    config = changed_text(arm.config, baseline, "BASELINE.replace({})", "BASELINE", before=8 + len("config="))
    written = {"config": config, "training": settings_call(arm.training, 8 + len("training=")) if arm.training else ""}
    fields = [f"{name}={written.get(name) or _value(value)}" for name, value in given.items()]
    return call_text("Arm({})", fields, before=4)


def _is_given(arm: Arm, field: dataclasses.Field[Any]) -> bool:
    return bool(getattr(arm, field.name) != field.default)


def _value(value: object) -> str:
    """A field of an arm: text, a number, or sets of names, one or several."""
    if isinstance(value, frozenset):
        return f"frozenset({literal(sorted(value))})" if value else "frozenset()"
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))},)"
    return literal(value)


CORE_TRAINING = """\
import sys

import torch

from core import Config
from core.settings.device import Machine
from core.experiments.training.judged import judged, rates
from core.experiments.training.plan import Arm, Plan, Trial
from core.experiments.training.results import every_row, summary
from core.train import Training, train

BASELINE = $CONFIG
ARMS = $ARMS
TRAINING = $TRAINING
TRIAL = $TRIAL
MACHINE = $MACHINE
PLAN = Plan(tuple(ARMS), TRAINING, TRIAL, MACHINE)


$SHOW
torch.set_num_threads(1)  # as in the app: several would add the same numbers in another order

runs = {(name, seed): list(train(config, how, seed, MACHINE)) for name, config, how, seed in PLAN.trainings()}
show("rows", every_row(runs, PLAN))
found = judged(runs, PLAN)
show("accuracy", summary(found.runs, PLAN, rates(PLAN, found.names)))
"""
