"""Multi-head attention and its variants: grouped queries, QK-norm, gates, windows, a KV cache."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.model.config import Config
from core.model.layers import Linear, Part, dropout, source_of_weights
from core.model.parts.init import Draw
from core.model.parts.mask import window_mask
from core.model.trace import tap

TINY = 1e-30  # least logit cap that is divided by: float32 can hold it
# Tensors that layers of a pass keep for later ones: values of attention under their name (below),
# the residual stream under the index of its layer (transformer.py).
Memory = dict[Any, torch.Tensor]


class MultiHeadAttention(Part):
    """softmax(Q·Kᵀ/√d_head)·V in n_heads subspaces (Vaswani et al., 2017, section 3.2).

    With fewer key-value heads than query heads, consecutive query heads share one of them (Ainslie
    et al., 2023, section 2.2).
    """

    def __init__(self, config: Config, draw: Draw | None = None, layer: int = 0):
        super().__init__()
        draw = draw or source_of_weights(config, "blocks.0.attn")
        d_model = config.d_model
        d_head = config.d_head
        self.config = config
        self.n_heads = config.n_heads
        self.n_kv_heads = config.n_kv_heads
        self.scale = 1 / math.sqrt(d_head) if config.scale else 1.0
        self.dropout = config.dropout
        self.widths = [n * d_head for n in (self.n_heads, self.n_kv_heads, self.n_kv_heads)]
        self.qkv = Linear(d_model, dict(zip("QKV", self.widths)), config.attention_bias, draw)
        self.softmax = config.part("softmax")(config.n_heads)
        self.gate = None
        if config.gate:
            self.gate = Linear(d_model, {"G": self.widths[0]}, config.attention_bias, draw)
        self.out = Linear(self.widths[0], {"O": d_model}, config.attention_bias, draw)
        self.q_norm = self.k_norm = None
        if config.qk_norm and config.norm_gain:
            q_width, k_width = self.widths[:2] if config.qk_norm_joint else (d_head, d_head)
            self.q_norm = nn.Parameter(torch.ones(q_width))
            self.k_norm = nn.Parameter(torch.ones(k_width))
        self.set_layer(layer)

    def set_layer(self, layer: int) -> None:
        """Switch to the position encoding and the window of a layer, counted from 0."""
        self.position = self.config.position_in(layer)(self.config, layer=layer)
        self.window = self.config.window_in(layer)

    def forward(
        self,
        x: torch.Tensor,
        allowed: torch.Tensor | None = None,
        kv_cache: Any = None,
        memory: Memory | None = None,
    ) -> torch.Tensor:
        """Return the output (B, T, D); kv_cache gets k, v; memory gets or gives values to mix.

        Args:
            x: Input of the sub-layer, (B, T, D).
            allowed: True where a query may attend to a key, bool (…, T, K); None for everywhere.
            kv_cache: Keys and values of earlier tokens, to which new ones are added.
            memory: Tensors that layers of this pass keep for later ones; without it, values are not
                mixed.
        """
        q, k, v = self.project(x)  # (B, n_heads, T, d_head), twice (B, n_kv_heads, T, d_head)
        if self.config.qk_norm:
            norm_heads = joint_norm if self.config.qk_norm_joint else head_norm
            q = norm_heads(q, self.q_norm, self.config.norm_eps)
            k = norm_heads(k, self.k_norm, self.config.norm_eps)
        if self.config.value_residual and memory is not None:
            v = self.mix_values(v, memory)
        q, k = self.position.rotate(q, k, 0 if kv_cache is None else kv_cache.length)
        q = tap("q", q)
        k = tap("k", k)
        v = tap("v", v)
        if kv_cache is not None:
            k, v = kv_cache.add(k, v)  # K ≥ T keys from here on

        scores = self.grouped_matmul(q, k.mT).mul_(self.scale)  # (B, n_heads, T, K)
        if self.config.score_cap:
            scores = cap_logits(scores, self.config.score_cap)
        scores = tap("scores", self.position.bias(scores))

        pattern = self.softmax.forward(scores, self.within_window(allowed, scores))
        pattern = dropout(tap("pattern", pattern), self.dropout)  # (B, n_heads, T, K)
        z = self.grouped_matmul(pattern, v)  # (B, n_heads, T, d_head)
        if self.gate is not None:
            z = z * tap("gate", self.split_heads(self.gate(x).sigmoid(), self.n_heads))
        z = tap("z", z)
        return dropout(self.out(z.transpose(1, 2).flatten(2)), self.dropout)

    def project(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries (B, n_heads, T, d_head), keys and values (B, n_kv_heads, T, d_head)."""
        if self.n_kv_heads == self.n_heads:  # fewer calls, which a small model feels
            B, T, _ = x.shape
            qkv = self.qkv(x).view(B, T, 3, self.n_heads, -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()
            return q, k, v
        q, k, v = self.qkv(x).split(self.widths, -1)
        return (
            self.split_heads(q, self.n_heads),
            self.split_heads(k, self.n_kv_heads),
            self.split_heads(v, self.n_kv_heads),
        )

    def split_heads(self, x: torch.Tensor, n_heads: int) -> torch.Tensor:
        """Split token vectors into heads: (B, T, n_heads · d_head) -> (B, n_heads, T, d_head)."""
        B, T, _ = x.shape
        return x.view(B, T, n_heads, -1).transpose(1, 2)

    def mix_values(self, v: torch.Tensor, memory: Memory) -> torch.Tensor:
        """Average values with memory's, ½ and ½; if it has none, store these and return them.

        The first layer stores its own. Zhou et al., 2024, section 3.
        """
        if "values" in memory:
            return (v + memory["values"]) / 2
        memory["values"] = v
        return v

    def grouped_matmul(self, x: torch.Tensor, per_kv_head: torch.Tensor) -> torch.Tensor:
        """Multiply (B, n_heads, T, n) by each key-value head's (n, m): -> (B, n_heads, T, m)."""
        if self.n_kv_heads == self.n_heads:
            return x @ per_kv_head
        B, H, T, n = x.shape
        groups = x.reshape(B, self.n_kv_heads, -1, n)  # queries of one key-value head as rows
        return (groups @ per_kv_head).view(B, H, T, -1)

    def within_window(
        self, allowed: torch.Tensor | None, scores: torch.Tensor
    ) -> torch.Tensor | None:
        """Restrict `allowed` (None: all) to this layer's window, (…, T, K); no window: as it is."""
        if not self.window:
            return allowed
        queries, keys = scores.shape[-2:]
        window = window_mask(self.window, queries, keys, scores.device)
        if allowed is None:
            return window
        return allowed[..., -keys:] & window  # the KV cache keeps no keys outside the window


def head_norm(x: torch.Tensor, gain: torch.Tensor | None, eps: float) -> torch.Tensor:
    """Apply RMSNorm to each head's vector: (B, H, T, d_head), gain (d_head) -> the same."""
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def joint_norm(x: torch.Tensor, gain: torch.Tensor | None, eps: float) -> torch.Tensor:
    """Apply RMSNorm to all heads of a token together: (B, H, T, d_head), gain (H · d_head)."""
    B, H, T, d_head = x.shape
    joined = x.transpose(1, 2).reshape(B, T, H * d_head)
    normed = F.rms_norm(joined, joined.shape[-1:], gain, eps)
    return normed.view(B, T, H, d_head).transpose(1, 2)


def cap_logits(x: torch.Tensor, cap: float) -> torch.Tensor:
    """Return cap · tanh(x / cap), which never exceeds ± cap (Gemma 2, 2024, section 2)."""
    return cap * torch.tanh(x / max(cap, TINY))
