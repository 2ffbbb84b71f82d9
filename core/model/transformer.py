"""Transformer: embedding, blocks, unembedding. Every recorded tensor passes through a tap."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from core.model.attention import Memory, cap_logits
from core.model.block import Block
from core.model.config import Config
from core.model.layers import Linear, dropout, source_of_weights
from core.model.parts.init import Draw
from core.model.parts.norm import norm
from core.model.parts.placement import AFTER
from core.model.trace import tap


class Transformer(nn.Module):
    """Embedding and positions, n_layers blocks, final norm (unless post-norm) and unembedding.

    With tied embeddings the unembedding is the transposed embedding (Press and Wolf, 2017).
    """

    def __init__(self, config: Config, vocabulary: Iterable[str], draw: Draw | None = None):
        """Build the model.

        Args:
            config: Settings.
            vocabulary: Tokens as strings; a token's vector depends on its string.
            draw: Source of the initial weights; by default that of config.init and config.seed.
        """
        super().__init__()
        draw = draw or source_of_weights(config)
        self.config = config
        self.vocabulary = tuple(vocabulary)
        self.mask = config.part("mask")
        self.embed = nn.Parameter(draw.below("embed").rows(self.vocabulary, config.d_model))
        self.position = config.part("position")(config, draw.below("pos_embed"))
        self.blocks = nn.ModuleList(Block(config, layer, draw) for layer in range(config.n_blocks))
        # With a norm after the residual sum, the last block's output is normalised already.
        is_normed = AFTER in config.part("placement").norms
        final_norm = norm["none"] if is_normed else config.part("norm")
        arguments = (config.d_model, config.bias, config.norm_eps, config.norm_gain)
        self.ln_final = final_norm("ln_final", *arguments)
        self.ln_embed: nn.Module | None = None
        if config.embedding_norm:
            self.ln_embed = config.part("norm")("ln_embed", *arguments)
        self.skip = None
        if config.skips:  # weights of the skips into late layers, the last layer first
            self.skip = nn.Parameter(torch.ones(config.n_layers // 2))
        self.unembed: Linear | None = None
        if not config.tied:
            n_tokens = len(self.vocabulary)
            self.unembed = Linear(config.d_model, {"U": n_tokens}, False, draw.below("unembed"))

    def forward(
        self,
        tokens: torch.Tensor,
        real: torch.Tensor | None = None,
        order: list[int] | None = None,
        kv_cache: Any = None,
    ) -> torch.Tensor:
        """Return the logits of the next token after each token, (B, T, V), soft-cap included.

        The arguments are those of run_blocks().
        """
        return self.compute_logits(self.run_blocks(tokens, real, order, kv_cache))

    def run_blocks(
        self,
        tokens: torch.Tensor,
        real: torch.Tensor | None = None,
        order: list[int] | None = None,
        kv_cache: Any = None,
    ) -> torch.Tensor:
        """Return the stream before the final norm; ValueError for kv_cache with `real` or `order`.

        Args:
            tokens: Token ids, int (B, T).
            real: False where a token is padding, bool (B, T); None without padding.
            order: Indices of the layers to run, from 0, may repeat; None for each layer once.
            kv_cache: A core.model.kv_cache.KVCache of the tokens before these.

        Returns:
            Residual stream, (B, T, D).
        """
        if kv_cache is not None:
            if real is not None or order is not None:
                raise ValueError("a KV cache goes with neither padding nor an order of layers")
            stream: torch.Tensor = kv_cache.run_blocks(self, tokens)
            return stream
        allowed = self.attention_mask(tokens, real)
        memory = Memory()
        x = self.embed_tokens(tokens)
        for layer in range(self.config.n_layers) if order is None else order:
            x = self.run_layer(layer, x, allowed, memory)
        return x

    def embed_tokens(self, tokens: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Return embeddings plus positions, normed if set, for block 1: int (B, T) -> (B, T, D).

        Args:
            tokens: Token ids.
            start: Number of tokens before these.
        """
        x = self.position.embed(self.embed[tokens], start)
        if self.ln_embed is not None:
            x = self.ln_embed(tap("embed_raw", x))
        return tap("embed", dropout(x, self.config.dropout))

    def run_layer(
        self,
        layer: int,
        x: torch.Tensor,
        allowed: torch.Tensor | None,
        memory: Memory,
        kv_cache: Any = None,
    ) -> torch.Tensor:
        """Run one layer and add the skip that the next one reads: stream (B, T, D) -> (B, T, D).

        Args:
            layer: Index of the layer, from 0.
            x: Residual stream before the layer.
            allowed: True where a query may attend to a key; None for everywhere.
            memory: Tensors that layers of this pass keep for later ones; this one adds its own.
            kv_cache: The layer's keys and values of earlier tokens.
        """
        config = self.config
        x = self.blocks[config.block_of(layer)](x, allowed, kv_cache, memory)
        if self.skip is not None:
            early = config.skip_source(layer + 1)
            if config.feeds_skip(layer):
                memory[layer] = x
            if early in memory:  # the next layer reads this sum
                x = x + self.skip[early] * memory[early]
        return x

    def compute_logits(self, stream: torch.Tensor) -> torch.Tensor:
        """Apply the final norm, the unembedding and any soft-cap: (B, T, D) -> (B, T, V)."""
        stream = self.ln_final(stream)
        logits = F.linear(stream, self.embed) if self.unembed is None else self.unembed(stream)
        if self.config.logit_cap:
            logits = cap_logits(logits, self.config.logit_cap)
        return tap("logits", logits)

    def attention_mask(
        self, tokens: torch.Tensor, real: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """Return where queries may attend by mask and padding, no window: bool; None: everywhere.

        Broadcastable to (B, H, T, T). Each attention adds its layer's window.

        Args:
            tokens: Token ids, int (B, T).
            real: False where a token is padding, bool (B, T).
        """
        return combine_masks(self.mask, tokens, real)


def combine_masks(
    mask: Callable[..., torch.Tensor | None], tokens: torch.Tensor, real: torch.Tensor | None = None
) -> torch.Tensor | None:
    """Combine a mask function and padding: bool, True where allowed, or None for everywhere.

    See Transformer.attention_mask().
    """
    allowed = mask(tokens.shape[-1], tokens.device)
    if real is None:
        return allowed
    keys = real[:, None, None, :]
    return keys if allowed is None else keys & allowed
