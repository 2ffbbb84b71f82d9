"""KV cache of a causal model: each further token costs one token only."""

import torch

from core.model.attention import Memory
from core.model.transformer import Transformer


class LayerCache:
    """Keys and values of one layer.

    Args:
        window: Number of tokens that attention sees, and that are cached at most; 0 for all.
    """

    def __init__(self, window: int = 0) -> None:
        self.k: torch.Tensor | None = None  # (B, n_kv_heads, cached tokens, d_head)
        self.v: torch.Tensor | None = None
        self.window = window
        self.length = 0  # of all tokens so far, those outside the window included

    def add(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append T tokens, keep a window; return k and v (B, n_kv_heads, cached + T, d_head)."""
        self.length += k.shape[2]
        if self.k is not None and self.v is not None:
            k = torch.cat([self.k, k], 2)
            v = torch.cat([self.v, v], 2)
        self.k = k[:, :, -self.window :]
        self.v = v[:, :, -self.window :]
        return k, v


class KVCache:
    """KV cache of a model: `model(first, kv_cache=cache)`, then `model(next, kv_cache=cache)`.

    Raises:
        ValueError: The mask lets tokens attend to later ones, so earlier tokens would change.
    """

    def __init__(self, model: Transformer):
        if model.mask.looks_ahead:
            raise ValueError(
                f"mask is {model.config.mask}; a KV cache needs a mask under which no token attends"
                " to later ones."
            )
        self.layers = [
            LayerCache(model.config.window_in(layer)) for layer in range(model.config.n_layers)
        ]
        self.length = 0

    def run_blocks(self, model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
        """Run the blocks on the next tokens and cache them: int (B, T) -> stream (B, T, D)."""
        before = self.length
        self.length = before + tokens.shape[-1]
        x = model.embed_tokens(tokens, before)
        needs_no_mask = model.mask.sees_all_before and self.length - before == 1
        allowed = None if needs_no_mask else model.mask(self.length, tokens.device)[before:]
        memory = Memory()
        for layer, layer_cache in enumerate(self.layers):
            x = model.run_layer(layer, x, allowed, memory, layer_cache)
        return x
