"""What a training is made of: task, budget, optimiser and the course of the learning rate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.optim import Optimizer

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from core.tasks import task
from core.train.muon import Muon

# Share of the way after warm-up, 0 to 1 -> factor of the learning rate.
decay: Menu[Callable[[float], float]] = Menu("Decay")
Weights = Sequence[torch.Tensor]
Heights = Sequence[tuple[int, ...]]  # of the matrices in each weight
Make = Callable[[Weights, Heights, float, float, bool], Optimizer]
optimiser: Menu[Make] = Menu("Optimiser")


@decay
def none(progress: float) -> float:
    """None: the learning rate stays as it is after warm-up."""
    return 1.0


@decay
def linear(progress: float) -> float:
    """Linear: in a straight line to zero."""
    return 1.0 - progress


@decay
def cosine(progress: float) -> float:
    """Cosine: slowly at first, then fast, then slowly to zero (Loshchilov and Hutter, 2017)."""
    return 0.5 * (1 + math.cos(math.pi * progress))


@optimiser
def adamw(weights: Weights, heights: Heights, rate: float, decay: float, fused: bool) -> Optimizer:
    """AdamW: a step size of its own for every parameter, from its past gradients (Loshchilov and Hutter, 2019)."""
    return torch.optim.AdamW(weights, lr=rate, weight_decay=decay, fused=fused)


@optimiser
def sgd(weights: Weights, heights: Heights, rate: float, decay: float, fused: bool) -> Optimizer:
    """SGD: gradient descent with momentum 0.9; needs a higher learning rate than AdamW, about 0.1."""
    return torch.optim.SGD(weights, lr=rate, momentum=0.9, weight_decay=decay, fused=fused)


@optimiser
def muon(weights: Weights, heights: Heights, rate: float, decay: float, fused: bool) -> Optimizer:
    """Muon: momentum made orthogonal for every matrix of a block, AdamW for the rest (Jordan, 2024); scaled so that AdamW's rates fit."""
    return Muon(weights, heights, rate, decay)


training_setting = partial(setting, group="Training")
more_setting = partial(setting, group="More training")
RATES = tuple(float(f"{digit}e{power}") for power in (-4, -3, -2, -1) for digit in (1, 2, 3, 5)) + (1.0,)


def budget(name: str, otherwise: Any = None) -> Callable[[Any], Any]:
    """A setting that follows the task's own until it is moved."""
    return lambda training: task[training.task].training.get(name, otherwise)


@dataclass(frozen=True)
class Training(Settings):
    """What is learnt and how. Raises ConfigError for a value that cannot be."""

    task: str = setting("reverse", "Task", "What the model has to learn.", group="Task", short="task", menu=task)
    length: int = setting(
        None,
        "Length",
        "Tokens of a sequence. Follows the task until you move it.",
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
        "How many times the weights are changed. Follows the task until you move it.",
        short="steps",
        kind=int,
        low=1,
        high=100_000,
        step=50,
        top=3000,
        follows=budget("steps"),
    )
    batch: int = training_setting(
        None,
        "Batch",
        "Sequences per step. Follows the task until you move it.",
        short="batch",
        kind=int,
        low=1,
        high=4096,
        step=8,
        top=256,
        follows=budget("batch"),
    )
    learning_rate: float = training_setting(
        None,
        "Learning rate",
        "How far a step goes, after warm-up and before decay. Follows the task until you move it.",
        short="learning rate",
        kind=float,
        low=1e-6,
        high=1000.0,
        follows=budget("learning_rate"),
        among=lambda training: sorted({*RATES, training.learning_rate}),
    )
    warmup: int = training_setting(
        None,
        "Warm-up (steps)",
        "Steps in which the learning rate grows in a straight line to its full value. Follows the task until you move it.",
        short="warm-up",
        kind=int,
        low=0,
        high=10_000,
        step=10,
        top=500,
        follows=budget("warmup", 0),
    )
    decay: str = training_setting(
        None,
        "Decay",
        "How the learning rate falls after warm-up. Follows the task until you move it.",
        short="decay",
        kind=str,
        menu=decay,
        follows=budget("decay", "none"),
    )
    optimiser: str = more_setting(
        "adamw",
        "Optimiser",
        "How gradients become changes of the weights.",
        short="optimiser",
        menu=optimiser,
    )
    weight_decay: float = more_setting(
        0.01,
        "Weight decay",
        "Pulls every weight towards zero at each step, by this share times the learning rate in AdamW.",
        short="weight decay",
        low=0.0,
        high=10.0,
        step=0.01,
        top=1.0,
    )
    clip: float = more_setting(
        0.0,
        "Gradient clipping",
        "Gradients whose norm is greater than this are shortened to it. 0: never.",
        short="clipping",
        low=0.0,
        high=1000.0,
        step=0.1,
        top=10.0,
    )
    every: int = more_setting(
        None,
        "A row every",
        "Steps from one point of the curves to the next. Follows the steps: fifty points.",
        short="steps per row",
        kind=int,
        low=1,
        high=100_000,
        step=1,
        top=100,
        follows=lambda training: max(1, training.steps // 50),
    )

    def _check_together(self) -> None:
        task[self.task].check_length(self.length)

    def due(self, step: int) -> bool:
        """Whether a step gives a row."""
        return step in (1, self.steps) or step % self.every == 0

    def rate(self, step: int) -> float:
        """The learning rate of a step, the first of which is 1."""
        if step <= self.warmup:
            return self.learning_rate * step / self.warmup
        return self.learning_rate * decay[self.decay]((step - 1 - self.warmup) / max(1, self.steps - self.warmup))
