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
    """Return a random stream (on the CPU) that depends only on the seed and the name."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


def uniform(shape: tuple[int, ...], bound: float, stream: torch.Generator) -> torch.Tensor:
    """Draw from the uniform distribution within ± bound."""
    return torch.rand(shape, generator=stream).mul_(2 * bound).sub_(bound)


def normal(shape: tuple[int, ...], std: float, stream: torch.Generator) -> torch.Tensor:
    """Draw from N(0, std²)."""
    return torch.randn(shape, generator=stream).mul_(std)


class Init:
    """Recipe for initial weights: by default zero biases and N(0, 1) embeddings."""

    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        """Draw a matrix (fan_out, fan_in): defined by each recipe, NotImplementedError here."""
        raise NotImplementedError(f"{type(self).__name__} does not say how weights are drawn")

    def bias(self, shape: tuple[int], fan_in: int, stream: torch.Generator) -> torch.Tensor:
        """Return a bias of shape (fan_out,): zeros, unless a recipe draws it."""
        return torch.zeros(shape)

    def embedding(self, shape: tuple[int], stream: torch.Generator) -> torch.Tensor:
        """Draw the vector of one token, of shape (d_model,), by default from N(0, 1)."""
        return normal(shape, 1.0, stream)


@init.register(
    "default",
    label="PyTorch default",
    help=(
        "uniform within ±1/√fan_in for weights and biases, N(0, 1) for embeddings (nn.Linear,"
        " nn.Embedding)."
    ),
)
class PyTorchDefault(Init):
    """Uniform weights and biases, as nn.Linear has them."""

    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        """Draw uniformly within ±1/√fan_in."""
        return uniform(shape, 1 / math.sqrt(shape[1]), stream)

    def bias(self, shape: tuple[int], fan_in: int, stream: torch.Generator) -> torch.Tensor:
        """Draw uniformly within ±1/√fan_in."""
        return uniform(shape, 1 / math.sqrt(fan_in), stream)


@init.register(
    "xavier",
    label="Xavier",
    help=(
        "uniform within ±√(6/(fan_in + fan_out)), biases zero, N(0, 1) for embeddings (Glorot and"
        " Bengio, 2010)."
    ),
)
class XavierUniform(Init):
    """Uniform weights of Glorot and Bengio."""

    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        """Draw uniformly within ±√(6/(fan_in + fan_out))."""
        return uniform(shape, math.sqrt(6 / sum(shape)), stream)


@init.register(
    "xavier_normal",
    label="Xavier normal",
    help=(
        "standard deviation √(2/(fan_in + fan_out)), biases zero, N(0, 1) for embeddings (Glorot"
        " and Bengio, 2010)."
    ),
)
class XavierNormal(Init):
    """Normal weights of Glorot and Bengio."""

    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        """Draw from a normal distribution with variance 2/(fan_in + fan_out)."""
        return normal(shape, math.sqrt(2 / sum(shape)), stream)


@init.register(
    "normal_002",
    label="N(0, 0.02)",
    help="standard deviation 0.02 for weights and embeddings, biases zero (GPT-2).",
)
class SmallNormal(Init):
    """Normal weights and embeddings, as GPT-2 has them."""

    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        """Draw from N(0, 0.02²)."""
        return normal(shape, 0.02, stream)

    def embedding(self, shape: tuple[int], stream: torch.Generator) -> torch.Tensor:
        """Draw the vector of one token, of shape (d_model,), from N(0, 0.02²)."""
        return normal(shape, 0.02, stream)


@init.register(
    "normal_1",
    label="N(0, 1)",
    help="far too large on purpose: attention saturates and activations explode.",
)
class UnitNormal(Init):
    """Normal weights that are far too large."""

    def weight(self, shape: tuple[int, int], stream: torch.Generator) -> torch.Tensor:
        """Draw from N(0, 1)."""
        return normal(shape, 1.0, stream)


@init.register(
    "normal_1_biases",
    label="N(0, 1) weights and biases",
    help="biases are random as well; far too large on purpose.",
)
class UnitNormalWithBiases(UnitNormal):
    """Normal weights and biases that are far too large."""

    def bias(self, shape: tuple[int], fan_in: int, stream: torch.Generator) -> torch.Tensor:
        """Draw from N(0, 1)."""
        return normal(shape, 1.0, stream)


class Draw:
    """Source of the initial weights below one path.

    Example: `Draw(init["default"], 0).below("blocks.0.attn")`.

    Args:
        recipe: Distribution of the weights.
        seed: Seed of all random streams.
        path: Prefix of the parameters' names, with a dot at its end.
        drawn_tensors: Tensors that are drawn already, by name and size: models that share weights
            pass one dictionary, so that each is drawn once. None draws every time.
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
        self.drawn_tensors = drawn_tensors
        self._init = recipe()

    def below(self, path: str) -> "Draw":
        """Return the source for names below a path: "attn" adds "attn." to the prefix."""
        return Draw(self.recipe, self.seed, f"{self.path}{path}.", self.drawn_tensors)

    def _draw_once(
        self, name: str, size: tuple[int, ...], draw: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        """Draw a tensor; if models share drawn_tensors, return the very one drawn before."""
        if self.drawn_tensors is None:
            return draw()
        key = (self.path + name, size)
        if key not in self.drawn_tensors:
            self.drawn_tensors[key] = draw()
        return self.drawn_tensors[key]

    def stream(self, name: str) -> torch.Generator:
        """Return a new random stream for the parameter of that name below this source's path."""
        return generator(self.seed, self.path + name)

    def weight(self, name: str, fan_out: int, fan_in: int) -> torch.Tensor:
        """Draw a matrix (fan_out, fan_in) by the recipe; if shared, return the one drawn before."""
        shape = (fan_out, fan_in)
        return self._draw_once(name, shape, lambda: self._init.weight(shape, self.stream(name)))

    def bias(self, name: str, width: int, fan_in: int) -> torch.Tensor:
        """Return a bias of shape (width,) by the recipe: drawn, or zeros."""
        return self._draw_once(
            name, (width, fan_in), lambda: self._init.bias((width,), fan_in, self.stream(name))
        )

    def rows(self, names: Iterable[str], width: int) -> torch.Tensor:
        """Draw one embedding per name, (names, width), from a random stream of its own."""
        return torch.stack([self._init.embedding((width,), self.stream(name)) for name in names])


class Blank:
    """Source of parameters without values, for weights that come from a file.

    They are on torch's device "meta" and take no memory.
    """

    def below(self, path: str) -> "Blank":
        """Return this source itself: parameters without values need no names."""
        return self

    def weight(self, name: str, fan_out: int, fan_in: int) -> torch.Tensor:
        """Return a matrix (fan_out, fan_in) without values, on the meta device."""
        return torch.empty(fan_out, fan_in, device="meta")

    def bias(self, name: str, width: int, fan_in: int) -> torch.Tensor:
        """Return a bias (width,) without values, on the meta device."""
        return torch.empty(width, device="meta")

    def rows(self, names: Iterable[str], width: int) -> torch.Tensor:
        """Return a matrix (names, width) without values, on the meta device."""
        return torch.empty(len(list(names)), width, device="meta")
