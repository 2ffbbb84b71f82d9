"""Instrumented forward pass, which all experiments on a single pass use."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import torch

from core.experiments.weights import weights
from core.measure.tensor_meters import compute_meters, tidy
from core.measure.tensor_sums import Watcher
from core.model.config import Config
from core.model.cost import flops, run_bytes
from core.model.generate import Sampling, Step, generate
from core.model.layers import enable_dropout
from core.model.parts.init import generator
from core.model.parts.mask import restrict_to_window
from core.model.text import PAD, UNKNOWN, shorten_token, vocabulary
from core.model.trace import Edit, trace
from core.model.transformer import Transformer
from core.settings.cache import cached
from core.settings.device import Machine, Timing, time_call, time_median
from core.settings.memory import max_mb, room_for
from core.settings.progress import track
from core.settings.wording import head_name

Text = tuple[tuple[str, ...], list[Step]]


def continuation(
    config: Config,
    tokens: Sequence[str],
    machine: Machine,
    kind: str,
    sampling: Sampling,
    context: int,
) -> Text:
    """Continue a text, cached: (vocabulary, Steps with logits None); ConfigError if no weights.

    Args:
        config: Settings of the model.
        tokens: The text, without padding. A model with random weights knows these words alone.
        machine: Device and precision.
        kind: Kind of weights, among core.experiments.weights.
        sampling: How each next token is chosen, and how many.
        context: Number of tokens that are read at most; when it is reached, the window slides.

    Raises:
        ConfigError: There are no such weights, or the logits are not finite.
        MemoryLimitError: It would need more memory than is allowed.
    """
    return _continue(config.replace(padding=0), tuple(tokens), machine, kind, sampling, context)


@cached(
    megabytes=max_mb() / 64,
    size=lambda text: sum(4 * x.numel() for step in text[1] for x in step.patterns),
)
def _continue(
    config: Config,
    tokens: tuple[str, ...],
    machine: Machine,
    kind: str,
    sampling: Sampling,
    context: int,
) -> Text:
    """Sample a continuation (cached): vocabulary, Steps with logits None; see continuation()."""
    words = tuple(dict.fromkeys(tokens))
    vocabulary, numbers = look_up_words(kind, words)
    number = dict(zip(words, numbers))
    length = min(context, len(tokens) + sampling.words)
    patterns = 4 * sampling.words * config.n_layers * config.n_heads * length
    needed = run_bytes(config, length, len(vocabulary), machine.dtype) + patterns
    with room_for(needed, "Generating this many tokens"):
        model = weights[kind].model(config, vocabulary, config).requires_grad_(False)
        model = model.to(machine.torch_device, machine.precision)
        steps = generate(model, [number[token] for token in tokens], sampling, context=context)
        written = track(steps, sampling.words, f"generating {sampling.words} tokens")
        return vocabulary, [step._replace(logits=None) for step in written]


# floating point operations up to which a pass is timed so many times
SMALL = 2e7
RUNS = 3
SLOW = 1000  # milliseconds from which on a pass is not run again to be timed


@dataclass(frozen=True)
class Pass:
    """Recorded tensors and facts of one pass, float32 on the CPU, without the batch dimension."""

    config: Config
    machine: Machine
    tokens: tuple[str, ...]  # padding included
    n_real: int  # tokens that are not padding
    sites: dict[str, list[torch.Tensor]]
    # Of every site: names and values as core.measure.tensor_meters.compute_meters gives them.
    measured: tuple[list[tuple[str, int]], np.ndarray]
    output: torch.Tensor  # (T, D), what leaves the last block
    allowed: torch.Tensor  # (T, T) bool, which key each query may see by mask and padding
    timing: Timing | None  # of a pass with nothing recorded; none of a pass that was edited
    weights: str  # in words: whose they are
    dropout: bool = False  # whether dropout acted
    kind: str = (
        ""  # of its weights, among core.experiments.weights; "" of a model that is not among them
    )
    softmax: tuple[list[torch.Tensor], ...] = ()  # what the softmax of each block has learnt

    def run_with(self, config: Config, same_weights: bool = False) -> "Pass":
        """Rerun the text under another config, with its own or this pass's weights; or ConfigError.

        Args:
            config: The other settings.
            same_weights: Whether to keep this pass's weights under the new settings.

        Raises:
            ConfigError: There are no such weights.
        """
        weights_config = self.config if same_weights else None
        return forward(
            config,
            self.tokens[: self.n_real],
            self.machine,
            self.dropout,
            self.kind,
            weights_config,
        )

    def allowed_in(self, layer: int) -> torch.Tensor:  # -> bool (T, T)
        """Return which keys a query may see in a layer (from 0), by mask, padding and window."""
        return restrict_to_window(self.allowed, self.config.window_in(layer))

    def head_name(self, layer: int, head: int) -> str:
        """Return the label of a head, such as "L2H3"; layer and head counted from 0."""
        return head_name(layer, head)

    @property
    def statistics(self) -> pd.DataFrame:
        """Statistics of every recorded tensor, with padding: layer (from 0), site, meter, value."""
        return tidy(*self.measured)

    @property
    def labels(self) -> list[str]:
        """Tokens of the text and its padding, shortened for axis labels."""
        return [shorten_token(token) for token in self.tokens]

    @property
    def finite(self) -> bool:
        """Whether all recorded values are finite."""
        return bool(np.isfinite(self.measured[1]).all())

    @property
    def layers(self) -> range:
        """Indices of all layers, from 0."""
        return range(self.config.n_layers)


def forward(
    config: Config,
    tokens: Iterable[str],
    machine: Machine | None = None,
    dropout: bool = False,
    kind: str = "random",
    weights_config: Config | None = None,
) -> Pass:
    """Run a text, record every site (cached); ConfigError if no such weights, MemoryLimitError.

    Args:
        config: Settings of the model.
        tokens: The text, without padding.
        machine: Device and precision.
        dropout: Whether dropout acts.
        kind: Kind of weights, among core.experiments.weights.
        weights_config: Config whose weights are used, if not the config's own.

    Raises:
        MemoryLimitError: It would need more than ABLATION_MAX_MB; nothing is allocated yet.
        ConfigError: There are no such weights.
        CheckpointError: Their file cannot be opened.
    """
    return _run(
        config, tuple(tokens), machine or Machine(), dropout, kind, weights_config or config
    )


def build_plain_run(
    config: Config, tokens: Iterable[str], machine: Machine, kind: str = "random"
) -> Callable[[], torch.Tensor]:
    """Return a function that runs a model unrecorded: stream (B, T, D) before the final norm."""
    model, ids, real = prepare_model(config, tuple(tokens), machine, kind)

    def call() -> torch.Tensor:
        with torch.inference_mode():
            return model.run_blocks(ids, real)

    return call


def prepare_model(
    config: Config,
    tokens: Sequence[str],
    machine: Machine,
    kind: str = "random",
    weights_config: Config | None = None,
) -> tuple[Transformer, torch.Tensor, torch.Tensor | None]:
    """Build a model; return it, token ids (1, T) and which are real: bool (1, T), None for all."""
    words, ids, real = encode_tokens(tokens, config.padding, machine.torch_device)
    model_words, numbers = look_up_words(kind, words)
    model = weights[kind].model(config, model_words, weights_config or config).requires_grad_(False)
    if (machine.torch_device, machine.precision) != ("cpu", torch.float32):  # as it was made
        model = model.to(machine.torch_device, machine.precision)
    return model, torch.tensor(numbers, device=ids.device)[ids], real


def look_up_words(kind: str, words: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Return a kind's vocabulary, and each word's index in it (that of <unk> if not there)."""
    model_words, numbers = weights[kind].look_up_ids(words)
    return model_words, [
        model_words.index(UNKNOWN) if number is None else number for number in numbers
    ]


