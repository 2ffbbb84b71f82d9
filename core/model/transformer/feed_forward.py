"""The feed-forward network: what each token does by itself."""

import torch

from core.model.config import Config
from core.model.parts.activation import inputs
from core.model.parts.init import Draw
from core.model.trace import tap
from core.model.transformer.dropout import drop
from core.model.transformer.linear import Linear, Part, drawing


class FeedForward(Part):
    """activation(x·W_in + b_in)·W_out + b_out, on each token by itself (Vaswani et al., 2017, section 3.3)."""

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
