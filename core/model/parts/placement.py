"""Norm placement: before a sub-layer, on its output, both, or after the sum."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import NoReturn

import torch

from core.settings.menu import Menu

Map = Callable[[torch.Tensor], torch.Tensor]
Add = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # (the stream, what joins it)
# (the stream, sub-layer, norm, add) and, where there are two, a second norm
Placement = Callable[..., torch.Tensor]


@cache  # asked several times in every pass
def norm_places(place: Placement) -> tuple[str, ...]:
    """Return where each norm of a placement acts, found by trying it.

    "before" the sub-layer, "on the output of" it, or "after" the sum.

    Raises ValueError, in words, for one that does not call each of its norms once: it would have
    one gain for two places, and one site for two tensors.
    """
    called: list[str] = []

    def step(name: str, *arguments: torch.Tensor) -> torch.Tensor:
        called.append(name)
        return arguments[-1]

    norms = ["norm", "second norm"][: len(inspect.signature(place).parameters) - 3]
    place(
        torch.zeros(1),
        *(
            partial(step, name)
            for name in ("sublayer", "norm", "add", "second norm")[: 2 + len(norms)]
        ),
    )
    for norm in norms:
        if called.count(norm) != 1:
            raise ValueError(
                f"{place.__name__} calls its {norm} {called.count(norm)} times; a placement calls"
                " it once"
            )
    joins = [called.index("sublayer"), called.index("add")]
    return tuple(
        [
            ("before", "on the output of", "after")[
                sum(called.index(norm) > join for join in joins)
            ]
            for norm in norms
        ]
    )


placement: Menu[Placement] = Menu("Norm placement", check=norm_places)


@placement.register(
    "pre",
    label="Pre-norm",
    help="norm on the sub-layer's input; the residual stream is not normalised (GPT-2 and later).",
)
def pre(x: torch.Tensor, sublayer: Map, norm: Map, add: Add) -> torch.Tensor:
    return add(x, sublayer(norm(x)))


@placement.register(
    "post",
    label="Post-norm",
    help="norm after the residual sum, on the residual stream itself (Vaswani et al., 2017).",
)
def post(x: torch.Tensor, sublayer: Map, norm: Map, add: Add) -> torch.Tensor:
    return norm(add(x, sublayer(x)))


@placement.register(
    "output",
    label="Output norm",
    help="norm on the sub-layer's output, before it is added (OLMo 2, 2024, section 3.2).",
)
def output(x: torch.Tensor, sublayer: Map, norm: Map, add: Add) -> torch.Tensor:
    return add(x, norm(sublayer(x)))


@placement.register(
    "sandwich",
    label="Sandwich norm",
    help=(
        "norm on both the input and the output of the sub-layer (Ding et al., 2021; Gemma 2 and 3)."
    ),
)
def sandwich(x: torch.Tensor, sublayer: Map, norm: Map, add: Add, second: Map) -> torch.Tensor:
    return add(x, second(sublayer(norm(x))))


class _Read(Exception):
    """Carries what a sub-layer was about to read."""


def halves(
    place: Placement, norm: Map, add: Add, *second: Map
) -> tuple[Map, Callable[..., torch.Tensor]]:
    """A placement cut in two at its sub-layer.

    -> (x -> what the sub-layer reads; (x, what the sub-layer wrote) -> what leaves)
    """

    def stop(read: torch.Tensor) -> NoReturn:
        raise _Read(read)

    def before(x: torch.Tensor) -> torch.Tensor:
        try:
            return place(x, stop, norm, add, *second)
        except _Read as caught:
            read: torch.Tensor = caught.args[0]
            return read

    def after(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        written = False

        def sublayer(read: torch.Tensor) -> torch.Tensor:
            nonlocal written
            written = True
            return y

        def later(step: Map) -> Map:
            return lambda z: step(z) if written else z

        return place(x, sublayer, later(norm), add, *map(later, second))

    return before, after