def encode_tokens(
    tokens: Sequence[str], padding: int, device: str
) -> tuple[tuple[str, ...], torch.Tensor, torch.Tensor | None]:
    """Encode a text and padding: words, ids (1, T), real (1, T) or None; ValueError if empty."""
    if not tokens:
        raise ValueError("text is empty; type at least one word.")
    padded = (*tokens, *[PAD] * padding)
    words = vocabulary(list(tokens))
    number = {word: index for index, word in enumerate(words)}
    ids = torch.tensor([[number[word] for word in padded]], device=device)
    real = torch.arange(len(padded), device=device)[None] < len(tokens) if padding else None
    return words, ids, real


@cached(
    megabytes=max_mb() / 8,
    size=lambda forward_pass: 4 * sum(x.numel() for xs in forward_pass.sites.values() for x in xs),
)
def _run(
    config: Config,
    tokens: tuple[str, ...],
    machine: Machine,
    dropout: bool,
    kind: str,
    weights_config: Config,
) -> Pass:
    """Run a text through a model and record every site, cached, as a Pass; see forward()."""
    padded = (*tokens, *[PAD] * config.padding)
    needed = run_bytes(
        config, len(padded), len(look_up_words(kind, vocabulary(list(tokens)))[0]), machine.dtype
    )
    with room_for(needed, "This model and text"), torch.inference_mode():
        model, ids, real = prepare_model(config, tokens, machine, kind, weights_config)
        whose = weights[kind].describe(weights_config)
        return run_recorded(
            model, ids, padded, len(tokens), machine, whose, real, dropout=dropout, kind=kind
        )


