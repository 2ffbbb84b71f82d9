"""Engine of Ablation Lab: a transformer block with removable parts, and measurements of it."""

import importlib
from typing import TYPE_CHECKING, Any

from core.measure.tensor_meters import measure
from core.model.attention import MultiHeadAttention
from core.model.block import Block, FeedForward
from core.model.config import Config
from core.model.trace import tap, trace
from core.model.transformer import Transformer
from core.settings.setting import ConfigError

if TYPE_CHECKING:
    from core.study.ablate import ablate

__all__ = [
    "Block",
    "Config",
    "ConfigError",
    "FeedForward",
    "MultiHeadAttention",
    "Transformer",
    "ablate",
    "measure",
    "tap",
    "trace",
]


def __getattr__(name: str) -> Any:
    """Return `ablate`, which is imported when it is first used."""
    # It needs SQLAlchemy and all of core.study, which `import core` does not load.
    if name == "ablate":
        return importlib.import_module("core.study.ablate").ablate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
