"""Where the norm stands: before a sub-layer or after the sum."""

from collections.abc import Callable
from typing import Protocol

import torch

from core.settings.menu import Menu


class Placement(Protocol):
    where: str  # the norm stands, of the sub-layer, in a word
    final_norm: bool

    def __call__(
        self,
        x: torch.Tensor,
        sublayer: Callable[[torch.Tensor], torch.Tensor],
        norm: Callable[[torch.Tensor], torch.Tensor],
        add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        /,
    ) -> torch.Tensor: ...


placement: Menu[Placement] = Menu("Norm placement", where="around")


@placement(where="before")
def pre(
    x: torch.Tensor,
    sublayer: Callable[[torch.Tensor], torch.Tensor],
    norm: Callable[[torch.Tensor], torch.Tensor],
    add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Pre-norm: before the sub-layer. Normalises what the sub-layer reads; the stream itself is never squeezed (GPT-2 and later)."""
    return add(x, sublayer(norm(x)))


@placement(where="after")
def post(
    x: torch.Tensor,
    sublayer: Callable[[torch.Tensor], torch.Tensor],
    norm: Callable[[torch.Tensor], torch.Tensor],
    add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Post-norm: after the sum. Normalises the stream itself after every sub-layer (Vaswani et al., 2017)."""
    return norm(add(x, sublayer(x)))


# A pre-norm stack leaves its stream unnormalised, so its models read it through one more norm (GPT-2's ln_f).
pre.final_norm = True  # type: ignore[attr-defined]  # functions may have attributes
post.final_norm = False  # type: ignore[attr-defined]  # functions may have attributes
