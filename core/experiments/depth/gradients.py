"""Gradient norms at the input of every layer and for every weight."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from core.experiments.depth.depth import Depth
from core.experiments.forward import prepare_model
from core.model.config import Config
from core.model.cost import run_bytes
from core.model.layers import Linear
from core.model.parts.position import Position
from core.model.text import vocabulary
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.cache import cached
from core.settings.device import Machine
from core.settings.memory import max_mb, room_for
from core.settings.progress import step_counter
from core.settings.wording import count


@dataclass(frozen=True)
class Gradients:
    """Gradients of the mean next-token cross-entropy (nats) of a text.

    The last token's target is the first. Norms are Euclidean over a whole tensor.
    """

    config: Config
    loss: float
    stream: (
        np.ndarray
    )  # (passes + 1,): ∂loss/∂stream before pass 1, 2, …, and of what leaves the last pass
    weights: (
        pd.DataFrame
    )  # layer (from 1), weight ("W_Q", …, "ln1 gain"), value; of a repeated block: one layer
    diverged: bool  # whether the loss or a gradient is infinite or no number


def gradients(
    config: Config,
    tokens: Iterable[str],
    machine: Machine | None = None,
    depth: Depth | None = None,
) -> Gradients:
    """Return the next-token loss (nats) and gradient norms: stream by pass, each weight; cached.

    Raises:
        MemoryLimitError: It would need more than ABLATION_MAX_MB; nothing is allocated yet.
    """
    return _run(config.replace(n_layers=1), tuple(tokens), machine or Machine(), depth or Depth())


@cached(
    megabytes=max_mb() / 128, size=lambda result: result.stream.nbytes + 100 * len(result.weights)
)
def _run(config: Config, tokens: tuple[str, ...], machine: Machine, depth: Depth) -> Gradients:
    """Run one forward and backward pass, cached; return loss and gradient norms."""
    built, order = depth.plan(config)
    length = len(tokens) + config.padding
    # What is kept for the way back is what a trace of that many layers keeps; gradients take the
    # place of the copies.
    needed = run_bytes(
        config.replace(n_layers=depth.passes), length, len(vocabulary(list(tokens))), machine.dtype
    )
    with room_for(needed, "This model and text"), torch.inference_mode(False), torch.enable_grad():
        model, ids, real = prepare_model(built, tokens, machine)
        model.requires_grad_(True)
        step = step_counter(
            2 * len(order), f"Forward and backward through {count(depth.passes, 'pass', 'passes')}"
        )

        def watch(site: str, layer: int, x: torch.Tensor) -> None:
            if site == "resid_pre":
                step()
                # On the way back, too. PyTorch has no types for hooks.
                x.register_hook(lambda _: step())  # type: ignore[no-untyped-call]

        with trace(watch, sites=["resid_pre"]) as recorded:
            out = model.run_blocks(ids, real, order)
        loss = successor_loss(model, out, ids, len(tokens))
        streams = [*recorded["resid_pre"], out]
        blocks = dict(model.blocks.named_parameters())
        grads = torch.autograd.grad(loss, [*streams, *blocks.values()], materialize_grads=True)
        rows = weight_rows(model, dict(zip(blocks, grads[len(streams) :])))
        stream = np.array([norm(gradient) for gradient in grads[: len(streams)]])
        table = pd.DataFrame(rows, columns=["layer", "weight", "value"]).astype(
            {"layer": int, "value": float}
        )
        finite = (
            math.isfinite(loss.item())
            and np.isfinite(stream).all()
            and np.isfinite(table.value).all()
        )
        return Gradients(config, loss.item(), stream, table, not finite)


def successor_loss(
    model: Transformer, stream: torch.Tensor, ids: torch.Tensor, n_real: int
) -> torch.Tensor:
    """Return the mean next-token cross-entropy (nats); the last token's target is the first.

    Shapes: stream (1, T, D), ids int (1, T).
    """
    logits = model.compute_logits(stream)[0, :n_real].float()
    return F.cross_entropy(logits, ids[0, :n_real].roll(-1))


def ignores_key_bias(config: Config) -> bool:
    """Return whether b_K exists and has no effect in any layer, as softmax ignores a constant.

    False where keys are turned or normed after it is added, scores are capped, or the weights of a
    row need not sum to 1.
    """
    turned = any(
        config.position_in(layer).rotate is not Position.rotate for layer in range(config.n_layers)
    )
    plain = not (turned or config.qk_norm or config.score_cap)
    biased = config.attention and config.attention_bias
    return biased and plain and bool(config.part("softmax").sums_to_one)


def norm(tensor: torch.Tensor) -> float:
    """Return the Euclidean norm of all values of a tensor, computed in float64."""
    return float(torch.linalg.vector_norm(tensor.detach().cpu().double()).item())


def weight_rows(model: Transformer, grads: dict[str, torch.Tensor]) -> list[tuple[int, str, float]]:
    """Return (layer from 1, part: "W_Q", "ln1 gain", …, norm) of {parameter name: gradient}."""
    rows = []
    for name, gradient in grads.items():
        layer = int(name.split(".")[0])
        path = name.split(".")[1:-1]
        kind = name.rsplit(".", 1)[1]
        module = model.blocks[layer].get_submodule(".".join(path))
        if isinstance(module, Linear):
            names = [f"{'W' if kind == 'weight' else 'b'}_{part}" for part in module.parts]
            pieces = torch.split(gradient, list(module.parts.values()))
        elif kind in ("weight", "bias"):
            names = [f"{path[-1]} {'gain' if kind == 'weight' else 'bias'}"]
            pieces = (gradient,)
        else:  # it has a name of its own: attn q_norm, ln1 alpha
            names = [f"{path[-1] if path[-1] != 'scale' else path[-2]} {kind}"]
            pieces = (gradient,)
        rows += [(layer + 1, name, norm(piece)) for name, piece in zip(names, pieces)]
    return rows
