"""One forward pass, watched: what every other experiment of the first page reads from."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import nn

from core.experiments.weights import weights
from core.measure.tensor_meters import reduce, tidy
from core.measure.tensor_sums import Watcher
from core.model.config import Config
from core.model.cost import flops, run_bytes
from core.model.parts.init import generator
from core.model.parts.mask import within
from core.model.text import PAD, UNKNOWN, shown, vocabulary
from core.model.trace import trace
from core.model.transformer import Transformer
from core.model.transformer.dropout import dropping
from core.settings.cache import cached
from core.settings.device import Machine, Timing, median_timing, timed
from core.settings.memory import max_mb, room_for
from core.settings.wording import head_name

T = TypeVar("T")
Edit = Callable[[str, int, torch.Tensor], torch.Tensor | None]  # of a trace: (site, layer, x) -> what to go on with

SMALL, RUNS = 2e7, 3  # floating point operations up to which a pass is timed so many times
SLOW = 1000  # milliseconds from which on a pass is not run again to be timed


@dataclass(frozen=True)
class Pass:
    """What was seen in one pass. Tensors are float32 on the CPU, without the batch dimension."""

    config: Config
    machine: Machine
    tokens: tuple[str, ...]  # padding included
    n_real: int  # tokens that are not padding
    sites: dict[str, list[torch.Tensor]]
    measured: tuple[
        list[tuple[str, int]], np.ndarray
    ]  # of every site: names and values as core.measure.tensor_meters.reduce gives them
    output: torch.Tensor  # (T, D), what leaves the last block
    allowed: torch.Tensor  # (T, T) bool, which key each query may see by mask and padding
    timing: Timing | None  # of a pass with nothing recorded; none of a pass that was edited
    weights: str  # in words: whose they are
    dropout: bool = False  # whether dropout acted
    layered: bool = False  # whether its heads are named with their layer
    kind: str = ""  # of its weights, among core.experiments.weights; "" of a model that is not among them
    softmax: tuple[list[torch.Tensor], ...] = ()  # what the softmax of each block has learnt

    def other(self, config: Config, same_weights: bool = False) -> "Pass":
        """The same text through another model of this kind. same_weights: through this one's weights, under other settings.

        Raises ConfigError where there are no such weights.
        """
        of = self.config if same_weights else None
        return forward(config, self.tokens[: self.n_real], self.machine, self.dropout, self.kind, of)

    def allowed_in(self, layer: int) -> torch.Tensor:  # -> bool (T, T)
        """Which key each query may see in a layer, counted from 0: inside its window, too."""
        return within(self.allowed, self.config.window_in(layer))

    def head_name(self, layer: int, head: int) -> str:
        """Of a head, both counted from 0."""
        return head_name(layer, head, self.layered)

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


def forward(
    config: Config,
    tokens: Iterable[str],
    machine: Machine | None = None,
    dropout: bool = False,
    kind: str = "random",
    of: Config | None = None,
) -> Pass:
    """Run the stack on the tokens (strings, without padding) and record every site.

    kind: of weights, among core.experiments.weights; of: whose weights they are, where not the config's own.
    Raises MemoryLimit before anything is allocated, if the run would need more than ABLATION_MAX_MB; ConfigError where there
    are no such weights, CheckpointError where their file cannot be opened.
    """
    return _run(config, tuple(tokens), machine or Machine(), dropout, kind, of or config)


def timed_stream(
    config: Config, tokens: Iterable[str], machine: Machine, kind: str = "random"
) -> Callable[[], torch.Tensor]:
    """The same stack and text, built once, as a call that runs it without recording: what a time is taken of."""
    model, ids, real = prepared(config, tuple(tokens), machine, kind)

    def call() -> torch.Tensor:
        with torch.inference_mode():
            return model.stream(ids, real)

    return call


def prepared(
    config: Config, tokens: Sequence[str], machine: Machine, kind: str = "random", of: Config | None = None
) -> tuple[Transformer, torch.Tensor, torch.Tensor | None]:
    """-> (model, token numbers (1, T), which of them are real (1, T) or None for all)"""
    known, ids, real = numbered(tokens, config.padding, machine.torch_device)
    own, numbers = known_to(kind, known)
    model = weights[kind].model(config, own, of or config).requires_grad_(False)
    if (machine.torch_device, machine.precision) != ("cpu", torch.float32):  # as it was made
        model = model.to(machine.torch_device, machine.precision)
    return model, torch.tensor(numbers, device=ids.device)[ids], real


def known_to(kind: str, words: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """-> (vocabulary, number in it of each of these words: of the unknown word, where it is not there)"""
    own, numbers = weights[kind].numbers(words)
    return own, [own.index(UNKNOWN) if number is None else number for number in numbers]


def numbered(
    tokens: Sequence[str], padding: int, device: str
) -> tuple[tuple[str, ...], torch.Tensor, torch.Tensor | None]:
    """-> (vocabulary, token numbers (1, T), which of them are real (1, T) or None for all)

    Raises ValueError where there is no word.
    """
    if not tokens:
        raise ValueError("text has no words; type at least one.")
    padded = (*tokens, *[PAD] * padding)
    known = vocabulary(list(tokens))
    number = {word: at for at, word in enumerate(known)}
    ids = torch.tensor([[number[word] for word in padded]], device=device)
    real = torch.arange(len(padded), device=device)[None] < len(tokens) if padding else None
    return known, ids, real


def _bytes(forward_pass: Pass) -> int:
    return 4 * sum(x.numel() for recorded in forward_pass.sites.values() for x in recorded)


@cached(megabytes=max_mb() / 8, size=_bytes)
def _run(config: Config, tokens: tuple[str, ...], machine: Machine, dropout: bool, kind: str, of: Config) -> Pass:
    padded = (*tokens, *[PAD] * config.padding)
    needed = run_bytes(config, len(padded), len(known_to(kind, vocabulary(list(tokens)))[0]), machine.dtype)
    with room_for(needed, "This model and text"), torch.inference_mode():
        model, ids, real = prepared(config, tokens, machine, kind, of)
        whose = weights[kind].whose(of)
        return watched(model, ids, padded, len(tokens), machine, whose, real, dropout=dropout, kind=kind)


@torch.inference_mode()
def watched(
    model: Transformer,
    ids: torch.Tensor,
    tokens: Iterable[str],
    n_real: int,
    machine: Machine,
    weights: str,
    real: torch.Tensor | None = None,
    edits: Sequence[Edit] = (),
    dropout: bool = False,
    layered: bool = False,
    kind: str = "",
) -> Pass:
    """One text through a model that is there already: ids (1, T), and the same tokens in words.

    edits: as for trace(). layered: whether heads are named with their layer even where there is only one.
    """
    watcher = Watcher()
    call = _dropping(model, lambda: model.stream(ids, real)) if dropout else lambda: model.stream(ids, real)
    with trace(*edits, watcher) as recorded:
        output, first = timed(call, machine.torch_device)
    return Pass(
        config=model.config,
        machine=machine,
        tokens=tuple(tokens),
        n_real=n_real,
        sites={site: [x[0].float().cpu() for x in recorded[site]] for site in recorded},
        measured=reduce(watcher),
        output=output[0].float().cpu(),
        allowed=square(model.allowed(ids, real), ids.shape[1]),
        timing=None if edits else _timing(call, first, model.config, ids.shape[1], machine.torch_device),
        weights=weights,
        dropout=dropout,
        layered=layered or model.config.n_layers > 1,
        kind=kind,
        softmax=tuple(map(_softmax, model.blocks)),
    )


def _softmax(block: nn.Module) -> list[torch.Tensor]:
    attention: Any = getattr(block, "attn", None)
    return [] if attention is None else [each.detach().float().cpu() for each in attention.softmax.parameters()]


def _timing(call: Callable[[], object], first: float, config: Config, length: int, timed_on: str) -> Timing:
    """Of passes after the first, which also loads, allocates and records; where that was slow, it is not repeated."""
    if first >= SLOW:
        return Timing(first, 1, datetime.now(UTC))
    return median_timing(call, timed_on, RUNS if sum(flops(config, length).values()) < SMALL else 1)


def _dropping(model: Transformer, call: Callable[[], T]) -> Callable[[], T]:
    """The same call, in which dropout acts, each time from the same random stream."""

    def dropped() -> T:
        with dropping(generator(model.config.seed, "dropout")):
            return call()

    return dropped


def square(allowed: torch.Tensor | None, length: int) -> torch.Tensor:
    """What a model allows, as one matrix (T, T)."""
    if allowed is None:
        return torch.ones(length, length, dtype=torch.bool)
    return allowed.expand(1, 1, length, length)[0, 0].cpu()
