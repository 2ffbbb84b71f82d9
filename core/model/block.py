"""Transformer block: both sub-layers, each with its norm and residual."""

from typing import Any

import torch
from torch import nn

from core.model.attention import Memory, MultiHeadAttention
from core.model.config import Config
from core.model.layers import Linear, Part, dropout, source_of_weights
from core.model.parts.activation import count_inputs
from core.model.parts.init import Draw
from core.model.parts.placement import ON_OUTPUT, Placement
from core.model.trace import tap


class FeedForward(Part):
    """activation(x·W_in + b_in)·W_out + b_out on each token (Vaswani et al., 2017, section 3.3)."""

    def __init__(self, config: Config, draw: Draw | None = None):
        super().__init__()
        draw = draw or source_of_weights(config, "blocks.0.mlp")
        self.activation = config.part("activation")
        self.dropout = config.dropout
        self.hidden_dropout = config.dropout if config.ffn_dropout else 0.0
        hidden = dict.fromkeys(("in", "gate")[: count_inputs(self.activation)], config.d_ff)
        self.w_in = Linear(config.d_model, hidden, config.bias, draw)
        self.w_out = Linear(config.d_ff, {"out": config.d_model}, config.bias, draw)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        """Run the network on each token: (B, T, D) -> (B, T, D)."""
        hidden = tap("mlp_post", self.activation(tap("mlp_pre", self.w_in(x))))  # (B, T, d_ff)
        hidden = dropout(hidden, self.hidden_dropout)
        return dropout(self.w_out(hidden), self.dropout)


class Block(Part):
    """Attention, then the feed-forward network, each with its norms and its residual connection.

    A sub-layer that is switched off has no norms and no residual either. Without its residual, a
    sub-layer's output replaces the stream instead of being added to it. In a parallel block both
    sub-layers read the block's input.
    """

    def __init__(self, config: Config, layer: int = 0, draw: Draw | None = None):
        super().__init__()
        draw = (draw or source_of_weights(config)).below(f"blocks.{layer}")
        scale = config.part("residual_scale")
        self.placement: type[Placement] = config.part("placement")
        self.parallel = config.parallel
        # Whether a norm or a scale changes a sub-layer's output before it joins the stream.
        self.changes_output = ON_OUTPUT in self.placement.norms or config.residual_scale != "none"
        self.attn = self.mlp = None
        if config.attention:
            self.attn = MultiHeadAttention(config, draw.below("attn"), layer)
            self.attention_norms = self._add_norms(config, "ln1")
            self.add_attention = Join(
                "attn_out", "resid_mid", config.residual_attention, scale(config.d_model)
            )
        if config.ffn:
            self.mlp = FeedForward(config, draw.below("mlp"))
            self.ffn_norms = self._add_norms(config, "ln2")
            self.add_ffn = Join("mlp_out", "resid_post", config.residual_ffn, scale(config.d_model))

    def _add_norms(self, config: Config, site: str) -> list[nn.Module]:
        """Create, add and return a sub-layer's norms: "ln1" and, if there are two, "ln1_post"."""
        sites = (site, f"{site}_post")[: len(self.placement.norms)]
        make = config.part("norm")
        norms = [
            make(name, config.d_model, config.bias, config.norm_eps, config.norm_gain)
            for name in sites
        ]
        for name, norm in zip(sites, norms):
            self.add_module(name, norm)
        return norms

    def forward(
        self,
        x: torch.Tensor,
        allowed: torch.Tensor | None = None,
        kv_cache: Any = None,
        memory: Memory | None = None,
    ) -> torch.Tensor:
        """Run both sub-layers on the residual stream: (B, T, D) -> (B, T, D).

        Args:
            x: Residual stream, (B, T, D).
            allowed: True where a query may attend to a key, bool (…, T, K); None for everywhere.
            kv_cache: This layer's keys and values of earlier tokens.
            memory: Tensors that layers of this pass keep for later ones.

        Returns:
            Residual stream, (B, T, D).
        """
        read = self.placement.read
        write = self.placement.write
        block_input = x = tap("resid_pre", x)
        if self.attn is not None:
            y = self.attn(read(x, self.attention_norms), allowed, kv_cache, memory)
            y = self._tap_raw("attn_raw", y)
            x = write(x, y, self.add_attention, self.attention_norms)
        if self.mlp is None:
            return tap("resid_post", x)
        y = self.mlp(read(block_input if self.parallel else x, self.ffn_norms))
        y = self._tap_raw("mlp_raw", y)
        return write(x, y, self.add_ffn, self.ffn_norms)

    def _tap_raw(self, site: str, y: torch.Tensor) -> torch.Tensor:
        """Return a sub-layer's output, tapped as `site` only if a norm or a scale follows."""
        return tap(site, y) if self.changes_output else y

    @property
    def window(self) -> int:
        """Number of positions within which attention sees keys; 0 without a window or attention."""
        return 0 if self.attn is None else self.attn.window


class Join(Part):
    """Residual connection: adds a sub-layer's output to the stream, or replaces the stream by it.

    Args:
        output_site: Hook name of the output as it is added.
        stream_site: Hook name of the stream after that.
        residual: Whether the output is added.
        scale: What the output is multiplied by first.
    """

    def __init__(self, output_site: str, stream_site: str, residual: bool, scale: nn.Module):
        super().__init__()
        self.output_site = output_site
        self.stream_site = stream_site
        self.residual = residual
        self.scale = scale

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return x + scale · y, or scale · y if the residual is off: 2 × (…, D) -> (…, D)."""
        return self.join_unscaled(x, self.scale.forward(y))

    def join_unscaled(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return x + y, or y if the residual is off: 2 × (…, D) -> (…, D)."""
        y = tap(self.output_site, y)
        return tap(self.stream_site, x + y if self.residual else y)
