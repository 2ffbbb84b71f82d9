"""Settings of a training: task, budget, optimiser, learning-rate schedule."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch.optim import Optimizer

from core.model.config import Config
from core.model.rewriting import reverse_heads_and_units
from core.model.transformer import Transformer
from core.model.variants import Pins, encode
from core.settings.menu import Menu
from core.settings.setting import Setting, Settings, setting, setting_like
from core.tasks import task
from core.train.muon import Muon

Weights = Sequence[torch.Tensor]
Heights = Sequence[tuple[int, ...]]  # of the matrices in each weight
Make = Callable[[Weights, Heights, float, float, bool], Optimizer]
optimiser: Menu[Make] = Menu("Optimiser")


# Share of the way after warm-up, 0 to 1 -> factor of the learning rate.
decay: Menu[Callable[[float], float]] = Menu("Decay")
decay.add("none", lambda progress: 1.0, label="None", help="constant learning rate after warm-up.")
decay.add("linear", lambda progress: 1.0 - progress, label="Linear", help="linear decay to zero.")
decay.add(
    "cosine",
    lambda progress: 0.5 * (1 + math.cos(math.pi * progress)),
    label="Cosine",
    help="cosine decay to zero (Loshchilov and Hutter, 2017).",
)


@optimiser.register(
    "adamw",
    label="AdamW",
    help="adaptive step size per parameter, decoupled weight decay (Loshchilov and Hutter, 2019).",
)
def adamw(weights: Weights, heights: Heights, rate: float, decay: float, fused: bool) -> Optimizer:
    """Create PyTorch's AdamW; `decay` is weight decay, `heights` is not used."""
    return torch.optim.AdamW(weights, lr=rate, weight_decay=decay, fused=fused)


@optimiser.register(
    "sgd",
    label="SGD",
    help="gradient descent with momentum 0.9. Needs a higher learning rate than AdamW, about 0.1.",
)
def sgd(weights: Weights, heights: Heights, rate: float, decay: float, fused: bool) -> Optimizer:
    """Create PyTorch's SGD with momentum 0.9; `decay` is weight decay, `heights` is not used."""
    return torch.optim.SGD(weights, lr=rate, momentum=0.9, weight_decay=decay, fused=fused)


@optimiser.register(
    "muon",
    label="Muon",
    help=(
        "orthogonalised momentum for the matrices of a block, AdamW for the rest "
        "(Jordan, 2024); updates are scaled so that AdamW's learning rates can be used."
    ),
)
def muon(weights: Weights, heights: Heights, rate: float, decay: float, fused: bool) -> Optimizer:
    """Create Muon; `decay` is weight decay, `fused` is not used."""
    return Muon(weights, heights, rate, decay)


# Changes a model in place before its first step.
initial_order: Menu[Callable[[Transformer], None]] = Menu("Initial order")
initial_order.add("drawn", lambda model: None, label="As drawn", help="the weights as drawn.")
initial_order.add(
    "reversed",
    reverse_heads_and_units,
    label="Reversed",
    help=(
        "heads and hidden units in reverse order: the same function, so curves differ by rounding"
        " only. What a part changes should be larger than that."
    ),
)

training_setting = partial(setting, group="Training")
more_setting = partial(setting, group="Training details")
RATES = tuple(float(f"{digit}e{power}") for power in (-4, -3, -2, -1) for digit in (1, 2, 3, 5)) + (
    1.0,
)


def task_default(name: str, otherwise: Any = None) -> Callable[[Any], Any]:
    """Return a function of a Training: its task's default for a setting, `otherwise` if none."""
    return lambda training: task[training.task].training.get(name, otherwise)


