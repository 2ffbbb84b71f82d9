"""Trained model that is open, with its tokenizer and cached results."""

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import Any

from core.checkpoints.tensors import CheckpointError, size_of
from core.checkpoints.tokens import Tokens
from core.model.config import Config
from core.model.transformer import Transformer
from core.settings.cache import CacheGroup, LRUCache
from core.settings.memory import max_mb
from core.tasks import task
from core.tasks.task import Task

__all__ = ["CheckpointError", "Opened"]


_all_results = CacheGroup(max_mb() / 2)


@dataclass(frozen=True, eq=False)
class Opened:
    """Trained model with its tokenizer, task and origin; shared and never changed.

    key: a hash of its content, under which results are cached.
    """

    name: str
    model: Transformer
    tokens: Tokens
    task: str = ""  # the task it was trained on, if it was trained here
    about: dict[str, Any] = field(default_factory=dict)  # what its file says of where it comes from
    ends: tuple[int, ...] = ()  # tokens that end a text
    notes: tuple[str, ...] = ()  # what whoever opens it should know
    key: str = ""
    # no other that is opened in this process has it
    serial: int = field(default_factory=itertools.count().__next__, repr=False)
    # what was measured on it, for the next visitor: up to a quarter of what one run may use, and
    # that of all models up to half
    results: LRUCache = field(
        default_factory=lambda: LRUCache(max_mb() / 4, _all_results), repr=False
    )

    def __post_init__(self) -> None:
        self.model.requires_grad_(False).eval()
        if not self.key:  # a hash of the settings, the vocabulary and every weight
            digest = hashlib.blake2b(digest_size=12)
            digest.update(repr((self.config, self.model.vocabulary)).encode("utf-8", "replace"))
            for name, x in sorted(self.model.state_dict().items()):
                digest.update(name.encode())
                digest.update(x.detach().cpu().contiguous().numpy().data)
            object.__setattr__(self, "key", digest.hexdigest())

    @property
    def learnt(self) -> Task | None:
        """Task that the model was trained on; None if it was trained elsewhere."""
        return task.get(self.task)

    @property
    def config(self) -> Config:
        """Settings of the model."""
        return self.model.config

    @property
    def parameters(self) -> int:
        """Number of parameters of the model."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def size(self) -> int:
        """Bytes of the weights and the vocabulary, by size_of(), without cached results."""
        return size_of(self.parameters, len(self.model.vocabulary))

    @property
    def longest(self) -> int | None:
        """Number of tokens that the model can read at most; None if there is no limit."""
        table = getattr(self.model.position, "weight", None)
        return None if table is None else len(table)
