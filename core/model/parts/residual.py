"""Residual scale: what multiplies a sub-layer's output before it joins the stream."""

import torch
from torch import nn

from core.settings.menu import Menu

residual_scale: Menu[type["Scale"]] = Menu("Residual scaling")


class Scale(nn.Module):
    """Scale of 1; others override forward."""

    def __init__(self, width: int):
        super().__init__()

    def forward(self, y: torch.Tensor) -> torch.Tensor:  # (…, D) -> (…, D)
        """Return a sub-layer's output, scaled: (…, D) -> (…, D). Here: unchanged."""
        return y


@residual_scale.register("none", label="None", help="added unscaled.")
class NoScale(Scale):
    """Scale of 1."""


@residual_scale.register(
    "rezero",
    label="ReZero",
    help=(
        "multiplied by a learned scalar, initialised to 0, so an untrained block is the identity"
        " (Bachlechner et al., 2021)."
    ),
)
class ReZero(Scale):
    """Learned scalar."""

    def __init__(self, width: int):
        super().__init__(width)
        self.gain = nn.Parameter(torch.zeros(1))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        """Multiply by the scalar: (…, D) -> (…, D)."""
        return y * self.gain


@residual_scale.register(
    "layerscale",
    label="LayerScale",
    help=(
        "multiplied by a learned vector, initialised to 0.1 (Touvron et al., 2021, for up to 18"
        " layers)."
    ),
)
class LayerScale(Scale):
    """Learned vector."""

    def __init__(self, width: int):
        super().__init__(width)
        self.gain = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        """Multiply by the vector: (…, D) -> (…, D)."""
        return y * self.gain
