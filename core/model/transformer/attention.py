"""Attention: who reads from whom."""

import math
from typing import Any

import torch

from core.model.config import Config
from core.model.parts.init import Draw
from core.model.trace import tap
from core.model.transformer.dropout import drop
from core.model.transformer.linear import Linear, Part, drawing


class MultiHeadAttention(Part):
    """softmax(Q·Kᵀ/√d_head)·V in n_heads subspaces of d_head numbers each (Vaswani et al., 2017, section 3.2)."""

    def __init__(self, config: Config, draw: Draw | None = None):
        super().__init__()
        draw = draw or drawing(config, "blocks.0.attn")
        width, inner = config.d_model, config.n_heads * config.d_head
        self.n_heads = config.n_heads
        self.factor = 1 / math.sqrt(config.d_head) if config.scale else 1.0
        self.dropout = config.dropout
        self.position = config.part("position")(config)
        self.qkv = Linear(width, {"Q": inner, "K": inner, "V": inner}, config.bias, draw)
        self.out = Linear(inner, {"O": width}, config.bias, draw)

    def forward(
        self, x: torch.Tensor, allowed: torch.Tensor | None = None, kept: Any = None
    ) -> torch.Tensor:  # (B, T, D), bool (…, T, K) True where a query may look -> (B, T, D)
        """kept: keys and values of the tokens before these (core/model/kv_cache.py), which the new ones are added to."""
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4).unbind()
        q, k = self.position.rotate(q, k, 0 if kept is None else kept.length)
        q, k, v = tap("q", q), tap("k", k), tap("v", v)  # (B, H, T, d_head)
        if kept is not None:
            k, v = kept.add(k, v)  # (B, H, K, d_head): from here on there are more keys than queries
        scores = tap("scores", self.position.bias((q @ k.mT).mul_(self.factor)))  # (B, H, T, T)
        pattern = drop(tap("pattern", weights(scores, allowed)), self.dropout)
        z = tap("z", pattern @ v)
        return tap("attn_out", drop(self.out(z.transpose(1, 2).flatten(2)), self.dropout))


def weights(scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
    """Softmax over what a query may look at; a query that may look at nothing gets zeros.

    (…, T, T), bool broadcastable to it -> (…, T, T)
    """
    if allowed is None:
        return scores.softmax(-1)
    alone = ~allowed.any(-1, keepdim=True)
    # A row of −inf would give NaN, and NaN gradients even if it were overwritten: such rows pass the softmax unmasked.
    return scores.masked_fill(~(allowed | alone), -math.inf).softmax(-1).masked_fill(alone, 0.0)