@torch.inference_mode()
def run_recorded(
    model: Transformer,
    ids: torch.Tensor,
    tokens: Iterable[str],
    n_real: int,
    machine: Machine,
    weights_caption: str,
    real: torch.Tensor | None = None,
    edits: Sequence[Edit] = (),
    dropout: bool = False,
    kind: str = "",
) -> Pass:
    """Run ids (1, T) through a model and record it, with edits; time it if there are none.

    Args:
        model: The model.
        ids: Token ids, with padding: int (1, T).
        tokens: The same as text.
        n_real: Number of tokens that are not padding.
        machine: Device and precision of the model.
        weights_caption: Description of its weights, for a picture.
        real: Which ids are not padding: bool (1, T), or None for all.
        edits: As for trace().
        dropout: Whether dropout acts.
        kind: Kind of weights, among core.experiments.weights, or "".
    """
    watcher = Watcher()

    def call() -> torch.Tensor:  # with the same random stream of dropout each time
        with enable_dropout(generator(model.config.seed, "dropout") if dropout else None):
            return model.run_blocks(ids, real)

    with trace(*edits, watcher) as recorded:
        output, first = time_call(call, machine.torch_device)
    timing = None
    if not edits and first >= SLOW:
        timing = Timing(first, 1, datetime.now(UTC))
    elif not edits:  # the first pass also loads, allocates and records
        runs = RUNS if sum(flops(model.config, ids.shape[1]).values()) < SMALL else 1
        timing = time_median(call, machine.torch_device, runs)
    softmax: list[list[torch.Tensor]] = []
    for block in model.blocks:
        attention: Any = getattr(block, "attn", None)
        learnt = [] if attention is None else attention.softmax.parameters()
        softmax.append([parameter.detach().float().cpu() for parameter in learnt])
    return Pass(
        config=model.config,
        machine=machine,
        tokens=tuple(tokens),
        n_real=n_real,
        sites={site: [x[0].float().cpu() for x in recorded[site]] for site in recorded},
        measured=compute_meters(watcher),
        output=output[0].float().cpu(),
        allowed=square_mask(model.attention_mask(ids, real), ids.shape[1]),
        timing=timing,
        weights=weights_caption,
        dropout=dropout,
        kind=kind,
        softmax=tuple(softmax),
    )


def square_mask(allowed: torch.Tensor | None, length: int) -> torch.Tensor:
    """Expand the mask of one text, None for all visible, to a bool matrix (T, T) on the CPU."""
    if allowed is None:
        return torch.ones(length, length, dtype=torch.bool)
    return allowed.expand(1, 1, length, length)[0, 0].cpu()
