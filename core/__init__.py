"""Engine of Ablation Lab: a transformer block with removable parts, and measurements of it."""

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
