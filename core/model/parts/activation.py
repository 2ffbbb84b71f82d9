"""The nonlinearity inside the feed-forward network."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from core.settings.menu import Menu

# inputs: 2 for an activation that reads twice d_ff numbers, values and then gates, and returns
# d_ff.
activation: Menu[Callable[[torch.Tensor], torch.Tensor]] = Menu("Activation", inputs=1)


def count_inputs(part: object) -> int:
    """Return 2 for an activation that reads values and gates, else 1."""
    return int(getattr(part, "inputs", 1))


@activation.register(
    "relu",
    label="ReLU",
    help="max(0, x). Zero for every negative input: with random weights, about half of them.",
)
def relu(x: torch.Tensor) -> torch.Tensor:
    """Return max(0, x)."""
    return F.relu(x)


@activation.register(
    "relu2",
    label="ReLU²",
    help=(
        "max(0, x)². As sparse as ReLU, with more weight on large inputs (So et al., 2021, Primer,"
        " section 3)."
    ),
)
def relu2(x: torch.Tensor) -> torch.Tensor:
    """Return max(0, x)²."""
    return F.relu(x).square()


@activation.register(
    "leaky_relu2",
    label="Leaky ReLU²",
    help=(
        "x², or (x/2)² for negative x. Never exactly flat, so every unit "
        "receives a gradient (parameter-golf and modded-nanogpt, 2026)."
    ),
)
def leaky_relu2(x: torch.Tensor) -> torch.Tensor:
    """Return x² for x ≥ 0 and (x/2)² below."""
    return F.leaky_relu(x, 0.5).square()


@activation.register(
    "gelu",
    label="GELU",
    help="x·Φ(x), with Φ the standard normal CDF (Hendrycks and Gimpel, 2016).",
)
def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return x·Φ(x)."""
    return F.gelu(x)


@activation.register(
    "gelu_tanh",
    label="GELU tanh",
    help="the tanh approximation of GELU, as in GPT-2; within 0.0005 of the exact one.",
)
def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return GELU in its tanh approximation."""
    return F.gelu(x, approximate="tanh")


@activation.register(
    "silu",
    label="SiLU",
    help="x·sigmoid(x), also called Swish. Smooth, slightly negative for x < 0.",
)
def silu(x: torch.Tensor) -> torch.Tensor:
    """Return x·sigmoid(x)."""
    return F.silu(x)


@activation.register(
    "swiglu",
    label="SwiGLU",
    help=(
        "a value times SiLU of a gate (Shazeer, 2020). The third matrix adds 50 % to the FFN's"
        " parameters."
    ),
    inputs=2,
)
def swiglu(x: torch.Tensor) -> torch.Tensor:
    """Return value · SiLU(gate) of x's halves, value first: (…, 2·d_ff) -> (…, d_ff)."""
    value, gate = x.chunk(2, dim=-1)
    return value * F.silu(gate)


@activation.register(
    "geglu",
    label="GeGLU",
    help="a value times GELU of a gate (Shazeer, 2020), with a third matrix like SwiGLU.",
    inputs=2,
)
def geglu(x: torch.Tensor) -> torch.Tensor:
    """Return value · GELU(gate), exact, of x's halves, value first: (…, 2·d_ff) -> (…, d_ff)."""
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate)


@activation.register(
    "geglu_tanh",
    label="GeGLU tanh",
    help="GeGLU with the tanh approximation of GELU, as in Gemma.",
    inputs=2,
)
def geglu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return value · GELU(gate) by tanh, of x's halves, value first: (…, 2·d_ff) -> (…, d_ff)."""
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate, approximate="tanh")


@activation.register("tanh", label="tanh", help="saturates at ±1.")
def tanh(x: torch.Tensor) -> torch.Tensor:
    """Return the hyperbolic tangent of x."""
    return x.tanh()


@activation.register(
    "identity",
    label="Identity",
    help="no nonlinearity: the two matrices collapse into one linear map.",
)
def identity(x: torch.Tensor) -> torch.Tensor:
    """Return x."""
    return x
