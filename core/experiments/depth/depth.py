"""Statistics of the residual stream over depth: one block applied repeatedly, or a stack."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from core.experiments.forward import prepare_model, square_mask
from core.measure.stream_statistics import Streams, attention_entropy, cosines, statistic
from core.model.config import Config
from core.model.cost import run_bytes
from core.model.parts.mask import restrict_to_window
from core.model.text import PAD, vocabulary
from core.model.trace import trace
from core.model.transformer import Transformer
from core.settings.cache import cached
from core.settings.device import Machine
from core.settings.memory import max_mb, room_for
from core.settings.menu import Menu
from core.settings.progress import step_counter
from core.settings.setting import Settings, setting
from core.settings.wording import count

# Attention weights that are kept of all passes, to be played: 8 MB, and half of that goes to the
# browser.
PLAYED = 1 << 21
CHUNK = (
    1 << 21
)  # numbers that wait to be measured: together it costs two thirds of one by one (docs/log.md)

# of the stream's norm: from there on the two or three digits on screen are not to be trusted
ROUNDING = 0.01

Way = tuple[
    Config, list[int]
]  # config of the model to build, the order in which its blocks are gone through
blocks: Menu[Callable[[Config, int], Way]] = Menu("Blocks")


@blocks.register(
    "same",
    label="Same block",
    help="one block, applied repeatedly to its own output, as in a Universal Transformer.",
)
def repeat_one_block(config: Config, passes: int) -> Way:
    """Return a plan, (config, block of each pass), that applies one block `passes` times."""
    return config.replace(n_layers=1), [0] * passes


@blocks.register(
    "separate",
    label="Separate blocks",
    help="a stack of blocks with separate weights, as in most models.",
)
def stack_separate_blocks(config: Config, passes: int) -> Way:
    """Return a plan of separate blocks: the config with `passes` layers, and each pass's block."""
    return config.replace(n_layers=passes), list(range(passes))


