"""The smallest possible new part of each kind, which the laws register, use and remove."""

import re

import torch
from torch import nn

from core.model.parts.init import Init, uniform
from core.model.parts.placement import ON_OUTPUT, Placement
from core.model.parts.position import Position
from core.model.parts.residual import Scale
from core.model.parts.softmax import Softmax
from core.model.trace import tap
from core.tasks import IGNORE


def key_of(part) -> str:
    """Return a toy's key in its menu, such as toy_norm for ToyNorm and toy_mask for toy_mask."""
    return re.sub("(?<!^)(?=[A-Z])", "_", part.__name__).lower()


def enter(menu, part, **facts):
    """Register a toy under its key, with the label and the help of its docstring."""
    label, _, help = part.__doc__.partition(": ")
    facts = FACTS.get(part, {}) | facts
    menu.register(key_of(part), label=label, help=help, **facts)(part)


class ToyNorm(nn.Module):
    """Toy norm: divides by the largest magnitude."""

    def __init__(
        self, site: str, width: int, bias: bool = True, eps: float = 1e-5, gain: bool = True
    ):
        super().__init__()
        self.site = site
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width)) if gain else None

    def forward(self, x):  # (B, T, D) -> (B, T, D)
        return tap(self.site, self.linear(x, x))

    def linear(self, x, index):  # 2 × (…, D) -> (…, D)
        scaled = x / (index.abs().amax(-1, keepdim=True) + self.eps)
        return scaled if self.weight is None else scaled * self.weight


class ToyPlacement(Placement):
    """Toy placement: normalises what the sub-layer wrote, before it is added."""

    @staticmethod
    def write(x, y, add, norms):
        return add(x, norms[0](y))


def toy_activation(x):
    """Toy activation: bounded, and steepest at zero."""
    return x / (1 + x.abs())


class ToyPosition(Position):
    """Toy position: adds a ramp to the first number of every token."""

    def embed(self, x, start=0):
        ramp = torch.zeros(x.shape[-2], x.shape[-1], device=x.device, dtype=x.dtype)
        ramp[:, 0] = 0.1 * torch.arange(start, start + x.shape[-2], device=x.device)
        return x + ramp


def toy_mask(length, device=None):
    """Toy mask: a token sees itself and the one before."""
    index = torch.arange(length, device=device)
    return (index[:, None] - index <= 1) & (index[:, None] >= index)


class ToyInit(Init):
    """Toy weights: uniform within a half."""

    def weight(self, shape, stream):
        return uniform(shape, 0.5, stream)


class ToySoftmax(Softmax):
    """Toy softmax: squares in place of exponentials."""

    def forward(self, scores, allowed=None):
        squares = scores.square() + 1e-6
        squares = squares if allowed is None else squares * allowed
        return squares / squares.sum(-1, keepdim=True).clamp_min(1e-12)


class ToyScale(Scale):
    """Toy scale: half of it."""

    def forward(self, y):
        return y / 2


TOYS = {
    "norm": ToyNorm,
    "placement": ToyPlacement,
    "activation": toy_activation,
    "position": ToyPosition,
    "mask": toy_mask,
    "init": ToyInit,
    "softmax": ToySoftmax,
    "residual_scale": ToyScale,
}

FACTS = {ToyPlacement: {"norms": (ON_OUTPUT,)}}


def toy_task(generator, batch, length, vocabulary):
    """Draw sequences.

    Example (seed 0): a b c → · a b
    """
    tokens = torch.randint(len(vocabulary), (batch, length), generator=generator)
    targets = tokens.roll(1, 1)
    targets[:, 0] = IGNORE
    return tokens, targets
