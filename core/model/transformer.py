"""Transformer: embedding, blocks, unembedding. Every recorded tensor passes through a tap."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.model.attention import Memory, capped
from core.model.block import Block
from core.model.config import Config
from core.model.layers import Linear, drawing, drop
from core.model.parts.init import Draw
from core.model.parts.norm import norm
from core.model.parts.placement import norm_places
from core.model.trace import tap


class Transformer(nn.Module):
    """Embedding and positions, n_layers blocks, final norm (unless post-norm) and unembedding.

    Tied, the embedding is read the other way round (Press and Wolf, 2017), and there is no
    unembedding of its own.
    """

    def __init__(self, config: Config, vocabulary: Iterable[str], draw: Draw | None = None):
        """Build the model.

        Args:
            vocabulary: Tokens as strings; a token's vector depends on its string.

        draw: where the initial weights come from, if not from config.init and config.seed.
        """
        super().__init__()
        draw = draw or drawing(config)
        self.config, self.vocabulary = config, tuple(vocabulary)
        self.mask = config.part("mask")
        self.embed = nn.Parameter(draw.at("embed").rows(self.vocabulary, config.d_model))
        self.position = config.part("position")(config, draw.at("pos_embed"))
        self.blocks = nn.ModuleList(Block(config, layer, draw) for layer in range(config.n_blocks))
        # Where no norm acts on the stream itself, it is read through one more (GPT-2's ln_f).
        last = (
            norm["none"]
            if "after" in norm_places(config.part("placement"))
            else config.part("norm")
        )
        self.ln_final = last("ln_final", config.d_model, config.bias, config.norm_eps)
        self.skip = None
        if config.skips:
            self.skip = nn.Parameter(
                torch.ones(config.n_layers // 2)
            )  # of late layers, the last one first
        self.unembed: Linear | None = None
        if not config.tied:
            self.unembed = Linear(
                config.d_model, {"U": len(self.vocabulary)}, False, draw.at("unembed")
            )

    def stream(
        self,
        tokens: torch.Tensor,
        real: torch.Tensor | None = None,
        order: list[int] | None = None,
        past: Any = None,
    ) -> torch.Tensor:  # int (B, T), bool (B, T) False where padding -> (B, T, D)
        """Return the output of the last block, before the final norm.

        Args:
            order: Indices of the layers to run; all once if None.

        past: a core.model.kv_cache.Past, to read on where it ended. Without padding, and all
        layers, once.
        """
        if past is not None:
            x: torch.Tensor = past.go_on(self, tokens)
            return x
        allowed = self.allowed(tokens, real)
        memory = Memory()
        x = self.start(tokens)
        for layer in range(self.config.n_layers) if order is None else order:
            x = self.layer(layer, x, allowed, memory)
        return x

    def layer(
        self,
        index: int,
        x: torch.Tensor,
        allowed: torch.Tensor | None,
        memory: Memory,
        kv_cache: Any = None,
    ) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        """Run one layer, counted from 0.

        Args:
            memory: What layers of this pass leave for later ones.
            kv_cache: The layer's keys and values of earlier tokens.
        """
        config = self.config
        x = self.blocks[config.block_of(index)](x, allowed, kv_cache, memory)
        if self.skip is not None:
            early = config.early_of(index + 1)
            if config.is_early(index):
                memory[index] = x
            if early in memory:  # what the next layer reads, too
                x = x + self.skip[early] * memory[early]
        return x

    def start(
        self, tokens: torch.Tensor, start: int = 0
    ) -> torch.Tensor:  # int (B, T) -> (B, T, D)
        """Return the input of the first block.

        Args:
            start: Number of tokens read before these.
        """
        return tap(
            "embed", drop(self.position.embed(self.embed[tokens], start), self.config.dropout)
        )

    def forward(
        self,
        tokens: torch.Tensor,
        real: torch.Tensor | None = None,
        order: list[int] | None = None,
        past: Any = None,
    ) -> torch.Tensor:  # int (B, T), bool (B, T) -> (B, T, V)
        return self.read(self.stream(tokens, real, order, past))

    def read(self, stream: torch.Tensor) -> torch.Tensor:  # (B, T, D) -> (B, T, V)
        """The scores of every word, from what leaves the last block."""
        stream = self.ln_final(stream)
        logits = F.linear(stream, self.embed) if self.unembed is None else self.unembed(stream)
        return tap(
            "logits", capped(logits, self.config.logit_cap) if self.config.logit_cap else logits
        )

    def allowed(
        self, tokens: torch.Tensor, real: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """Which key each query may see, or None for all: bool, broadcastable to (B, H, T, T)."""
        return visible(self.mask, tokens, real)


def visible(
    mask: Callable[..., torch.Tensor | None], tokens: torch.Tensor, real: torch.Tensor | None = None
) -> torch.Tensor | None:
    """Return what mask and padding allow: bool, broadcastable to (B, H, T, T); None for all."""
    allowed = mask(tokens.shape[-1], tokens.device)
    if real is None:
        return allowed
    keys = real[:, None, None, :]
    return keys if allowed is None else keys & allowed
