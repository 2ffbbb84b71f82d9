"""Other ways to train the very same model, which can be compared with the way that is set: each one definition."""

from collections.abc import Callable
from typing import Any

from core.settings.menu import Menu

# -> the settings of the training that are changed
otherwise: Menu[Callable[[], dict[str, Any]]] = Menu("Also trained")


@otherwise
def nothing() -> dict[str, Any]:
    """No: every model is trained in the way that is set."""
    return {}


@otherwise
def muon() -> dict[str, Any]:
    """Muon: the baseline once more, with Muon as its optimiser."""
    return {"optimiser": "muon"}


@otherwise
def sgd() -> dict[str, Any]:
    """SGD, rate 0.1: the baseline once more, with gradient descent and the learning rate that this needs."""
    return {"optimiser": "sgd", "learning_rate": 0.1}


@otherwise
def no_warmup() -> dict[str, Any]:
    """no warm-up: the baseline once more, with its full learning rate from the first step."""
    return {"warmup": 0}


@otherwise
def no_decay() -> dict[str, Any]:
    """no decay: the baseline once more, with a learning rate that does not fall."""
    return {"decay": "none"}


@otherwise
def cosine() -> dict[str, Any]:
    """cosine decay: the baseline once more, with a learning rate that falls to zero along a cosine."""
    return {"decay": "cosine"}


@otherwise
def clipped() -> dict[str, Any]:
    """gradients clipped at 1: the baseline once more, with gradients that are shortened to a norm of 1."""
    return {"clip": 1.0}
