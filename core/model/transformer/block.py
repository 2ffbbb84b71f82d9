"""One block: both sub-layers, each with its norm and its residual."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from core.model.config import Config
from core.model.parts.init import Draw
from core.model.trace import tap
from core.model.transformer.attention import MultiHeadAttention
from core.model.transformer.feed_forward import FeedForward
from core.model.transformer.linear import Part, drawing


class Block(Part):
    """Attention, then the feed-forward network, each with its norm and its residual.

    A sub-layer that is switched off is gone, its norm and its residual with it. A residual that is switched off hands
    on what the sub-layer computed, instead of adding it.
    """

    def __init__(self, config: Config, layer: int = 0, draw: Draw | None = None):
        super().__init__()
        draw = (draw or drawing(config)).at(f"blocks.{layer}")
        normalise, width = config.part("norm"), config.d_model
        self.place: Callable[..., torch.Tensor] = config.part("placement")
        self.attn = self.mlp = None
        if config.attention:
            self.attn = MultiHeadAttention(config, draw.at("attn"))
            self.ln1 = normalise("ln1", width, config.bias)
            self.add_attention = adder("resid_mid", config.residual_attention)
        if config.ffn:
            self.mlp = FeedForward(config, draw.at("mlp"))
            self.ln2 = normalise("ln2", width, config.bias)
            self.add_ffn = adder("resid_post", config.residual_ffn)

    def forward(
        self, x: torch.Tensor, allowed: torch.Tensor | None = None, kept: Any = None
    ) -> torch.Tensor:  # (B, T, D), bool (…, T, K) -> (B, T, D)
        x = tap("resid_pre", x)
        attn = self.attn
        if attn is not None:
            x = self.place(x, lambda y: attn(y, allowed, kept), self.ln1, self.add_attention)
        if self.mlp is None:
            return tap("resid_post", x)
        return self.place(x, self.mlp, self.ln2, self.add_ffn)


def adder(site: str, residual: bool) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """How a sub-layer's output joins the stream: added where the residual is on, in its place where it is off."""
    return partial(added if residual else replaced, site)


def added(site: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return tap(site, x + y)


def replaced(site: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return tap(site, y)
