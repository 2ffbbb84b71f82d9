"""Attention: who reads from whom."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.model.config import Config
from core.model.layers import Linear, Part, drawing, drop
from core.model.parts.init import Draw
from core.model.parts.mask import near
from core.model.trace import tap

TINY = 1e-30  # the least cap that is divided by: float32 holds it
# What layers leave for later ones: values by name (here), the stream by the layer's number
# (transformer.py).
Memory = dict[Any, torch.Tensor]


class MultiHeadAttention(Part):
    """softmax(Q·Kᵀ/√d_head)·V in n_heads subspaces (Vaswani et al., 2017, section 3.2).

    Where there are fewer heads of keys and values, each serves as many query heads in a row
    (Ainslie et al., 2023, section 2.2).
    """

    def __init__(self, config: Config, draw: Draw | None = None, layer: int = 0):
        super().__init__()
        draw = draw or drawing(config, "blocks.0.attn")
        width = config.d_model
        d_head = config.d_head
        self.config, self.n_heads, self.n_kv_heads = config, config.n_heads, config.n_kv_heads
        self.factor = 1 / math.sqrt(d_head) if config.scale else 1.0
        self.dropout = config.dropout
        self.sizes = [d_head * heads for heads in (self.n_heads, self.n_kv_heads, self.n_kv_heads)]
        self.qkv = Linear(width, dict(zip("QKV", self.sizes)), config.attention_bias, draw)
        self.softmax = config.part("softmax")(config.n_heads)
        self.gate = None
        if config.gate:
            self.gate = Linear(width, {"G": self.sizes[0]}, config.attention_bias, draw)
        self.out = Linear(self.sizes[0], {"O": width}, config.attention_bias, draw)
        self.q_norm = self.k_norm = None
        if config.qk_norm:
            self.q_norm = nn.Parameter(torch.ones(d_head))
            self.k_norm = nn.Parameter(torch.ones(d_head))
        self.in_layer(layer)

    def in_layer(self, layer: int) -> None:
        """Set what depends on the layer, counted from 0: its positions, and how far it sees."""
        self.position = self.config.position_in(layer)(self.config)
        self.window = self.config.window_in(layer)

    def forward(
        self,
        x: torch.Tensor,
        allowed: torch.Tensor | None = None,
        kv_cache: Any = None,
        memory: Memory | None = None,
    ) -> torch.Tensor:  # (B, T, D), bool (…, T, K) True where a query may look -> (B, T, D)
        """Run attention.

        Args:
            kv_cache: Keys and values of earlier tokens, to which new ones are added.
            memory: What layers of this pass leave for later ones, e.g. the first layer's values.
        """
        B, T, _ = x.shape
        if (
            self.n_kv_heads == self.n_heads
        ):  # the same views in fewer calls, which a small model feels
            q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4).unbind()
        else:
            parts = zip(
                self.qkv(x).split(self.sizes, -1), (self.n_heads, self.n_kv_heads, self.n_kv_heads)
            )
            q, k, v = (part.view(B, T, heads, -1).transpose(1, 2) for part, heads in parts)
        if self.q_norm is not None and self.k_norm is not None:
            eps = self.config.norm_eps
            q = head_norm(q, self.q_norm, eps)
            k = head_norm(k, self.k_norm, eps)
        if (
            self.config.value_residual and memory is not None
        ):  # "identity" form: ½ and ½ (Zhou et al., 2024, section 3)
            if "values" in memory:
                v = (v + memory["values"]) / 2
            else:
                memory["values"] = v
        q, k = self.position.rotate(q, k, 0 if kv_cache is None else kv_cache.length)
        # (B, H, T, d_head), of k and v (B, n_kv_heads, T, d_head)
        q = tap("q", q)
        k = tap("k", k)
        v = tap("v", v)
        if kv_cache is not None:
            k, v = kv_cache.add(k, v)  # from here on there are more keys than queries: K of them
        scores = self.per_group_matmul(q, k.mT).mul_(self.factor)
        if self.config.score_cap:
            scores = capped(scores, self.config.score_cap)
        scores = tap("scores", self.position.bias(scores))  # (B, H, T, K)
        pattern = drop(
            tap("pattern", self.softmax.forward(scores, self.seen(allowed, scores))), self.dropout
        )
        z = self.per_group_matmul(pattern, v)  # (B, H, T, d_head)
        if self.gate is not None:
            z = z * tap("gate", self.gate(x).sigmoid().view(B, T, self.n_heads, -1).transpose(1, 2))
        z = tap("z", z)
        return drop(self.out(z.transpose(1, 2).flatten(2)), self.dropout)

    def per_group_matmul(self, of_heads: torch.Tensor, of_groups: torch.Tensor) -> torch.Tensor:
        """Multiply each head by its group's matrix: (B, H, T, n) × (B, groups, n, m) -> (B, H, T, m)."""
        if self.n_kv_heads == self.n_heads:
            return of_heads @ of_groups
        B, H, T, n = of_heads.shape
        return (of_heads.reshape(B, self.n_kv_heads, -1, n) @ of_groups).view(B, H, T, -1)

    def seen(self, allowed: torch.Tensor | None, scores: torch.Tensor) -> torch.Tensor | None:
        """Combine mask, padding and this layer's window."""
        if not self.window:
            return allowed
        inside = near(self.window, *scores.shape[-2:], scores.device)
        if allowed is None:
            return inside
        # The cache dropped keys outside the window, so `allowed` is cut to those that are left.
        return allowed[..., -scores.shape[-1] :] & inside


def head_norm(x: torch.Tensor, gain: torch.Tensor, eps: float) -> torch.Tensor:
    """Apply RMSNorm to each head's vector: (B, H, T, d_head), gain (d_head) -> (B, H, T, d_head)."""
    return F.rms_norm(x, gain.shape, gain, eps)


def capped(x: torch.Tensor, cap: float) -> torch.Tensor:
    """Return cap · tanh(x / cap), which never exceeds ± cap (Gemma 2, 2024, section 2)."""
    return cap * torch.tanh(x / max(cap, TINY))
