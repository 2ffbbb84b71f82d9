"""Transformer block: both sub-layers, each with its norm and residual."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from core.model.attention import Memory, MultiHeadAttention
from core.model.config import Config
from core.model.layers import Linear, Part, drawing, drop
from core.model.parts.activation import inputs
from core.model.parts.init import Draw
from core.model.parts.placement import halves, norm_places
from core.model.trace import tap


class FeedForward(Part):
    """activation(x·W_in + b_in)·W_out + b_out on each token (Vaswani et al., 2017, section 3.3)."""

    def __init__(self, config: Config, draw: Draw | None = None):
        super().__init__()
        draw = draw or drawing(config, "blocks.0.mlp")
        self.activation = config.part("activation")
        self.dropout = config.dropout
        self.hidden_dropout = config.dropout if config.ffn_dropout else 0.0
        hidden = dict.fromkeys(("in", "gate")[: inputs(self.activation)], config.d_ff)
        self.w_in = Linear(config.d_model, hidden, config.bias, draw)
        self.w_out = Linear(config.d_ff, {"out": config.d_model}, config.bias, draw)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        hidden = tap("mlp_post", self.activation(tap("mlp_pre", self.w_in(x))))  # (B, T, d_ff)
        hidden = drop(hidden, self.hidden_dropout)
        return drop(self.w_out(hidden), self.dropout)


class Block(Part):
    """Attention, then the feed-forward network, each with its norm and its residual.

    A sub-layer that is switched off is gone, its norms and its residual with it. A residual that is
    switched off hands on what the sub-layer wrote, instead of adding it. In parallel both read the
    stream as it entered.
    """

    def __init__(self, config: Config, layer: int = 0, draw: Draw | None = None):
        super().__init__()
        draw = (draw or drawing(config)).at(f"blocks.{layer}")
        self.place: Callable[..., torch.Tensor] = config.part("placement")
        where = norm_places(self.place)
        scale = config.part("residual_scale")
        self.parallel = config.parallel
        # Whether something acts between what a sub-layer computes and the stream.
        self.on_output = "on the output of" in where or config.residual_scale != "none"
        self.attn = self.mlp = None
        if config.attention:
            self.attn = MultiHeadAttention(config, draw.at("attn"), layer)
            self.ln1, *self.more1 = self._norms(config, "ln1", len(where))
            self.add_attention = Join(
                "attn_out", "resid_mid", config.residual_attention, scale(config.d_model)
            )
        if config.ffn:
            self.mlp = FeedForward(config, draw.at("mlp"))
            self.ln2, *self.more2 = self._norms(config, "ln2", len(where))
            self.add_ffn = Join("mlp_out", "resid_post", config.residual_ffn, scale(config.d_model))

    def _norms(self, config: Config, site: str, n: int) -> list[nn.Module]:
        """The norms of a sub-layer, by the name of their site: ln1, and of two ln1_post."""
        for name in (site, f"{site}_post")[:n]:
            self.add_module(
                name, config.part("norm")(name, config.d_model, config.bias, config.norm_eps)
            )
        return [self.get_submodule(name) for name in (site, f"{site}_post")[:n]]

    def forward(
        self,
        x: torch.Tensor,
        allowed: torch.Tensor | None = None,
        kv_cache: Any = None,
        memory: Memory | None = None,
    ) -> torch.Tensor:  # (B, T, D), bool (…, T, K) -> (B, T, D)
        block_input = x = tap("resid_pre", x)
        attn = self.attn
        mlp = self.mlp
        if attn is not None:
            x = self.place(
                x,
                self.raw("attn_raw", lambda y: attn(y, allowed, kv_cache, memory)),
                self.ln1,
                self.add_attention,
                *self.more1,
            )
        if mlp is None:
            return tap("resid_post", x)
        if self.parallel and attn is not None:
            read, join = halves(self.place, self.ln2, self.add_ffn, *self.more2)
            return join(x, self.raw("mlp_raw", mlp)(read(block_input)))
        return self.place(x, self.raw("mlp_raw", mlp), self.ln2, self.add_ffn, *self.more2)

    @property
    def window(self) -> int:
        """Return how far this layer's attention sees; 0 for as far as the mask allows."""
        return 0 if self.attn is None else self.attn.window

    def raw(
        self, site: str, sublayer: Callable[[torch.Tensor], torch.Tensor]
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        """The sub-layer; where a norm acts on what it writes, that is seen before, too."""
        return (lambda y: tap(site, sublayer(y))) if self.on_output else sublayer


class Join(Part):
    """Scale and residual by which a sub-layer's output joins the stream."""

    def __init__(self, wrote: str, site: str, residual: bool, scale: nn.Module):
        super().__init__()
        self.wrote = wrote
        self.site = site
        self.residual = residual
        self.scale = scale

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # 2 × (…, D) -> (…, D)
        return self.plain(x, self.scale.forward(y))

    def plain(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Without the scale."""
        y = tap(self.wrote, y)
        return tap(self.site, x + y if self.residual else y)