@dataclass(frozen=True)
class Training(Settings):
    """Settings of a training. Raises ConfigError for impossible values."""

    task: str = setting(
        "reverse", "Task", "What the model learns.", group="Task", short="task", menu=task
    )
    length: int = setting(
        None,
        "Length",
        "Tokens per sequence. Task default until changed.",
        group="Task",
        short="length",
        kind=int,
        low=2,
        high=128,
        follows=lambda training: task[training.task].length,
        among=lambda training: list(task[training.task].lengths),
    )
    steps: int = training_setting(
        None,
        "Steps",
        "Optimiser steps. Task default until changed.",
        short="steps",
        kind=int,
        low=1,
        high=100_000,
        step=50,
        top=3000,
        follows=task_default("steps"),
    )
    batch: int = training_setting(
        None,
        "Batch size",
        "Sequences per step. Task default until changed.",
        short="batch",
        kind=int,
        low=1,
        high=4096,
        step=8,
        top=256,
        follows=task_default("batch"),
    )
    learning_rate: float = training_setting(
        None,
        "Learning rate",
        "Peak learning rate. Task default until changed.",
        short="learning rate",
        kind=float,
        low=1e-6,
        high=1000.0,
        follows=task_default("learning_rate"),
        among=lambda training: sorted({*RATES, training.learning_rate}),
    )
    warmup: int = training_setting(
        None,
        "Warm-up (steps)",
        "Steps of linear warm-up. Task default until changed.",
        short="warm-up",
        kind=int,
        low=0,
        high=10_000,
        step=10,
        top=500,
        follows=task_default("warmup", 0),
    )
    decay: str = training_setting(
        None,
        "Decay",
        "Learning-rate schedule after warm-up. Task default until changed.",
        short="decay",
        kind=str,
        menu=decay,
        follows=task_default("decay", "none"),
    )
    optimiser: str = more_setting(
        "adamw",
        "Optimiser",
        "Update rule for the weights.",
        short="optimiser",
        menu=optimiser,
    )
    weight_decay: float = more_setting(
        0.01,
        "Weight decay",
        "Decoupled weight decay; AdamW multiplies it by the learning rate.",
        short="weight decay",
        low=0.0,
        high=10.0,
        step=0.01,
        top=1.0,
    )
    clip: float = more_setting(
        0.0,
        "Gradient clipping",
        "Gradients are clipped to this norm. 0 = off.",
        short="clipping",
        low=0.0,
        high=1000.0,
        step=0.1,
        top=10.0,
    )
    initial_order: str = more_setting(
        "drawn",
        "Initial order",
        "Order of heads and hidden units before the first step.",
        short="initial order",
        menu=initial_order,
    )
    every: int = more_setting(
        None,
        "Log every N steps",
        "Steps between two points on the curves. By default, each curve has 50 points.",
        short="steps per row",
        kind=int,
        low=1,
        high=100_000,
        step=1,
        top=100,
        follows=lambda training: max(1, training.steps // 50),
    )

    def _check_together(self) -> None:
        """Raise ConfigError if the task has no sequences of this length."""
        task[self.task].check_length(self.length)

    def due(self, step: int) -> bool:
        """Return whether a step, from 1, gives a row: 1, multiples of `every`, and the last."""
        return step in (1, self.steps) or step % self.every == 0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step (from 1), by warm-up and decay."""
        if step <= self.warmup:
            return self.learning_rate * step / self.warmup
        return self.learning_rate * decay[self.decay](
            (step - 1 - self.warmup) / max(1, self.steps - self.warmup)
        )


HELP = {
    "dropout": "Dropout rate in training; off when accuracy is measured.",
    "seed": (
        "Seed of the first run; each subsequent run adds 1. The same seed gives bit-identical"
        " curves on the same machine. On another, curves drift apart after a while, by rounding."
    ),
}


def read_task_name(settings: "Learner | Removed") -> str:
    """Return the field `task` of settings; ConfigError if no task has this name."""
    name: str = settings.settings()["task"].check("task", settings.task)
    return name


@cache
def default_config(task_name: str) -> Config:
    """Return the Config of a task's full model (cached); KeyError for an unknown task."""
    return task[task_name].config()


def _task_value(name: str, learner: "Learner") -> Any:
    """Return a setting's value in the full model of the learner's task."""
    return getattr(default_config(read_task_name(learner)), name)


@dataclass(frozen=True, init=False)
class Learner(Config):
    """Settings of a model whose defaults are those of its task.

    Raises:
        ConfigError: As Config does.
    """

    task: str = setting_like(Training, "task", "reverse")

    def __init__(self, task: str = "reverse", **values: Any):
        unknown = values.keys() - Config.settings().keys()
        if unknown:
            raise TypeError(f"a model has no setting {', '.join(sorted(unknown))}")
        for name in Config.settings():
            object.__setattr__(self, name, values.get(name))
        object.__setattr__(self, "task", task)
        self.__post_init__()

    @classmethod
    @cache
    def settings(cls) -> dict[str, Setting]:
        """Return Config's settings and `task` by name; default: as in Config, or the task's."""
        definitions = dict(super().settings())
        for name, known_setting in definitions.items():
            if name != "task":  # the task's own value until another is given
                follows = known_setting.follows or partial(_task_value, name)
                help = HELP.get(name, known_setting.help)
                definitions[name] = dataclasses.replace(known_setting, help=help, follows=follows)
        return definitions

    def plain(self) -> Config:
        """Return a Config with the model's settings, without the task's name."""
        return Config(**{name: getattr(self, name) for name in Config.settings()})


@dataclass(frozen=True)
class Removed(Pins):
    """Variants of a training; by default the model without what the task needs."""

    variants: str = setting_like(
        Pins, "variants", None, follows=lambda pins: encode(task[read_task_name(pins)].without)
    )
    task: str = setting_like(Training, "task", "reverse")
