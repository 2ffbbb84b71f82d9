"""Exact rewriting of a model: the same function, with heads and hidden units in reverse order."""

from collections.abc import Sequence

import torch

from core.model.attention import MultiHeadAttention
from core.model.block import FeedForward
from core.model.layers import Linear
from core.model.parts.position import ALiBi
from core.model.transformer import Transformer


@torch.no_grad()
def reverse_heads_and_units(model: Transformer) -> None:
    """Reverse heads (not with ALiBi) and hidden units in place; outputs change by rounding only.

    ALiBi's slope is another one for each head.
    """
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and not isinstance(module.position, ALiBi):
            _reverse_heads(module)
        elif isinstance(module, FeedForward):
            _reverse_units(module)


def _reverse_heads(attention: MultiHeadAttention) -> None:
    """Reverse the order of query heads and of key-value heads in place."""
    heads = (attention.n_heads, attention.n_kv_heads, attention.n_kv_heads)
    _reverse_rows(attention.qkv, heads)
    if attention.gate is not None:
        _reverse_rows(attention.gate, (attention.n_heads,))
    if attention.config.qk_norm_joint:
        for gain, n_heads in zip((attention.q_norm, attention.k_norm), heads):
            if gain is not None:
                gain.copy_(gain.view(n_heads, -1).flip(0).flatten())
    for score in attention.softmax.parameters():  # of a sink, (n_heads,)
        score.copy_(score.flip(0))
    weight = attention.out.weight
    by_head = weight.view(len(weight), attention.n_heads, -1)
    weight.copy_(by_head.flip(1).flatten(1))


def _reverse_rows(linear: Linear, heads: Sequence[int]) -> None:
    """Reverse the order of output heads in place; `heads` is their number in each stacked map."""
    sizes = list(linear.parts.values())
    for parameter in linear.parameters():  # weight and bias: outputs first
        for rows, n in zip(torch.split(parameter, sizes), heads):
            rows.copy_(rows.view(n, len(rows) // n, *rows.shape[1:]).flip(0).flatten(0, 1))


def _reverse_units(ffn: FeedForward) -> None:
    """Reverse the order of hidden units in place."""
    _reverse_rows(ffn.w_in, list(ffn.w_in.parts.values()))
    ffn.w_out.weight.copy_(ffn.w_out.weight.flip(1))
