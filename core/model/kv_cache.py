"""Keys and values of what a causal model has read: for every further token only that token is computed."""

import torch

from core.model.transformer import Transformer


class Kept:
    """Of one layer."""

    def __init__(self) -> None:
        self.k: torch.Tensor | None = None  # (B, H, tokens so far, d_head)
        self.v: torch.Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.k is None else self.k.shape[2]

    def add(
        self, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:  # 2 × (B, H, T, d_head) -> 2 × (B, H, all, d_head)
        if self.k is not None and self.v is not None:
            k, v = torch.cat([self.k, k], 2), torch.cat([self.v, v], 2)
        self.k, self.v = k, v
        return k, v


class Past:
    """Of a model: `model(first, past=past)`, then `model(next, past=past)`, …, each with the tokens that are new.

    Raises ValueError for a model whose tokens see what comes after them: they would have to be computed again.
    """

    def __init__(self, model: Transformer):
        if model.mask.looks_ahead:
            raise ValueError(
                f"mask is {model.config.mask}; keys and values can be kept only where no token sees what comes after it."
            )
        self.layers = [Kept() for _ in model.blocks]
        self.length = 0

    def go_on(
        self, model: Transformer, tokens: torch.Tensor
    ) -> torch.Tensor:  # int (B, T) -> (B, T, D), what leaves the last block
        before, self.length = self.length, self.length + tokens.shape[-1]
        x = model.start(tokens, before)
        alone = model.mask.sees_all_before and self.length - before == 1
        allowed = None if alone else model.mask(self.length, tokens.device)[before:]
        for block, kept in zip(model.blocks, self.layers):
            x = block(x, allowed, kept)
        return x
