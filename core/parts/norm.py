"""Normalisation of one token's vector, with a learned gain and, for LayerNorm, a bias."""

import torch
import torch.nn.functional as F
from torch import nn

from core.menu import Menu
from core.trace import tap

norm = Menu("Norm")

EPSILON = 1e-5  # added to the variance or the mean square; the default of torch.nn.LayerNorm


@norm
class LayerNorm(nn.Module):
    """LayerNorm: subtracts a token's mean and divides by its standard deviation, then gain and bias (Ba et al., 2016)."""

    def __init__(self, site: str, width: int, bias: bool = True):
        super().__init__()
        self.site = site
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):  # (B, T, D) -> (B, T, D)
        weight, bias = self._parameters["weight"], self._parameters.get("bias")
        return tap(self.site, F.layer_norm(x, weight.shape, weight, bias, EPSILON))


@norm
class RMSNorm(nn.Module):
    """RMSNorm: divides by the root mean square and leaves the mean alone; a gain, no bias (Zhang and Sennrich, 2019)."""

    def __init__(self, site: str, width: int, bias: bool = True):
        super().__init__()
        self.site = site
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):  # (B, T, D) -> (B, T, D)
        weight = self._parameters["weight"]
        return tap(self.site, F.rms_norm(x, weight.shape, weight, EPSILON))


@norm
class none(nn.Module):
    """None: no normalisation; numbers are free to grow or fade from layer to layer."""

    def __init__(self, site: str, width: int, bias: bool = True):
        super().__init__()

    def forward(self, x):  # (B, T, D) -> (B, T, D)
        return x
