"""Where the norm stands: before a sub-layer, on what it writes, or after the sum."""

from collections.abc import Callable
from functools import partial

import torch

from core.settings.menu import Menu

Map = Callable[[torch.Tensor], torch.Tensor]
Add = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # (the stream, what joins it)
Placement = Callable[[torch.Tensor, Map, Map, Add], torch.Tensor]  # (the stream, sub-layer, norm, add)


def norm_place(place: Placement) -> str:
    """Where a placement's norm acts, found by trying it: "before" the sub-layer, "on the output of" it, or "after" it and the sum.

    Raises ValueError, in words, for one that does not call the norm once: it would have one gain for two places, and
    one site for two tensors.
    """
    called: list[str] = []

    def step(name: str, *given: torch.Tensor) -> torch.Tensor:
        called.append(name)
        return given[-1]

    place(torch.zeros(1), *(partial(step, name) for name in ("sublayer", "norm", "add")))
    if called.count("norm") != 1:
        raise ValueError(f"{place.__name__} calls its norm {called.count('norm')} times; a placement calls it once")
    return ("before", "on the output of", "after")[called.index("norm")]


placement: Menu[Placement] = Menu("Norm placement", check=norm_place)


@placement
def pre(x: torch.Tensor, sublayer: Map, norm: Map, add: Add) -> torch.Tensor:
    """Pre-norm: before the sub-layer. Normalises what the sub-layer reads; the stream itself is never squeezed (GPT-2 and later)."""
    return add(x, sublayer(norm(x)))


@placement
def post(x: torch.Tensor, sublayer: Map, norm: Map, add: Add) -> torch.Tensor:
    """Post-norm: after the sum. Normalises the stream itself after every sub-layer (Vaswani et al., 2017)."""
    return norm(add(x, sublayer(x)))
