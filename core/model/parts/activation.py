"""The nonlinearity inside the feed-forward network."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from core.settings.menu import Menu

# inputs: 2 for an activation that reads twice d_ff numbers, values and then gates, and returns d_ff.
activation: Menu[Callable[[torch.Tensor], torch.Tensor]] = Menu("Activation", inputs=1)


def inputs(part: object) -> int:
    """Return how many times d_ff numbers an activation reads per token."""
    return int(getattr(part, "inputs", 1))


@activation
def relu(x: torch.Tensor) -> torch.Tensor:
    """ReLU: max(0, x). Cheap, and exactly zero for about half of its inputs."""
    return F.relu(x)


@activation
def relu2(x: torch.Tensor) -> torch.Tensor:
    """ReLU²: max(0, x)². As sparse as ReLU, and large inputs count for more (So et al., 2021, Primer, section 3)."""
    return F.relu(x).square()


@activation
def leaky_relu2(x: torch.Tensor) -> torch.Tensor:
    """Leaky ReLU²: the square of x, or of x/2 where x is negative. Nothing is exactly zero, so every unit goes on learning (parameter-golf and modded-nanogpt, 2026)."""
    return F.leaky_relu(x, 0.5).square()


@activation
def gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU: x·Φ(x), with Φ the normal distribution function (Hendrycks and Gimpel, 2016)."""
    return F.gelu(x)


@activation
def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """GELU tanh: the approximation of GELU by tanh that GPT-2 uses; within 0.0005 of the exact one."""
    return F.gelu(x, approximate="tanh")


@activation
def silu(x: torch.Tensor) -> torch.Tensor:
    """SiLU: x·sigmoid(x), also called Swish. Smooth, and slightly negative left of zero."""
    return F.silu(x)


@activation(inputs=2)
def swiglu(x: torch.Tensor) -> torch.Tensor:
    """SwiGLU: a value times SiLU of a gate (Shazeer, 2020). Needs a third matrix, so d_ff costs half as much again."""
    value, gate = x.chunk(2, dim=-1)
    return value * F.silu(gate)


@activation(inputs=2)
def geglu(x: torch.Tensor) -> torch.Tensor:
    """GeGLU: a value times GELU of a gate (Shazeer, 2020). Needs a third matrix, as SwiGLU does."""
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate)


@activation(inputs=2)
def geglu_tanh(x: torch.Tensor) -> torch.Tensor:
    """GeGLU tanh: GeGLU with the approximation of GELU by tanh, as in Gemma. Needs a third matrix, as SwiGLU does."""
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate, approximate="tanh")


@activation
def tanh(x: torch.Tensor) -> torch.Tensor:
    """tanh: squeezes everything into −1 to 1, so large inputs all look alike."""
    return x.tanh()


@activation
def identity(x: torch.Tensor) -> torch.Tensor:
    """Identity: no nonlinearity at all. Two matrices in a row are then only one matrix."""
    return x
