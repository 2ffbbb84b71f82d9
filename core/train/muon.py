"""Muon for the matrices of the blocks, AdamW for all other parameters (Jordan, 2024)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from core.model.layers import Linear
from core.model.transformer import Transformer

# Jordan (2024): Nesterov's momentum, and the iteration
MOMENTUM = 0.95
STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
# AdamW's own, and the least norm that is divided by
BETAS = (0.9, 0.999)
EPSILON = 1e-8
TINY = 1e-7
# of √(larger side): so that an update is as large as one of AdamW, whose rates then fit (Liu et
# al., 2025, section 2.2)
MATCH = 0.2


def matrix_heights(model: Transformer) -> list[tuple[int, ...]]:
    """Return, per parameter, heights of matrices stacked in it; () outside blocks' linear maps.

    In the order of model.parameters().
    """
    heights = {
        id(module.weight): tuple(module.parts.values())
        for module in model.blocks.modules()
        if isinstance(module, Linear)
    }
    return [heights.get(id(parameter), ()) for parameter in model.parameters()]


class Muon(torch.optim.Optimizer):
    """Muon optimiser (Jordan, 2024).

    Args:
        parameters: Weights, of one run or of several at once: (S, …) for (…).
        heights: Heights of the stacked matrices in each parameter, from matrix_heights().
        lr: Learning rate.
        weight_decay: Decoupled weight decay.
    """

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        heights: Sequence[tuple[int, ...]],
        lr: float,
        weight_decay: float,
    ):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})
        self.heights = dict(zip(parameters, heights))

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient once; `closure` is not called."""
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                state = self.state[parameter]
                if gradient is None:
                    continue
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                heights = self.heights[parameter]
                change = (
                    _muon_update(gradient, state, heights)
                    if heights
                    else _adam_update(gradient, state)
                )
                parameter.sub_(group["lr"] * change)


def _muon_update(
    gradient: torch.Tensor, state: dict[str, Any], heights: tuple[int, ...]
) -> torch.Tensor:
    """Advance the momentum in `state`; return Muon's update, not yet scaled by the rate.

    It is orthogonal per stacked matrix; the gradient stays as it is.
    """
    if not state:
        state["momentum"] = torch.zeros_like(gradient)
    momentum = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
    pieces = gradient.lerp(momentum, MOMENTUM).split(list(heights), -2)  # type: ignore[no-untyped-call]
    return torch.cat(
        [MATCH * max(piece.shape[-2:]) ** 0.5 * orthogonalise(piece) for piece in pieces], -2
    )


def orthogonalise(x: torch.Tensor) -> torch.Tensor:  # (…, m, n) -> the same
    """Approximate U·Vᵀ of x = U·S·Vᵀ with five Newton-Schulz steps (Jordan, 2024)."""
    a, b, c = COEFFICIENTS
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    norm = torch.linalg.matrix_norm(x, keepdim=True)
    if (
        not norm.isfinite().all()
    ):  # float32 cannot hold the sum of squares; the direction does not depend on the scale
        x = x / x.abs().amax((-2, -1), keepdim=True)
        norm = torch.linalg.matrix_norm(x, keepdim=True)
    x = x / norm.clamp_min(TINY)
    for _ in range(STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x


def _adam_update(gradient: torch.Tensor, state: dict[str, Any]) -> torch.Tensor:
    """Advance the averages in `state`; return Adam's update, to be scaled by the learning rate."""
    if not state:
        state |= {
            "step": torch.zeros(()),
            "mean": torch.zeros_like(gradient),
            "square": torch.zeros_like(gradient),
        }
    state["step"] += 1
    mean = state["mean"].lerp_(gradient, 1 - BETAS[0])
    square = state["square"].lerp_(gradient.square(), 1 - BETAS[1])
    first, second = (1 - beta ** state["step"].item() for beta in BETAS)
    change: torch.Tensor = (mean / first) / ((square / second).sqrt() + EPSILON)
    return change
