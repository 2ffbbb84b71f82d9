"""Dropout that acts only where a call asks for it, with random numbers of its own.

No train/eval switch on the model: a model may be shared between users, one of whom wants to see dropout act.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_stream: ContextVar[torch.Generator | None] = ContextVar("dropout stream", default=None)


@contextmanager
def dropping(stream: torch.Generator | None) -> Iterator[None]:
    """Inside this, every dropout of the model acts, drawing its masks from the stream in order of calls."""
    token = _stream.set(stream)
    try:
        yield
    finally:
        _stream.reset(token)


def drop(x: torch.Tensor, share: float) -> torch.Tensor:
    """x with a random share of its numbers zero and the rest divided by 1 − share (Srivastava et al., 2014)."""
    stream = _stream.get()
    if stream is None or share == 0:
        return x
    keep = torch.rand(x.shape, generator=stream, device=stream.device).to(x.device) >= share
    return x * keep / (1 - share)
