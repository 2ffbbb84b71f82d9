"""Building blocks of layers: a module that costs little to call, a linear map, dropout.

A linear map draws each part of its weights from a random stream of its own. Dropout acts only where
a call asks for it, without a train/eval switch: a model may be shared between users.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.model.config import Config
from core.model.parts.init import Draw

_stream: ContextVar[torch.Generator | None] = ContextVar("dropout stream", default=None)


@contextmanager
def enable_dropout(stream: torch.Generator | None) -> Iterator[None]:
    """Activate dropout in the context, with masks drawn from the stream; None: no dropout."""
    token = _stream.set(stream)
    try:
        yield
    finally:
        _stream.reset(token)


def dropout(x: torch.Tensor, share: float) -> torch.Tensor:
    """Zero a random share of x and divide the rest by 1 − share, only inside enable_dropout().

    Srivastava et al., 2014. Called in attention.py, block.py and transformer.py.
    """
    stream = _stream.get()
    if stream is None or share == 0:
        return x
    keep = torch.rand(x.shape, generator=stream, device=stream.device).to(x.device) >= share
    return x * keep / (1 - share)


class Part(nn.Module):
    """Base module with a cheap call: nn.Module's costs a fifth of a pass at the smallest sizes.

    Hooks are looked for once, then it goes straight to forward. Its parts stand in its own __dict__
    too, so that `self.attn` is found at once, and not only after Python has failed to find it
    anywhere else.
    """

    _parameters: dict[str, Any]  # of a Linear: weight and bias

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call forward, through nn.Module only if there are hooks."""
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
        ):
            return super().__call__(*args, **named)
        return self.forward(*args, **named)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module):
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__.pop(name, None)


class Linear(Part):
    """Linear map x·Wᵀ + b; several maps of one input may be stacked.

    Each of them is drawn from its own random stream, so that a fused query-key-value matrix holds
    the same values as three separate ones.

    Args:
        fan_in: Size of the input.
        parts: Name and output size of each stacked map.
        bias: Whether there is a bias.
        draw: Source of the initial weights.
    """

    def __init__(self, fan_in: int, parts: dict[str, int], bias: bool, draw: Draw):
        super().__init__()
        self.fan_in = fan_in
        self.parts = parts
        self.biased = bias
        weight, added = self.draw_parameters(draw)
        self.weight = nn.Parameter(weight)
        self.bias = None if added is None else nn.Parameter(added)

    def draw_parameters(self, draw: Draw) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return newly drawn weight and bias (None without one); the map keeps its own."""
        weight = _concatenate_rows(
            [draw.weight(f"W_{name}", n, self.fan_in) for name, n in self.parts.items()]
        )
        if not self.biased:
            return weight, None
        return weight, _concatenate_rows(
            [draw.bias(f"b_{name}", n, self.fan_in) for name, n in self.parts.items()]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (…, fan_in) -> (…, sum of parts)
        """Return x·Wᵀ + b: (…, fan_in) -> (…, sum of the output sizes)."""
        return F.linear(x, self._parameters["weight"], self._parameters.get("bias"))


def _concatenate_rows(parts: list[torch.Tensor]) -> torch.Tensor:
    """Concatenate tensors along their first dimension; meta tensors give a meta tensor.

    Meta tensors are not joined by torch, which would load its compiler (66 MB, 1.5 s).
    """
    first = parts[0]
    if first.is_meta:
        return torch.empty(sum(map(len, parts)), *first.shape[1:], device="meta")
    return torch.cat(parts)


def source_of_weights(config: Config, path: str = "") -> Draw:
    """Return the source of initial weights whose names start with a path; "" for all."""
    draw = Draw(config.part("init"), config.seed)
    return draw.below(path) if path else draw
