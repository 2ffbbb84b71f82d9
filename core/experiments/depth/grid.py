"""The whole grid: every combination of the chosen parts, pass after pass, in one run."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from core.experiments.depth.axes import AXES, Axes, in_words
from core.experiments.depth.depth import CHUNK, Depth, until_diverged
from core.experiments.depth.repeats import stream_of
from core.experiments.forward import numbered
from core.measure.stream_statistics import SAME, Streams, statistic
from core.model.batched_variants import Many, families, numbers
from core.model.config import Config
from core.model.cost import BYTES, activations, run_bytes
from core.model.text import vocabulary
from core.model.variants import apply
from core.settings.cache import cached
from core.settings.device import Machine
from core.settings.memory import max_mb, room_for
from core.settings.progress import step_counter
from core.settings.setting import ConfigError
from core.settings.wording import count


@dataclass(frozen=True)
class Grid:
    """Every variant, pass after pass."""

    axes: dict[str, tuple[str, ...]]  # the axes that vary or are set, with their entries
    entries: list[dict[str, str]]  # per variant: axis -> entry
    changes: list[dict[str, Any]]  # per variant: what it changes in the baseline
    configs: list[Config]  # as they were built: n_layers as deep as the passes ask for
    values: np.ndarray  # (variants, passes + 1, statistics); NaN from where one diverged on
    diverged: list[int | None]
    left_out: list[str]  # why some combinations cannot be
    repeats: int = 0  # combinations that are the same model as an earlier one
    reasons: tuple[str, ...] = ()  # why they are the same, in sentences

    def name(self, at: int) -> str:
        """One variant in words."""
        return in_words(self.entries[at], self.entries[at].values())

    def ends(self, meter: str) -> np.ndarray:
        """A statistic after the last pass: (variants,); NaN where one diverged."""
        return self.values[:, -1, list(statistic).index(meter)]

    def explained(self, meter: str) -> dict[str, float]:
        """How much of the variance of a statistic after the last pass each axis explains by itself (eta squared).

        The variance between the means of its entries, divided by the whole; of the logarithm, where the statistic may
        grow by powers of ten. Variants without a number are left out.
        """
        values = self.ends(meter)
        if statistic[meter].log:
            values = np.log10(np.maximum(values, 1e-30))
        known = np.isfinite(values)
        if self.alike(meter):
            return {}
        spread, shares = values[known].var(), {}
        for axis in self.axes:
            groups = [known & np.array([entry[axis] == name for entry in self.entries]) for name in self.axes[axis]]
            means = [
                (values[group].mean() - values[known].mean()) ** 2 * group.sum() for group in groups if group.any()
            ]
            shares[axis] = min(1.0, float(sum(means) / known.sum() / spread))
        return shares

    def alike(self, meter: str) -> bool:
        """Whether all variants end with the same number, but for float32's rounding."""
        values, size = self.ends(meter), self.ends("rms" if meter == "mean" else meter)
        known = np.isfinite(values)
        return not known.any() or np.ptp(values[known]) <= SAME * np.abs(size[known]).max()

    def shared_by_diverged(self) -> tuple[str, str] | None:
        """The axis and entry that all diverged variants have and no other has, if there is one."""
        lost = [each is not None for each in self.diverged]
        for axis, names in self.axes.items():
            for name in names:
                if any(lost) and lost == [entry[axis] == name for entry in self.entries]:
                    return axis, name
        return None


def grid(
    baseline: Config, axes: Axes, tokens: Iterable[str], machine: Machine | None = None, depth: Depth | None = None
) -> Grid:
    """Every combination of the chosen entries, with all other settings as in the baseline.

    Raises:
        MemoryLimit: It would need more than ABLATION_MAX_MB; nothing is allocated yet.
    """
    return _run(baseline.replace(n_layers=1), axes, tuple(tokens), machine or Machine(), depth or Depth())


def _kept_bytes(grid: Grid) -> int:
    return grid.values.nbytes + 2000 * len(grid.configs)


@cached(megabytes=max_mb() / 64, size=_kept_bytes)
def _run(baseline: Config, axes: Axes, tokens: tuple[str, ...], machine: Machine, depth: Depth) -> Grid:
    found = combine(baseline, axes, tokens, depth)
    if not found.configs:
        raise ConfigError("grid", f"No combination of the grid is possible here: {found.left_out[0]}")
    values, diverged = travel_together(found.configs, tokens, machine, depth.plan(baseline)[1])
    return Grid(
        {axis: entries for axis, entries in axes.chosen.items() if entries}, found.entries, found.changes, found.configs, values, diverged,
        found.left_out, len(found.repeats), tuple(dict.fromkeys(found.reasons)),
    )  # fmt: skip


