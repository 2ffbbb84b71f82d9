"""Normalisation of one token's vector, with a learned gain and, for LayerNorm, a bias.

`linear(x, at)` is the norm with its scale taken from `at`: linear in x, so that the parts of a sum
can be followed through it one by one. norm(x) is linear(x, x) plus the bias.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.model.trace import tap
from core.settings.menu import Menu

# normalises: whether it changes anything. For those who explain it: formula (of a vector) and
# worked (of one number x, up
# to its result), and divides_by, the moment ("variance", "mean square") of whose sum with EPSILON
# it takes the root.
norm: Menu[Any] = Menu("Norm", normalises=True, formula="", worked="", divides_by="")

EPSILON = 1e-5  # added to the variance or the mean square by default, as in torch.nn.LayerNorm


@norm.register(
    "LayerNorm",
    label="LayerNorm",
    help=(
        "subtracts a token's mean and divides by its standard deviation; learned gain and bias"
        " (Ba et al., 2016)."
    ),
    divides_by="variance",
    formula="(x − {mean}) / {size}: minus the mean, divided by √(variance {scale} + {epsilon}).",
    worked="({x} − {mean}) / {size} = ",
)
class LayerNorm(nn.Module):
    """Layer normalisation."""

    def __init__(
        self,
        site: str,
        width: int,
        bias: bool = True,
        eps: float = EPSILON,
        gain: bool = True,
    ):
        super().__init__()
        self.site = site
        self.shape = (width,)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width)) if gain else None
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        """Apply layer norm with gain and any bias to each token: (…, D) -> (…, D)."""
        weight: Any = self._parameters.get("weight")
        bias = self._parameters.get("bias")
        return tap(self.site, F.layer_norm(x, self.shape, weight, bias, self.eps))

    def linear(self, x: torch.Tensor, point: torch.Tensor) -> torch.Tensor:  # 2 × (…, D) -> (…, D)
        """Apply the norm to x with the scale at `point` and with gain, no bias: (…, D) each."""
        scale = (point.var(-1, correction=0, keepdim=True) + self.eps).rsqrt()
        return _multiply((x - x.mean(-1, keepdim=True)) * scale, self.weight)


@norm.register(
    "RMSNorm",
    label="RMSNorm",
    help=(
        "divides by the root mean square, without subtracting the mean; gain, no bias (Zhang and"
        " Sennrich, 2019)."
    ),
    divides_by="mean square",
    formula="x / {size}: divided by √(mean square {scale} + {epsilon}); the mean, {mean}, is kept.",
    worked="{x} / {size} = ",
)
class RMSNorm(nn.Module):
    """Root-mean-square normalisation."""

    def __init__(
        self,
        site: str,
        width: int,
        bias: bool = True,
        eps: float = EPSILON,
        gain: bool = True,
    ):
        super().__init__()
        self.site = site
        self.shape = (width,)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width)) if gain else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        """Apply RMSNorm with gain to each token's vector: (…, D) -> (…, D)."""
        weight: Any = self._parameters.get("weight")
        return tap(self.site, F.rms_norm(x, self.shape, weight, self.eps))

    def linear(self, x: torch.Tensor, point: torch.Tensor) -> torch.Tensor:  # 2 × (…, D) -> (…, D)
        """Apply the norm to x with the scale at `point` and with gain: 2 × (…, D) -> (…, D)."""
        return _multiply(
            x * (point.square().mean(-1, keepdim=True) + self.eps).rsqrt(), self.weight
        )


@norm.register(
    "DyT",
    label="DyT",
    help=(
        "tanh(α·x) instead of a norm, with learned α (initialised to 0.5), gain and bias (Zhu et"
        " al., 2025, section 4)."
    ),
)
class DyT(nn.Module):
    """Dynamic tanh in place of a norm."""

    def __init__(
        self,
        site: str,
        width: int,
        bias: bool = True,
        eps: float = EPSILON,
        gain: bool = True,
    ):
        super().__init__()
        self.site = site
        self.alpha = nn.Parameter(torch.full((1,), 0.5))
        self.weight = nn.Parameter(torch.ones(width)) if gain else None
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        """Return tanh(alpha · x) · weight, plus any bias: (…, D) -> (…, D)."""
        squeezed = _multiply(torch.tanh(self.alpha * x), self.weight)
        return tap(self.site, squeezed if self.bias is None else squeezed + self.bias)

    def linear(self, x: torch.Tensor, point: torch.Tensor) -> torch.Tensor:  # 2 × (…, D) -> (…, D)
        """Scale x by tanh(αp)/p at p = `point` (α at 0), and by the gain: (…, D) each."""
        slope = torch.where(
            point == 0, self.alpha, torch.tanh(self.alpha * point) / point.where(point != 0, 1.0)
        )
        return _multiply(x * slope, self.weight)


@norm.register(
    "none",
    label="None",
    help="no normalisation; activations may grow or vanish from layer to layer.",
    normalises=False,
)
class NoNorm(nn.Module):
    """Absent norm."""

    def __init__(
        self,
        site: str,
        width: int,
        bias: bool = True,
        eps: float = EPSILON,
        gain: bool = True,
    ):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        """Return x."""
        return x

    def linear(self, x: torch.Tensor, point: torch.Tensor) -> torch.Tensor:  # 2 × (…, D) -> (…, D)
        """Return x."""
        return x


def _multiply(x: torch.Tensor, gain: torch.Tensor | None) -> torch.Tensor:
    """Return x · gain, or x if the norm has no gain."""
    return x if gain is None else x * gain
