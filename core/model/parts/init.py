"""Initialisation: how weights are drawn, and from which random stream.

Every parameter has a torch.Generator of its own, seeded from (seed, parameter name). So no global
random state is touched, concurrent users cannot disturb each other, and removing a part leaves all
other weights as they were.
"""

import hashlib
import math
from collections.abc import Callable, Iterable

import torch

from core.settings.menu import Menu

init: Menu[type["Init"]] = Menu("Initial weights")


def generator(seed: int, name: str) -> torch.Generator:
    """A random stream (on the CPU) that depends on nothing but the seed and the name."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


def uniform(shape: tuple[int, ...], bound: float, stream: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=stream).mul_(2 * bound).sub_(bound)


def normal(shape: tuple[int, ...], std: float, stream: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=stream).mul_(std)


class Init:
    """Recipe for initial weights, (fan_out, fan_in); by default N(0, 1) rows, zero biases."""

    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not say how weights are drawn")

    def bias(self, shape: tuple[int], fan_in: int, stream: torch.Generator) -> torch.Tensor:
        return torch.zeros(shape)

    def embedding(self, shape: tuple[int], stream: torch.Generator) -> torch.Tensor:
        return normal(shape, 1.0, stream)


@init.register(
    "default",
    label="PyTorch default",
    help=(
        "uniform within ±1/√fan_in for weights and biases, N(0, 1) for embeddings (nn.Linear,"
        " nn.Embedding)."
    ),
)
class default(Init):
    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        return uniform(shape, 1 / math.sqrt(shape[1]), stream)

    def bias(self, shape: tuple[int], fan_in: int, stream: torch.Generator) -> torch.Tensor:
        return uniform(shape, 1 / math.sqrt(fan_in), stream)


@init.register(
    "xavier",
    label="Xavier",
    help=(
        "uniform within ±√(6/(fan_in + fan_out)), biases zero, N(0, 1) for embeddings (Glorot and"
        " Bengio, 2010)."
    ),
)
class xavier(Init):
    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        return uniform(shape, math.sqrt(6 / sum(shape)), stream)


@init.register(
    "xavier_normal",
    label="Xavier normal",
    help=(
        "standard deviation √(2/(fan_in + fan_out)), biases zero, N(0, 1) for embeddings (Glorot"
        " and Bengio, 2010)."
    ),
)
class xavier_normal(Init):
    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        return normal(shape, math.sqrt(2 / sum(shape)), stream)


@init.register(
    "normal_002",
    label="N(0, 0.02)",
    help="standard deviation 0.02 for weights and embeddings, biases zero (GPT-2).",
)
class normal_002(Init):
    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        return normal(shape, 0.02, stream)

    def embedding(self, shape: tuple[int], stream: torch.Generator) -> torch.Tensor:
        return normal(shape, 0.02, stream)


@init.register(
    "normal_1",
    label="N(0, 1)",
    help="far too large on purpose: attention saturates and activations explode.",
)
class normal_1(Init):
    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        return normal(shape, 1.0, stream)


@init.register(
    "normal_1_biases",
    label="N(0, 1) weights and biases",
    help="biases are random as well; far too large on purpose.",
)
class normal_1_biases(normal_1):
    def bias(self, shape: tuple[int], fan_in: int, stream: torch.Generator) -> torch.Tensor:
        return normal(shape, 1.0, stream)


class Draw:
    """Source of the parameters below one path, e.g. `Draw(init["default"], 0).at("blocks.0.attn")`.

    kept: where what was drawn is kept for models that share weights, so that nothing is drawn
    twice; None: nowhere.
    """

    def __init__(
        self,
        recipe: type[Init],
        seed: int,
        path: str = "",
        drawn_tensors: dict[tuple[str, tuple[int, ...]], torch.Tensor] | None = None,
    ):
        self.recipe = recipe
        self.seed = seed
        self.path = path
        self.kept = drawn_tensors
        self._init = recipe()

    def at(self, path: str) -> "Draw":
        return Draw(self.recipe, self.seed, f"{self.path}{path}.", self.kept)

    def _once(
        self, name: str, size: tuple[int, ...], draw: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        if self.kept is None:
            return draw()
        key = (self.path + name, size)
        if key not in self.kept:
            self.kept[key] = draw()
        return self.kept[key]

    def stream(self, name: str) -> torch.Generator:
        return generator(self.seed, self.path + name)

    def weight(self, name: str, fan_out: int, fan_in: int) -> torch.Tensor:
        shape = (fan_out, fan_in)
        return self._once(name, shape, lambda: self._init.weight(shape, self.stream(name)))

    def bias(self, name: str, width: int, fan_in: int) -> torch.Tensor:
        return self._once(
            name, (width, fan_in), lambda: self._init.bias((width,), fan_in, self.stream(name))
        )

    def rows(self, names: Iterable[str], width: int) -> torch.Tensor:
        """Return one embedding per name, each from its own stream, so it depends on the name alone."""
        return torch.stack([self._init.embedding((width,), self.stream(name)) for name in names])


class Blank:
    """Draw without numbers, on torch's device "meta", for weights that come from a file."""

    def at(self, path: str) -> "Blank":
        return self

    def weight(self, name: str, fan_out: int, fan_in: int) -> torch.Tensor:
        return torch.empty(fan_out, fan_in, device="meta")

    def bias(self, name: str, width: int, fan_in: int) -> torch.Tensor:
        return torch.empty(width, device="meta")

    def rows(self, names: Iterable[str], width: int) -> torch.Tensor:
        return torch.empty(len(list(names)), width, device="meta")