@dataclass(frozen=True)
class Depth(Settings):
    """Number of passes, and whether the block is repeated or the layers differ."""

    passes: int = setting(
        10,
        "Passes",
        "Number of blocks that the residual stream passes through.",
        group="Depth",
        low=1,
        high=100,
        step=1,
        top=32,
    )
    blocks: str = setting(
        "same",
        "Blocks",
        "One block applied repeatedly, or a separate block for each pass.",
        group="Depth",
        menu=blocks,
    )

    def plan(self, config: Config) -> Way:
        """Return the config of the model to build, and the index of each pass's block."""
        return blocks[self.blocks](config, self.passes)

    @property
    def shown_passes(self) -> dict[str, int]:
        """First, middle, last pass (from 1) by name, at which attention is recorded."""
        return {"first": 1, "middle": (self.passes + 1) // 2, "last": self.passes}

    def passes_to_play(self, cells_per_pass: int) -> list[int]:
        """Return the passes (from 1) to play: every n-th and the last, about PLAYED cells in all.

        cells_per_pass: attention weights of one pass, over all heads; with 0, every pass is played.
        """
        every = max(1, -(-self.passes * cells_per_pass // PLAYED))
        return sorted({*range(1, self.passes + 1, every), self.passes})


@dataclass(frozen=True)
class Journey:
    """Statistics of one configuration after each pass. Pass 0 is the input."""

    config: Config  # with n_layers 1: how deep it goes is not the model's business here
    tokens: tuple[str, ...]
    n_real: int
    values: (
        np.ndarray
    )  # (passes + 1, statistics), NaN from where it diverged on; entropy of pass 0 is NaN too
    diverged: int | None  # the first pass after which a number is infinite or no number
    patterns: dict[
        int, torch.Tensor
    ]  # pass -> attention weights (H, T, T): first, middle, last; none after divergence
    allowed: torch.Tensor  # (T, T) bool, which key each query may see by mask and padding
    layers: tuple[int, ...]  # whose block each pass went through
    alike: dict[
        int, torch.Tensor
    ]  # pass -> cosine similarity of the real tokens (n_real, n_real); likewise
    rounded: int | None = (
        # the first pass whose stream rounding decides; None if there is none, or nobody looked
        None
    )

    def allowed_in(self, number: int) -> torch.Tensor:  # -> bool (T, T)
        """Return which keys a query may see in a pass (from 1), by mask, padding and window."""
        return restrict_to_window(self.allowed, self.config.window_in(self.layers[number - 1]))

    def until(self, passes: int) -> "Journey":
        """Return a copy with statistics of the input and first passes only; patterns stay."""
        diverged = self.diverged if self.diverged is not None and self.diverged <= passes else None
        return replace(
            self, values=self.values[: passes + 1], layers=self.layers[:passes], diverged=diverged
        )

    def values_of(self, meter: str) -> np.ndarray:
        """Return a statistic's (passes + 1,) values from before pass 1 on, NaN once diverged."""
        return self.values[:, list(statistic).index(meter)]


def travel(
    config: Config,
    tokens: Iterable[str],
    machine: Machine | None = None,
    depth: Depth | None = None,
    cells_to_play: int = 0,
    compare_precision: bool = False,
) -> Journey:
    """Run depth's passes, cached: statistics, attention of 3 or those to play; MemoryLimitError.

    Args:
        config: Settings of the block.
        tokens: The text, without padding.
        machine: Device and precision.
        depth: How many passes, and through which blocks; None for the defaults of Depth.
        cells_to_play: Attention weights of one pass, over all heads, to record the passes of
            Depth.passes_to_play instead of three; 0 to record three.
        compare_precision: Whether to run a float32 model in float64, too, and find the pass from
            which on they differ (Journey.rounded).

    Raises:
        MemoryLimitError: It would need more than ABLATION_MAX_MB; nothing is allocated yet.
    """
    machine = machine or Machine()
    check_rounding = compare_precision and machine.dtype == "float32"
    return _run(
        config.replace(n_layers=1),
        tuple(tokens),
        machine,
        depth or Depth(),
        cells_to_play,
        check_rounding,
    )


def table(journeys: dict[str, Journey]) -> pd.DataFrame:
    """Tabulate all journeys' statistics: variant, pass (0: input), meter, value."""
    rows = [
        (name, layer, meter, value)
        for name, journey in journeys.items()
        for layer, row in enumerate(journey.values.tolist())
        for meter, value in zip(statistic, row)
    ]
    return pd.DataFrame(rows, columns=["variant", "pass", "meter", "value"])


def _bytes(journey: Journey) -> int:
    """Return the size of a journey in bytes, for the cache."""
    tensors = [*journey.patterns.values(), *journey.alike.values()]
    return journey.values.nbytes + 4 * sum(x.numel() for x in tensors)


@cached(megabytes=max_mb() / 32, size=_bytes)
def _run(
    config: Config,
    tokens: tuple[str, ...],
    machine: Machine,
    depth: Depth,
    cells_to_play: int,
    check_rounding: bool,
) -> Journey:
    """Run a text through depth's passes (cached); find .rounded if asked and memory allows."""
    built, order = depth.plan(config)
    length = len(tokens) + config.padding
    needed = run_bytes(built, length, len(vocabulary(list(tokens))), machine.dtype)
    with room_for(needed, "This model and text"), torch.inference_mode():
        model, ids, real = prepare_model(built, tokens, machine)
        passes = set(
            depth.passes_to_play(cells_to_play) if cells_to_play else depth.shown_passes.values()
        )
        if (
            not check_rounding or 3 * needed > max_mb() << 20
        ):  # weights and streams of float64 take twice as much again
            return journey(model, ids, real, config, tokens, order, passes)
        streams: list[torch.Tensor] = []
        result = journey(model, ids, real, config, tokens, order, passes, streams)
        return replace(result, rounded=rounding_decides_from(streams, model, ids, real, order))


def journey(
    model: Transformer,
    ids: torch.Tensor,
    real: torch.Tensor | None,
    config: Config,
    tokens: tuple[str, ...],
    order: list[int],
    passes: set[int],
    streams: list[torch.Tensor] | None = None,
) -> Journey:
    """Run blocks in `order`; measure streams, add them to `streams`; keep attention of `passes`.

    Args:
        model: The model, of one block or of several.
        ids: Token ids, with padding: int (1, T).
        real: Which of them are not padding: bool (1, T), or None for all.
        config: Settings of the journey, with one layer.
        tokens: The text, without padding.
        order: Index of the block of each pass.
        passes: Passes whose attention and token similarity are recorded, from 1.
        streams: A list to which every stream is appended.
    """
    watch = _Watch(
        len(tokens), passes, step_counter(len(order) + 1, count(len(order), "pass", "passes"))
    )
    with trace(watch, sites=[] if streams is None else ["resid_pre"]) as recorded:
        end = model.run_blocks(ids, real, order)
    watch.record_stream(end)
    if streams is not None:
        streams += [x[0, : len(tokens)] for x in (*recorded["resid_pre"], end)]
    values, diverged = until_diverged(*watch.finish())
    return Journey(
        config=config,
        tokens=(*tokens, *[PAD] * config.padding),
        n_real=len(tokens),
        values=values,
        diverged=diverged,
        allowed=square_mask(model.attention_mask(ids, real), ids.shape[1]),
        layers=tuple(order),
        # attention is made from what enters a pass, likeness from what leaves it
        patterns={
            index: x for index, x in watch.patterns.items() if diverged is None or index <= diverged
        },
        alike={
            index: x for index, x in watch.alike.items() if diverged is None or index < diverged
        },
    )


def rounding_decides_from(
    streams: list[torch.Tensor],
    model: Transformer,
    ids: torch.Tensor,
    real: torch.Tensor | None,
    order: list[int],
) -> int | None:
    """Make the model float64; return the first pass (0: input) where float32 is off by ROUNDING.

    None if there is none. Off: by the norm of the difference, relative to the float64 stream.

    Args:
        streams: Streams of the float32 model, before pass 1 and after each pass.
        model: The same model; it stays in float64.
        ids: Token ids, with padding: int (1, T).
        real: Which of them are not padding: bool (1, T), or None for all.
        order: Index of the block of each pass.
    """
    # Where a block multiplies differences, those of rounding grow from pass to pass.
    if not ids.is_cpu and not ids.is_cuda:  # Apple's GPUs have no float64
        model = model.cpu()
        ids = ids.cpu()
        real = real if real is None else real.cpu()
    model.double()
    with trace(sites=["resid_pre"]) as recorded:
        end = model.run_blocks(ids, real, order)
    theirs = torch.cat([*recorded["resid_pre"], end])[:, : len(streams[0])]
    ours = torch.stack(streams).to(theirs)
    off = (ours - theirs).flatten(1).norm(dim=1) > ROUNDING * theirs.flatten(1).norm(dim=1)
    finite = ours.isfinite().all(2).all(1) & theirs.isfinite().all(2).all(1)
    passes = (off & finite).nonzero()[:, 0].tolist()
    return int(passes[0]) if passes else None


def until_diverged(values: np.ndarray, finite: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Return values, NaN from the first non-finite pass on, and that pass (0: input) or None.

    A stream can come back from infinity, for instance because ReLU makes 0 of −∞; its statistics
    then mean nothing.
    """
    if finite.all():
        return values, None
    diverged = int(finite.argmin())
    return np.where(np.arange(len(values))[:, None] < diverged, values, np.nan), diverged


class _Watch:
    """Edit for trace() that changes nothing: collects and measures streams and attention.

    step: is called after each stream.
    """

    def __init__(self, n_real: int, passes: set[int], step: Callable[[], None]) -> None:
        self.n_real = n_real
        self.shown = passes
        self.step = step
        self.patterns: dict[int, torch.Tensor] = {}
        self.alike: dict[int, torch.Tensor] = {}
        self._streams: list[torch.Tensor] = []
        self._attention: dict[int, torch.Tensor] = {}
        self._waiting = 0
        self._passes = 0
        self._values: list[np.ndarray] = []
        self._finite: list[np.ndarray] = []

    def __call__(self, site: str, layer: int, x: torch.Tensor) -> None:
        """Record a stream that enters a block, or an attention pattern; leave both as they are."""
        if site == "resid_pre":
            self.record_stream(x)
        elif site == "pattern":
            self._attention[len(self._streams)] = x[0]  # belongs to the stream that comes next
            self._waiting += x.numel()
            if layer + 1 in self.shown:
                self.patterns[layer + 1] = x[0].float().cpu()

    def record_stream(self, x: torch.Tensor) -> None:
        """Store a stream (1, T, D) less padding, note similarities; measure if many wait; step."""
        x = x[0, : self.n_real]
        self._streams.append(x)
        if self._passes in self.shown:
            self.alike[self._passes] = cosines(x.cpu())
        self._passes += 1
        self._waiting += x.numel()
        if self._waiting > CHUNK:
            self._measure()
        self.step()

    def _measure(self) -> None:
        """Compute the statistics of the waiting streams, store them and drop the streams."""
        entropy = torch.full((len(self._streams),), torch.nan)
        if self._attention:
            indices = list(self._attention)
            entropy[indices] = (
                attention_entropy(_side_by_side(list(self._attention.values())), self.n_real)
                .float()
                .cpu()
            )
        streams = _side_by_side(self._streams)
        measured = Streams(streams, entropy.to(streams.device))
        self._values.append(measured.table.numpy())
        self._finite.append(measured.finite.cpu().numpy())
        self._streams = []
        self._attention = {}
        self._waiting = 0

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Measure what waits; return values (passes + 1, statistics) and finite (passes + 1,)."""
        if self._streams:
            self._measure()
        return np.concatenate(self._values), np.concatenate(self._finite)


def _side_by_side(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Stack tensors along a new first axis, without a copy for a single one."""
    return torch.stack(tensors) if len(tensors) > 1 else tensors[0][None]
