"""Six comparisons whose outcome is known, one click each: what the page "Training" offers first."""

from collections.abc import Callable

from core.settings.menu import Menu

showcase: Menu[Callable[[], dict[str, str]]] = Menu(
    "Experiments"
)  # each gives the parameters of a link to the page "Training"


@showcase
def residual() -> dict[str, str]:
    """No residuals at 12 layers: what becomes of a deep model when nothing is passed on beside its sub-layers?"""
    return {"task": "reverse", "n_layers": "12", "steps": "120", "variants": "residual_attention-off__residual_ffn-off"}


@showcase
def warm_up() -> dict[str, str]:
    """Post-norm without warm-up: twelve layers learn with the norm before each sub-layer; do they with the norm after it?"""
    return {
        "task": "reverse", "n_layers": "12", "steps": "120", "warmup": "0", "learning_rate": "0.005",
        "variants": "placement-post",
    }  # fmt: skip


@showcase
def positions() -> dict[str, str]:
    """No positions on reverse: who does not know where a word stands cannot turn a sequence round. Or a little?"""
    return {"task": "reverse", "variants": "position-none"}


@showcase
def heads() -> dict[str, str]:
    """One head on subtraction: six hundred steps of a − b modulo 37, with a single wide head instead of four."""
    return {"task": "subtraction", "steps": "600", "seeds": "5", "variants": "n_heads-1"}


@showcase
def facts() -> dict[str, str]:
    """No FFN on the fact table: two thousand facts to be memorised. Where are they kept?"""
    return {"task": "facts", "variants": "ffn-off"}


@showcase
def norm() -> dict[str, str]:
    """No norm at a high learning rate: six layers at 0.02. Which of them comes through?"""
    return {"task": "reverse", "n_layers": "6", "learning_rate": "0.02", "variants": "norm-none"}
