"""Norm placement: where the norms of a sub-layer stand.

Each placement is two functions, one on either side of the sub-layer; it overrides what it needs:

    y = sublayer(read(x, norms))
    x = write(x, y, add, norms)
"""

from collections.abc import Callable, Sequence

import torch

from core.settings.menu import Menu

Norm = Callable[[torch.Tensor], torch.Tensor]
Add = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # (residual stream, output) -> stream

BEFORE = "before"
ON_OUTPUT = "on the output of"
AFTER = "after"

# norms: where each norm of a sub-layer acts: before it, on its output, or after the residual sum.
placement: Menu[type["Placement"]] = Menu("Norm placement", norms=())


class Placement:
    """Two sides of a sub-layer, here without a norm: x + sublayer(x)."""

    norms: tuple[str, ...]

    @staticmethod
    def read(x: torch.Tensor, norms: Sequence[Norm]) -> torch.Tensor:
        """Return the sub-layer's input, (…, D), from the residual stream x: here x itself."""
        return x

    @staticmethod
    def write(x: torch.Tensor, y: torch.Tensor, add: Add, norms: Sequence[Norm]) -> torch.Tensor:
        """Return the residual stream (…, D) after the sub-layer's output y: here add(x, y)."""
        return add(x, y)


@placement.register(
    "pre",
    label="Pre-norm",
    help="norm on the sub-layer's input; the residual stream is not normalised (GPT-2 and later).",
    norms=(BEFORE,),
)
class PreNorm(Placement):
    """x + sublayer(norm(x))."""

    @staticmethod
    def read(x: torch.Tensor, norms: Sequence[Norm]) -> torch.Tensor:
        """Return norm(x)."""
        return norms[0](x)


@placement.register(
    "post",
    label="Post-norm",
    help="norm after the residual sum, on the residual stream itself (Vaswani et al., 2017).",
    norms=(AFTER,),
)
class PostNorm(Placement):
    """norm(x + sublayer(x))."""

    @staticmethod
    def write(x: torch.Tensor, y: torch.Tensor, add: Add, norms: Sequence[Norm]) -> torch.Tensor:
        """Return norm(add(x, y)), which is norm(x + y) with a residual."""
        return norms[0](add(x, y))


@placement.register(
    "output",
    label="Output norm",
    help="norm on the sub-layer's output, before it is added (OLMo 2, 2024, section 3.2).",
    norms=(ON_OUTPUT,),
)
class OutputNorm(Placement):
    """x + norm(sublayer(x))."""

    @staticmethod
    def write(x: torch.Tensor, y: torch.Tensor, add: Add, norms: Sequence[Norm]) -> torch.Tensor:
        """Return add(x, norm(y)), which is x + norm(y) with a residual."""
        return add(x, norms[0](y))


@placement.register(
    "sandwich",
    label="Sandwich norm",
    help=(
        "norm on both the input and the output of the sub-layer (Ding et al., 2021; Gemma 2 and 3)."
    ),
    norms=(BEFORE, ON_OUTPUT),
)
class SandwichNorm(Placement):
    """x + norm₂(sublayer(norm₁(x)))."""

    @staticmethod
    def read(x: torch.Tensor, norms: Sequence[Norm]) -> torch.Tensor:
        """Return x after norms[0]."""
        return norms[0](x)

    @staticmethod
    def write(x: torch.Tensor, y: torch.Tensor, add: Add, norms: Sequence[Norm]) -> torch.Tensor:
        """Return add(x, norms[1](y)), which is x + norm₂(y) with a residual."""
        return add(x, norms[1](y))
