"""The transformer, a file each: linear maps, attention, feed-forward network, block, stack, and dropout that acts where it is asked for."""

from core.model.transformer.attention import MultiHeadAttention, weights
from core.model.transformer.block import Block, adder
from core.model.transformer.feed_forward import FeedForward
from core.model.transformer.linear import Linear, Part, drawing
from core.model.transformer.stack import Transformer, visible

__all__ = [
    "Block",
    "FeedForward",
    "Linear",
    "MultiHeadAttention",
    "Part",
    "Transformer",
    "adder",
    "drawing",
    "visible",
    "weights",
]
