"""The transformer, a file each: linear maps, attention, feed-forward network, block, stack, and dropout that acts where it is asked for."""

from core.model.parts.softmax import weights
from core.model.transformer.attention import Memory, MultiHeadAttention
from core.model.transformer.block import Block, FeedForward, Join
from core.model.transformer.linear import Linear, Part, drawing
from core.model.transformer.stack import Transformer, visible

__all__ = [
    "Block",
    "FeedForward",
    "Join",
    "Linear",
    "Memory",
    "MultiHeadAttention",
    "Part",
    "Transformer",
    "drawing",
    "visible",
    "weights",
]