@dataclass(frozen=True)
class Combinations:
    """The variants of a grid, each model once, and what is left out of it."""

    entries: list[dict[str, str]]
    changes: list[dict[str, Any]]
    configs: list[Config]
    left_out: list[str]  # why some cannot be, each reason once
    repeats: list[int]  # numbers, from 0, of the combinations that are the same model as an earlier one
    reasons: list[str]


def combine(baseline: Config, axes: Axes, tokens: Sequence[str], depth: Depth) -> Combinations:
    """Return every combination of the chosen entries that can be, and of those that are the same model the first."""
    chosen = {axis: entries for axis, entries in axes.chosen.items() if entries}
    built, order = depth.plan(baseline)
    found = Combinations([], [], [], [], [], [])
    seen: dict[Config, tuple[str, ...]] = {}  # settings of the stream -> why the first model with it has these
    for number, combination in enumerate(itertools.product(*chosen.values())):
        named = dict(zip(chosen, combination))
        change = {name: v for axis, entry in named.items() for name, v in AXES[axis].entries[entry].items()}
        try:
            config = apply(change, built)
        except ConfigError as error:
            if str(error) not in found.left_out:
                found.left_out.append(str(error))
            continue
        stream, reasons = stream_of(config, len(tokens) + built.padding, len(order))
        if stream in seen:
            found.repeats.append(number)
            # What both have in common is not why they are the same, unless there is nothing else.
            found.reasons.extend([each for each in reasons if each not in seen[stream]] or reasons)
            continue
        seen[stream] = reasons
        found.entries.append(named)
        found.changes.append(change)
        found.configs.append(config)
    return found


def travel_together(
    configs: list[Config], tokens: Sequence[str], machine: Machine, order: list[int]
) -> tuple[np.ndarray, list[int | None]]:
    """What travel() measures, for many configs at once, through their blocks in this order.

    -> (values (V, passes + 1, statistics), the pass at which each diverged)
    """
    built = [stream_of(config, len(tokens) + config.padding, len(order))[0] for config in configs]
    different = list(dict.fromkeys(built))
    results: dict[Config, tuple[np.ndarray, int | None]] = {}
    kinds = families(different)
    what = f"{len(order)} passes of {count(len(different), 'variant')}"
    step = step_counter(len(kinds) * (len(order) + 1), what)
    for members in kinds:
        family = [different[at] for at in members]
        with room_for(_bytes(family, tokens, machine), "This grid"), torch.inference_mode():
            values, finite = _measure(family, tokens, machine, order, step)
        results |= {config: until_diverged(v, f) for config, v, f in zip(family, values, finite)}
    return np.stack([results[config][0] for config in built]), [results[config][1] for config in built]


def _bytes(family: list[Config], tokens: Sequence[str], machine: Machine) -> int:
    """The weights of the largest and of all parts that differ, what one block of each keeps, and what waits to be skipped to."""
    length, known = len(tokens) + family[0].padding, len(vocabulary(list(tokens)))
    kept = sum(sum(activations(config, length, machine.dtype).values()) // config.n_layers for config in family)
    waiting = 4 * length * family[0].d_model * (family[0].n_layers // 2 + 1) * sum(c.skips for c in family)
    largest = max(run_bytes(config.replace(n_layers=1), 1, known, machine.dtype) for config in family)
    weights = numbers(family) * (4 + (machine.dtype != "float32") * BYTES[machine.dtype])
    return int(largest + 1.2 * weights) + kept + waiting


def _measure(
    family: list[Config], tokens: Sequence[str], machine: Machine, order: list[int], step: Callable[[], None]
) -> tuple[np.ndarray, np.ndarray]:
    """-> (values (V, passes + 1, statistics), finite (V, passes + 1))"""
    known, ids, real = numbered(tokens, family[0].padding, machine.torch_device)
    values, finite, size = [], [], 0
    waiting: list[tuple[torch.Tensor, torch.Tensor]] = []

    def measure() -> None:
        streams, entropies = zip(*waiting)
        all_streams = Streams(torch.cat(streams), torch.cat(entropies))
        values.append(all_streams.table.numpy().reshape(len(waiting), len(family), -1))
        finite.append(all_streams.finite.cpu().numpy().reshape(len(waiting), len(family)))
        waiting.clear()

    for x, entropy in Many(family, known, ids, real, machine).streams(order):
        waiting.append((x[:, : len(tokens)], entropy))
        size += x.numel()
        if size > CHUNK:
            measure()
            size = 0
        step()
    if waiting:
        measure()
    return np.concatenate(values).swapaxes(0, 1), np.concatenate(finite).T
