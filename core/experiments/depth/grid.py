"""Grid: every combination of the chosen parts, pass after pass, in one run."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from core.experiments.depth.axes import AXES, Axes, name_entries
from core.experiments.depth.depth import CHUNK, Depth, until_diverged
from core.experiments.forward import encode_tokens
from core.measure.stream_statistics import SAME, Streams, statistic
from core.model.batched_variants import BatchedVariants, count_layer_parameters, group_into_batches
from core.model.config import Config
from core.model.cost import BYTES, activation_bytes, run_bytes
from core.model.parts import MENUS
from core.model.parts.position import acts_in_attention
from core.model.text import vocabulary
from core.model.variants import apply
from core.settings.cache import cached
from core.settings.device import Machine
from core.settings.memory import max_mb, room_for
from core.settings.progress import step_counter
from core.settings.setting import ConfigError
from core.settings.wording import count

# Of attention alone, each with a value that is possible whatever else is set. A position that is
# added to the tokens stays.
OF_ATTENTION = {
    "n_heads": 1,
    "n_kv_heads": 1,
    "d_head": 1,
    "mask": "none",
    "scale": True,
    "qk_norm": False,
    "qk_norm_joint": False,
    "softmax": "usual",
    "gate": False,
    "value_residual": False,
    "score_cap": 0.0,
    "window": 0,
    "global_first": False,
    "local_rope_base": 0.0,
    "residual_attention": True,
}
OF_FFN = {"d_ff": 1, "activation": "identity", "matched": False, "residual_ffn": True}


class _Simplified:
    """Config with usual values for settings that have no effect, and the reasons in sentences."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.reasons: list[str] = []

    def ignore(self, sentence: str, **usual: Any) -> None:
        """Set fields to their usual values; add the sentence once if any of them changes."""
        changes = {
            name: value for name, value in usual.items() if getattr(self.config, name) != value
        }
        if changes:
            self.config = self.config.replace(**changes)
            self.reasons.append(sentence)


def simplify_config(config: Config, length: int, passes: int) -> tuple[Config, tuple[str, ...]]:
    """Reset settings without effect on the stream to usual values; return config and reasons.

    Reasons are sentences. Configs of equal streams become equal.

    Args:
        config: Settings of a model.
        length: Tokens of the text, padding included.
        passes: Number of blocks that the stream passes through.
    """
    simplified = _Simplified(config)
    _ignore_parts_of_sublayers(simplified)
    _ignore_positions(simplified, length)
    if simplified.config.d_head == 1:
        simplified.ignore("Scaling has no effect with heads of width 1.", scale=True)
    if simplified.config.n_layers == 1:
        simplified.ignore("U-Net skips need more than one layer.", skips=False)
    if passes == 1:
        sentence = "Value residual has no effect with a single pass."
        simplified.ignore(sentence, value_residual=False)
    # These only change how tokens are read from the stream.
    simplified.ignore("", tied=False, logit_cap=0.0)
    # The gains of a model that was not trained are 1.
    simplified.ignore("", norm_gain=True)
    return simplified.config, tuple(filter(None, simplified.reasons))


def _ignore_parts_of_sublayers(simplified: _Simplified) -> None:
    """Reset, in place, settings of norms, attention, FFN and residuals that have no effect."""
    config = simplified.config
    if not (config.attention or config.ffn):
        sentence = "Without sub-layers, norm and residual scaling have no effect."
        simplified.ignore(sentence, norm="none", residual_scale="none")
    if not simplified.config.part("norm").normalises:
        first = next(iter(MENUS["placement"]))
        simplified.ignore("Norm placement has no effect without a norm.", placement=first)
        simplified.ignore("A norm on embeddings needs a norm.", embedding_norm=False)
    if not config.qk_norm or config.n_heads == 1:
        sentence = "QK-norm over all heads needs QK-norm and several heads."
        simplified.ignore(sentence, qk_norm_joint=False)
    if not config.attention:
        position = {"position": "none"} if acts_in_attention(config.part("position")) else {}
        sentence = "Without attention, its settings have no effect."
        simplified.ignore(sentence, **OF_ATTENTION, **position)
    if not config.ffn:
        simplified.ignore("Without an FFN, its settings have no effect.", **OF_FFN)
    if not (config.attention and config.ffn):
        simplified.ignore("Parallel sub-layers need both attention and FFN.", parallel=False)

    config = simplified.config
    replaces_attention = (
        config.parallel and config.attention and config.ffn and not config.residual_ffn
    )
    if replaces_attention:
        sentence = (
            "A parallel FFN without a residual replaces the output of attention, so the attention "
            "residual has no effect."
        )
        simplified.ignore(sentence, residual_attention=True)

    config = simplified.config
    adds = config.residual_scale != "none" or config.ffn and config.residual_ffn
    adds = adds or config.attention and config.residual_attention and not replaces_attention
    if config.placement == "post" and not adds:
        # A norm after the sum is a norm on the output where nothing is added to it.
        sentence = "Without residuals, post-norm equals output norm."
        simplified.ignore(sentence, placement="output")


