"""Seconds and memory of a training, estimated from its settings."""

import functools
import time
from collections.abc import Sequence
from dataclasses import replace

from core.model import cost
from core.model.config import Config
from core.model.parts.activation import count_inputs
from core.model.parts.init import generator
from core.settings.environment import read_whole_number
from core.settings.memory import check_memory
from core.settings.wording import count
from core.tasks import task
from core.train.muon import STEPS
from core.train.run import SLICE, State
from core.train.settings import Training

DEFAULT_MAX_SECONDS = 600

# Seconds on one core of an Intel Xeon (`python -m benchmarks.training` prints how far they are off
# where it runs).
# calls of kernels in a step; attention makes about twice as many as a feed-forward network
PER_SUBLAYER = 3.6e-4
PER_OPERATION = 1.07e-11
PER_PARAMETER = 0.9e-9  # the optimiser's work
PER_ACTIVATION = 2.1e-9  # written and read once on the way forward and once on the way back

# Copies of the weights: weights, gradients and AdamW's two averages; and weights and averages in
# the state that is read and in the one that is written, and in the bytes of both.
COPIES = 4 + 4 * 3
# Share of a step that is the forward pass, which is all that measuring accuracy takes.
FORWARD = 0.3


class TimeLimitError(ValueError):
    """Trainings that would take longer than they may; the message gives both figures."""


def max_seconds() -> int:
    """Return the time limit of one comparison in seconds: ABLATION_MAX_SECONDS, or else 600."""
    return read_whole_number("ABLATION_MAX_SECONDS", DEFAULT_MAX_SECONDS)


def estimate_seconds(config: Config, training: Training) -> float:
    """Estimate the seconds of a training on one core. GPUs are faster, which is not estimated."""
    learnt = task[training.task]
    step = step_seconds(config, training) + training.batch * _seconds_per_sequence(training.task)
    rows = 2 + training.steps / training.every
    size = min(
        SLICE, learnt.test
    )  # sequences at once when accuracy is measured, whatever the batch
    measuring = FORWARD * step_seconds(config, replace(training, batch=size)) * learnt.test / size
    return training.steps * step + rows * measuring


def step_seconds(config: Config, training: Training) -> float:
    """Estimate the seconds of one training step on one core; drawing its data does not count."""
    words = len(task[training.task].vocabulary)
    length = training.length
    batch = training.batch
    operations = 3 * batch * cost.forward_flops(config, length, words)
    numbers = batch * (sum(cost.activation_bytes(config, length).values()) / 4 + 2 * length * words)
    if training.optimiser == "muon":
        operations += _count_muon_operations(config)
    return (
        PER_SUBLAYER * config.n_layers * (2 * config.attention + config.ffn)
        + PER_OPERATION * operations
        + PER_PARAMETER * sum(cost.parameters(config, words).values())
        + PER_ACTIVATION * numbers
    )


def _count_muon_operations(config: Config) -> int:
    """Count Muon's operations in a step: STEPS times two m·m·n products and one m³, 2 a term."""
    q, kv = (heads * config.d_head for heads in (config.n_heads, config.n_kv_heads))
    widths = config.attention * [q, q, kv, kv, *[q] * config.gate] + config.ffn * [config.d_ff] * (
        1 + count_inputs(config.part("activation"))
    )
    sides = [sorted((width, config.d_model)) for width in widths]
    return config.n_blocks * STEPS * sum(4 * m * m * n + 2 * m**3 for m, n in sides)


@functools.cache
def _seconds_per_sequence(name: str) -> float:
    """Time a task's drawing, once (cached): seconds per sequence, best of three times sixteen."""
    draws = []
    for _ in range(3):
        begin = time.perf_counter()
        task[name](generator(0, "time"), 16)
        draws.append(time.perf_counter() - begin)
    return min(draws) / 16


def estimate_memory(config: Config, training: Training) -> int:
    """Estimate a worker's memory in bytes for a training: weights in COPIES, activations twice.

    Measuring accuracy keeps no gradients, so only one block's activations at a time.
    """
    return _estimate_memory(config, training.task, training.length, training.batch)


@functools.lru_cache(
    64
)  # a study may have thousands of trainings that differ in a learning rate alone
def _estimate_memory(config: Config, task_name: str, length: int, batch: int) -> int:
    """Estimate a worker's memory in bytes for a training with this task, length and batch."""
    learnt = task[task_name]
    words = len(learnt.vocabulary)
    weights = COPIES * 4 * sum(cost.parameters(config, words).values())
    learning, measuring = (
        sum(cost.activation_bytes(variant, length).values())
        + cost.bytes_for_backward(variant, length)
        + 3 * 4 * length * words
        for variant in (config, config.replace(n_layers=1))
    )
    return weights + 2 * max(batch * learning, min(SLICE, learnt.test) * measuring)


def stored_bytes(config: Config, training: Training) -> int:
    """Return the bytes of a stored training: weights and two moments of the optimiser."""
    return 3 * 4 * sum(cost.parameters(config, len(task[training.task].vocabulary)).values())


def estimate_seconds_left(states: Sequence[State], workers: float, pace: float = 1.0) -> float:
    """Estimate seconds until trainings end, done ones 0, on so many workers, times `pace`.

    Args:
        states: Trainings, from where they are.
        workers: Average number of workers that train them.
        pace: Seconds here per second of the estimate.
    """
    going = [state for state in states if not state.done]
    alone = [
        estimate_seconds(state.config, state.training) * (1 - state.step / state.training.steps)
        for state in going
    ]
    return pace * max(sum(alone) / workers, max(alone, default=0))


def check_budget(
    states: list[State], workers: int, pace: float = 1.0, active: Sequence[State] = ()
) -> float:
    """Estimate the seconds of `states`; MemoryLimitError (`active` count too), TimeLimitError.

    Args:
        states: Trainings to start.
        workers: Number of workers.
        pace: Seconds here per second of the estimate.
        active: Trainings of other users, which are kept as long as their pages are open.

    Raises:
        MemoryLimitError: They would need more memory than is allowed.
        TimeLimitError: They would take longer than is allowed.
    """
    largest = max((estimate_memory(state.config, state.training) for state in states), default=0)
    check_memory(
        largest, "One of these runs", "Choose a smaller batch, length, d_model, d_ff or n_layers."
    )
    # Equal trainings are stored once.
    trainings = {(state.config, state.training) for state in [*states, *active]}
    others = ", with those of other users," if active else ""
    check_memory(
        sum(stored_bytes(config, training) for config, training in trainings),
        f"The weights and optimiser states of {count(len(states), 'run')}{others}",
        "Choose fewer seeds or variants, or a smaller model.",
    )
    time_needed = estimate_seconds_left(states, workers, pace)
    if time_needed > max_seconds():
        needed = format_duration(time_needed)
        allowed = format_duration(max_seconds())
        raise TimeLimitError(
            f"{count(len(states), 'run')} would take about {needed} here on"
            f" {count(workers, 'worker')}; at most {allowed} are allowed (set by"
            " ABLATION_MAX_SECONDS). Choose fewer steps, seeds or variants, or a smaller model or"
            " batch."
        )
    return time_needed


def format_duration(seconds: float) -> str:
    """Write seconds for people: "12 s" below 100 s, "3 min", "2.5 h" from 6,000 s."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
