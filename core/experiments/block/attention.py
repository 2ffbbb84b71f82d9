"""Attention of one pass: what each head does, and every step of one head by hand."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch

from core.experiments.forward import Pass
from core.measure.stream_statistics import row_entropy
from core.model.config import Config
from core.model.variants import apply
from core.settings.setting import ConfigError

HEADS = (1, 4, 8)  # that are compared on the same sentence


def patterns(p: Pass, layer: int) -> torch.Tensor:
    """Attention weights of a layer (H, T, T); NaN where the mask or padding forbids looking."""
    return p.sites["pattern"][layer].masked_fill(~p.allowed, math.nan)


def recut(config: Config) -> dict[int, Config | None]:
    """The same model with each number of HEADS, of the same width together: without positions where RoPE cannot be, and None
    where they do not divide the width."""
    configs: dict[int, Config | None] = {}
    for number in HEADS:
        try:
            configs[number] = None if config.d_model % number else apply({"n_heads": number}, config)
        except ConfigError:
            configs[number] = apply({"n_heads": number, "position": "none"}, config)
    return configs


def heads(p: Pass, layer: int) -> pd.DataFrame:
    """What each head does, averaged over the real tokens as readers: head, meter, value.

    entropy in bits; distance: how many tokens away it looks on average (weighted mean of |query − key|); self: the
    weight on the token itself; uniform: the entropy of looking evenly at all that may be seen.
    """
    weights = p.sites["pattern"][layer][:, : p.n_real]  # (H, readers, T)
    at = torch.arange(weights.shape[-1])
    away = (at - at[: p.n_real, None]).abs().float()
    uniform = p.allowed[: p.n_real].sum(-1).clamp_min(1).float().log2().mean().item()
    columns = {
        "entropy": row_entropy(weights).mean(-1),
        "distance": (weights * away).sum(-1).mean(-1),
        "self": weights.diagonal(dim1=-2, dim2=-1).mean(-1),
    }
    rows = [(head + 1, name, float(v)) for name, values in columns.items() for head, v in enumerate(values)]
    rows += [(head + 1, "uniform", uniform) for head in range(len(weights))]
    return pd.DataFrame(rows, columns=["head", "meter", "value"])


def similarity(p: Pass, layer: int) -> torch.Tensor:
    """Cosine similarity between the heads' attention maps, over the real readers.  -> (H, H)"""
    flat = torch.nn.functional.normalize(p.sites["pattern"][layer][:, : p.n_real].flatten(1), dim=-1)
    return flat @ flat.T


@dataclass(frozen=True)
class Step:
    """One step of the walk through attention: a matrix with its words."""

    name: str
    formula: str
    explanation: str
    matrix: torch.Tensor  # (rows, columns)
    columns: str  # "token" or "dimension"


def walk(p: Pass, layer: int, head: int) -> list[Step]:
    """Every step of one head, from the recorded tensors: queries to output projection.

    Raw scores are recomputed from q and k; everything else is what the model itself computed.
    """
    c = p.config
    q, k, v = (p.sites[site][layer][head] for site in "qkv")
    raw, scores, pattern = q @ k.T, p.sites["scores"][layer][head], p.sites["pattern"][layer][head]
    z = p.sites["z"][layer]
    visible = scores.masked_fill(~p.allowed, -math.inf)
    drawn: Callable[[str], str] = lambda name: f"x·W_{name}{f' + b_{name}' * c.bias}"  # noqa: E731
    position = c.part("position")
    scale = f" / √{c.d_head}" if c.scale else ""
    sized = (
        f"Divided by √{c.d_head}, to a size that the softmax can handle."
        if c.scale
        else "Left as they are: scaling is off."
    )
    dropped = " Dropout has acted on the weights before." * p.dropout
    joins = (
        "this is added to the stream" if c.residual_attention else "this takes the place of the stream (residual off)"
    )
    return [
        Step("Queries", f"Q = {drawn('Q')}{position.on_queries}", "What each token is looking for.", q, "dimension"),
        Step("Keys", f"K = {drawn('K')}{position.on_queries}", "What each token offers to be found by.", k, "dimension"),
        Step("Values", f"V = {drawn('V')}", "What each token hands over when it is read.", v, "dimension"),
        Step("Raw scores", "Q·Kᵀ", "How well each query fits each key.", raw, "token"),
        Step("Scaled scores", f"Q·Kᵀ{scale}{position.on_scores}", sized, scores, "token"),
        Step("Mask", "−∞ where it may not look", "What a token may not see gets minus infinity.", visible, "token"),
        Step("Softmax", "exp(s) / Σ exp(s)", "Weights: none is below 0, 0 where it may not look, and each row sums to 1.", pattern, "token"),
        Step("Weighted sum", "z = weights · V", f"Each token's mixture of the values it read.{dropped}", z[head], "dimension"),
        Step("Concatenation", "all heads side by side", "The mixtures of all heads, one after another.", z.transpose(0, 1).flatten(1), "dimension"),
        Step("Output projection", f"concat·W_O{' + b_O' * c.bias}", f"Mixes the heads; {joins}.{dropped}", p.sites["attn_out"][layer], "dimension"),
    ]  # fmt: skip


def scaling(p: Pass, layer: int, head: int) -> dict[str, float]:
    """Mean entropy (bits) of one head's softmax with the scores scaled by 1/√d_k and not, on the very same q and k."""
    q, k = p.sites["q"][layer][head], p.sites["k"][layer][head]
    entropies, length = {}, len(q)
    bias = p.config.part("position")(p.config).bias(torch.zeros(1, p.config.n_heads, length, length))[0, head]
    readers = p.allowed.any(-1)
    readers[p.n_real :] = False
    for name, divisor in (("scaled", math.sqrt(p.config.d_head)), ("unscaled", 1.0)):
        scores = ((q @ k.T) / divisor + bias).masked_fill(~p.allowed, -math.inf)
        entropies[name] = row_entropy(scores[readers].softmax(-1)).mean().item()
    entropies["uniform"] = p.allowed[readers].sum(-1).float().log2().mean().item()
    return entropies