def _ignore_positions(simplified: _Simplified, length: int) -> None:
    """Reset, in place, settings of windows and positions without effect on such a text."""
    if simplified.config.window >= length:
        simplified.ignore("A window longer than the text has no effect.", window=0)
    config = simplified.config
    if not any(map(config.window_in, range(config.n_blocks))):
        simplified.ignore("Where all layers are global, a window has no effect.", window=0)
        config = simplified.config
    if not config.window or all(map(config.window_in, range(config.n_blocks))):
        sentence = (
            "Global layers have no effect without a window, or in a stack too shallow to contain"
            " one."
        )
        simplified.ignore(sentence, global_every=0, global_first=False)
    if config.global_every == 0:
        simplified.ignore("", global_first=False)
    if not acts_in_attention(config.part("position")) or config.nope_every > config.n_blocks:
        sentence = (
            "NoPE layers have no effect without position encoding in attention, or in a stack too"
            " shallow to contain one."
        )
        simplified.ignore(sentence, nope_every=0)
    if not config.part("position").turns:
        sentence = "Without RoPE, its settings have no effect."
        simplified.ignore(sentence, rope_share=1.0, rope_base=10000.0, local_rope_base=0.0)
    config = simplified.config
    if not config.window or config.local_rope_base == config.rope_base:
        sentence = "A RoPE base for layers with a window needs a window and another base."
        simplified.ignore(sentence, local_rope_base=0.0)
    elif config.local_rope_base and not config.global_every:
        base = config.local_rope_base  # all layers have a window, so this one is everybody's
        simplified.ignore("", rope_base=base, local_rope_base=0.0)


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

    def name(self, index: int) -> str:
        """Name a variant by its entries, without the placement of a norm that it lacks."""
        entries = dict(self.entries[index])
        if entries.get("norm") == "none":
            entries.pop("placement", None)
        return name_entries(entries, entries.values())

    def final_values(self, meter: str) -> np.ndarray:
        """Return a statistic after the last pass: (variants,); NaN for those that diverged."""
        return self.values[:, -1, list(statistic).index(meter)]

    def explained(self, meter: str) -> dict[str, float]:
        """Return {axis: share of a final statistic's variance that it explains}; {} if all equal.

        Eta squared: the variance between the means of its entries, divided by the whole. It is of
        the logarithm, where the statistic may grow by powers of ten. Variants without a number are
        left out.
        """
        values = self.final_values(meter)
        if statistic[meter].log:
            values = np.log10(np.maximum(values, 1e-30))
        finite = np.isfinite(values)
        if self.ends_equal(meter):
            return {}
        spread = values[finite].var()
        shares = {}
        for axis in self.axes:
            groups = [
                finite & np.array([entry[axis] == name for entry in self.entries])
                for name in self.axes[axis]
            ]
            means = [
                (values[group].mean() - values[finite].mean()) ** 2 * group.sum()
                for group in groups
                if group.any()
            ]
            shares[axis] = min(1.0, float(sum(means) / finite.sum() / spread))
        return shares

    def ends_equal(self, meter: str) -> bool:
        """Return whether finite variants end equal, up to float32 rounding; True if none is."""
        values = self.final_values(meter)
        size = self.final_values("rms" if meter == "mean" else meter)
        finite = np.isfinite(values)
        return not finite.any() or np.ptp(values[finite]) <= SAME * np.abs(size[finite]).max()

    def shared_by_diverged(self) -> tuple[str, str] | None:
        """Return the keys (axis, entry) that all diverged variants and no others have, or None."""
        lost = [step is not None for step in self.diverged]
        for axis, names in self.axes.items():
            for name in names:
                if any(lost) and lost == [entry[axis] == name for entry in self.entries]:
                    return axis, name
        return None


def grid(
    baseline: Config,
    axes: Axes,
    tokens: Iterable[str],
    machine: Machine | None = None,
    depth: Depth | None = None,
) -> Grid:
    """Run valid, distinct combinations, cached; ConfigError if none is valid; MemoryLimitError.

    Raises:
        MemoryLimitError: It would need more than ABLATION_MAX_MB; nothing is allocated yet.
    """
    return _run(
        baseline.replace(n_layers=1), axes, tuple(tokens), machine or Machine(), depth or Depth()
    )


