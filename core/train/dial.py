"""Sizes of the dial: width, layers, heads and training steps follow from one number.

Size n has n layers of width 32 n and 2 n heads of width 16, and trains for n / 2 times the usual
steps of its task. So the weights of the blocks grow as n³. nanochat sets its sizes in this way,
from the number of layers alone
(https://github.com/karpathy/nanochat).
"""

import re

from core.model.config import Config
from core.tasks import task

DIAL = (1, 2, 3, 4, 5)
USUAL = 2  # the size at which a task has its usual number of steps


def model_size(size: int) -> dict[str, int]:
    """Return {setting: value} of a size's width, heads and layers."""
    return {"d_model": 32 * size, "n_heads": 2 * size, "n_layers": size}


def steps_at(task_name: str, size: int) -> int:
    """Return the steps for which a model of this size trains on a task."""
    steps: int = task[task_name].training["steps"]
    return steps * size // USUAL


def find_size(config: Config) -> int | None:
    """Return the size with this config's width, heads and layers; None if no size has them."""
    for size in DIAL:
        if all(getattr(config, name) == value for name, value in model_size(size).items()):
            return size
    return None


def name_at_size(name: str, size: int) -> str:
    """Return a task's name in a study at one size: "reverse, size 3"."""
    return f"{name}, size {size}"


def split_size(name: str) -> tuple[str, int | None]:
    """Return (name, size) of a name from name_at_size(); (the name, None) for another one."""
    match = re.fullmatch(r"(.+), size (\d+)", name)
    return (match[1], int(match[2])) if match else (name, None)
