"""Ablation Lab's engine: a transformer block whose every part can be taken out, and the instruments to see what it did."""

from core.measure.tensor_meters import measure
from core.model.attention import MultiHeadAttention
from core.model.block import Block, FeedForward
from core.model.config import Config
from core.model.trace import tap, trace
from core.model.transformer import Transformer
from core.settings.setting import ConfigError

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