@cached(megabytes=max_mb() / 64, size=lambda grid: grid.values.nbytes + 2000 * len(grid.configs))
def _run(
    baseline: Config, axes: Axes, tokens: tuple[str, ...], machine: Machine, depth: Depth
) -> Grid:
    """Run the grid without invalid and equal combinations, cached; ConfigError if none is valid."""
    chosen = {axis: entries for axis, entries in axes.chosen.items() if entries}
    built, order = depth.plan(baseline)
    reason_of: dict[
        Config, tuple[str, ...]
    ] = {}  # settings of the stream -> why the first model has these
    all_entries = []
    all_changes = []
    configs = []
    left_out: dict[str, None] = {}
    reasons: dict[str, None] = {}
    repeats = 0
    for combination in itertools.product(*chosen.values()):
        entries = dict(zip(chosen, combination))
        changes: dict[str, Any] = {}
        for axis, entry in entries.items():
            changes |= AXES[axis].entries[entry]
        try:
            config = apply(changes, built)
        except ConfigError as error:
            left_out[str(error)] = None
            continue
        stream, why = simplify_config(config, len(tokens) + built.padding, len(order))
        if stream in reason_of:
            repeats += 1
            # What both have in common is not why they are the same, unless there is nothing else.
            reasons |= dict.fromkeys(
                [reason for reason in why if reason not in reason_of[stream]] or why
            )
            continue
        reason_of[stream] = why
        all_entries.append(entries)
        all_changes.append(changes)
        configs.append(config)
    if not configs:
        raise ConfigError("grid", f"No combination in this grid is valid: {next(iter(left_out))}")
    values, diverged = travel_many(configs, tokens, machine, order)
    return Grid(
        chosen,
        all_entries,
        all_changes,
        configs,
        values,
        diverged,
        list(left_out),
        repeats,
        tuple(reasons),
    )


def travel_many(
    configs: list[Config], tokens: Sequence[str], machine: Machine, order: list[int]
) -> tuple[np.ndarray, list[int | None]]:
    """Measure many streams as travel(): (V, passes + 1, statistics), pass that diverged or None.

    Values are NaN from the pass on at which a stream diverged (0: the input). order: block of each
    pass.
    """
    built = [
        simplify_config(config, len(tokens) + config.padding, len(order))[0] for config in configs
    ]
    different = list(dict.fromkeys(built))
    results: dict[Config, tuple[np.ndarray, int | None]] = {}
    kinds = group_into_batches(different)
    subject = f"{len(order)} passes of {count(len(different), 'variant')}"
    step = step_counter(len(kinds) * (len(order) + 1), subject)
    for members in kinds:
        family = [different[index] for index in members]
        with room_for(_bytes(family, tokens, machine), "This grid"), torch.inference_mode():
            values, finite = _measure(family, tokens, machine, order, step)
        results |= {config: until_diverged(v, f) for config, v, f in zip(family, values, finite)}
    return np.stack([results[config][0] for config in built]), [
        results[config][1] for config in built
    ]


def _bytes(family: list[Config], tokens: Sequence[str], machine: Machine) -> int:
    """Return the bytes of weights, one block's activations and waiting skips of one batch."""
    length = len(tokens) + family[0].padding
    vocabulary_size = len(vocabulary(list(tokens)))
    recorded = sum(
        sum(activation_bytes(config, length, machine.dtype).values()) // config.n_layers
        for config in family
    )
    waiting = (
        4
        * length
        * family[0].d_model
        * (family[0].n_layers // 2 + 1)
        * sum(c.skips for c in family)
    )
    largest = max(
        run_bytes(config.replace(n_layers=1), 1, vocabulary_size, machine.dtype)
        for config in family
    )
    weights = count_layer_parameters(family) * (
        4 + (machine.dtype != "float32") * BYTES[machine.dtype]
    )
    return int(largest + 1.2 * weights) + recorded + waiting


def _measure(
    family: list[Config],
    tokens: Sequence[str],
    machine: Machine,
    order: list[int],
    step: Callable[[], None],
) -> tuple[np.ndarray, np.ndarray]:
    """Run one batch; return values (V, passes + 1, statistics) and finite (V, passes + 1)."""
    words, ids, real = encode_tokens(tokens, family[0].padding, machine.torch_device)
    values = []
    finite = []
    size = 0
    waiting: list[tuple[torch.Tensor, torch.Tensor]] = []

    def measure() -> None:
        streams, entropies = zip(*waiting)
        all_streams = Streams(torch.cat(streams), torch.cat(entropies))
        values.append(all_streams.table.numpy().reshape(len(waiting), len(family), -1))
        finite.append(all_streams.finite.cpu().numpy().reshape(len(waiting), len(family)))
        waiting.clear()

    for x, entropy in BatchedVariants(family, words, ids, real, machine).run_layers(order):
        waiting.append((x[:, : len(tokens)], entropy))
        size += x.numel()
        if size > CHUNK:
            measure()
            size = 0
        step()
    if waiting:
        measure()
    return np.concatenate(values).swapaxes(0, 1), np.concatenate(finite).T
