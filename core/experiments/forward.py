"""One forward pass, watched: what every other experiment of the first page reads from."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from core.config import Config
from core.cost import run_bytes
from core.device import Machine, timed
from core.dropout import dropping
from core.measure import reduce, tidy
from core.memory import Shelf, max_mb, room_for
from core.model import Transformer
from core.parts.init import generator
from core.text import PAD, shown, vocabulary
from core.totals import Watcher
from core.trace import trace

_shelf = Shelf(max_mb() << 17)  # an eighth of what one run may use


@dataclass(frozen=True)
class Pass:
    """What was seen in one pass. Tensors are float32 on the CPU, without the batch dimension."""

    config: Config
    machine: Machine
    tokens: tuple[str, ...]  # padding included
    n_real: int  # tokens that are not padding
    sites: dict[str, list[torch.Tensor]]
    measured: tuple  # of every site: names and values as core.measure.reduce gives them
    output: torch.Tensor  # (T, D), what leaves the last block
    allowed: torch.Tensor  # (T, T) bool, which key each query may see
    milliseconds: float  # of one pass with nothing recorded
    weights: str  # in words: whose they are
    dropout: bool = False  # whether dropout acted

    @property
    def statistics(self) -> pd.DataFrame:
        """Every meter of every site: layer, site, meter, value."""
        return tidy(*self.measured)

    @property
    def labels(self) -> list[str]:
        """The tokens as axis labels."""
        return [shown(token) for token in self.tokens]

    @property
    def finite(self) -> bool:
        """Whether all numbers stayed in range; if not, what is computed from them may be no number."""
        return bool(np.isfinite(self.measured[1]).all())

    @property
    def layers(self) -> range:
        return range(self.config.n_layers)


def forward(config: Config, tokens, machine: Machine | None = None, dropout: bool = False) -> Pass:
    """Run the stack on the tokens (strings, without padding) and record every site.

    Raises MemoryLimit before anything is allocated, if the run would need more than ABLATION_MAX_MB.
    """
    machine, tokens = machine or Machine(), tuple(tokens)

    def run():
        made = _run(config, tokens, machine, dropout)
        return made, 4 * sum(x.numel() for seen in made.sites.values() for x in seen)

    return _shelf.get((config, tokens, machine, dropout), run)


def timed_stream(config: Config, tokens, machine: Machine):
    """The same stack and text, built once, as a call that runs it without recording: what a time is taken of."""
    model, ids, real = prepared(config, tuple(tokens), machine)

    def call():
        with torch.inference_mode():
            return model.stream(ids, real)

    return call


def prepared(config, tokens, machine):
    """-> (model, token numbers (1, T), which of them are real (1, T) or None for all)"""
    known, ids, real = numbered(tokens, config.padding, machine.place)
    model = Transformer(config, known).to(machine.place, machine.precision).requires_grad_(False)
    return model, ids, real


def numbered(tokens, padding: int, place: str):
    """-> (vocabulary, token numbers (1, T), which of them are real (1, T) or None for all)

    Raises ValueError where there is no word.
    """
    if not tokens:
        raise ValueError("text has no words; type at least one.")
    padded = (*tokens, *[PAD] * padding)
    known = vocabulary(list(tokens))
    number = {word: at for at, word in enumerate(known)}
    ids = torch.tensor([[number[word] for word in padded]], device=place)
    real = torch.arange(len(padded), device=place)[None] < len(tokens) if padding else None
    return known, ids, real


def _run(config, tokens, machine, dropout) -> Pass:
    length = len(tokens) + config.padding
    needed = run_bytes(config, length, len(vocabulary(list(tokens))), machine.dtype)
    with room_for(needed, "This model and text"), torch.inference_mode():
        model, ids, real = prepared(config, tokens, machine)
        padded = (*tokens, *[PAD] * config.padding)
        return watched(
            model, ids, padded, len(tokens), machine, f"Random weights, seed {config.seed}", real, dropout=dropout
        )


@torch.inference_mode()
def watched(model, ids, tokens, n_real, machine, weights: str, real=None, edits=(), dropout: bool = False) -> Pass:
    """One text through a model that is there already: ids (1, T), and the same tokens in words. edits: as for trace()."""
    watcher = Watcher()
    with trace(*edits, watcher) as seen:
        output, milliseconds = _timed_pass(model, ids, real, machine, dropout)
    if (
        milliseconds < 1000 and not edits
    ):  # once more with nothing recorded and nothing cold: the time of the pass alone
        milliseconds = _timed_pass(model, ids, real, machine, dropout)[1]
    return Pass(
        config=model.config,
        machine=machine,
        tokens=tuple(tokens),
        n_real=n_real,
        sites={site: [x[0].float().cpu() for x in seen[site]] for site in seen},
        measured=reduce(watcher),
        output=output[0].float().cpu(),
        allowed=square(model.allowed(ids, real), ids.shape[1]),
        milliseconds=milliseconds,
        weights=weights,
        dropout=dropout,
    )


def _timed_pass(model, ids, real, machine, dropout):
    if not dropout:
        return timed(lambda: model.stream(ids, real), machine.place)
    with dropping(generator(model.config.seed, "dropout")):
        return timed(lambda: model.stream(ids, real), machine.place)


def square(allowed, length) -> torch.Tensor:
    """What a model allows, as one matrix (T, T)."""
    if allowed is None:
        return torch.ones(length, length, dtype=torch.bool)
    return allowed.expand(1, 1, length, length)[0, 0].cpu()
