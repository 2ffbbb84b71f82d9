"""KV cache of a causal model: each further token costs one token only."""

import torch

from core.model.attention import Memory
from core.model.transformer import Transformer


class Kept:
    """Keys and values of one layer.

    Args:
        window: How many tokens its attention sees, and at most are kept; 0 for all.
    """

    def __init__(self, window: int = 0) -> None:
        self.k: torch.Tensor | None = None  # (B, n_kv_heads, tokens that are kept, d_head)
        self.v: torch.Tensor | None = None
        # length: of all tokens so far
        self.window = window
        self.length = 0

    def add(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append T tokens and return all keys and values: two (B, n_kv_heads, cached + T, d_head)."""
        self.length += k.shape[2]
        if self.k is not None and self.v is not None:
            k = torch.cat([self.k, k], 2)
            v = torch.cat([self.v, v], 2)
        self.k, self.v = (x[:, :, -self.window :] for x in (k, v))
        return k, v


class Past:
    """KV cache of a model: `model(first, past=past)`, then `model(next, past=past)`, and so on.

    Raises ValueError for a model whose tokens see what comes after them: they would have to be
    computed again.
    """

    def __init__(self, model: Transformer):
        if model.mask.looks_ahead:
            raise ValueError(
                f"mask is {model.config.mask}; a KV cache needs a mask under which no token attends"
                " to later ones."
            )
        self.layers = [
            Kept(model.config.window_in(layer)) for layer in range(model.config.n_layers)
        ]
        self.length = 0

    def go_on(self, model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
        """Return what leaves the last block: int (B, T) -> (B, T, D)."""
        before = self.length
        self.length = self.length + tokens.shape[-1]
        x = model.start(tokens, before)
        alone = model.mask.sees_all_before and self.length - before == 1
        allowed = None if alone else model.mask(self.length, tokens.device)[before:]
        memory = Memory()
        for layer, layer_cache in enumerate(self.layers):
            x = model.layer(layer, x, allowed, memory, layer_cache)
        return x
