"""Ablation Lab's engine: a transformer block whose every part can be taken out, and the instruments to see what it did."""

from core.config import Config
from core.dial import ConfigError
from core.measure import measure
from core.model import Block, FeedForward, MultiHeadAttention, Transformer
from core.trace import tap, trace

__all__ = [
    "Block",
    "Config",
    "ConfigError",
    "FeedForward",
    "MultiHeadAttention",
    "Transformer",
    "measure",
    "tap",
    "trace",
]
