"""Training as a stream of rows; the caller owns progress, stopping and storage.

The same (config, training, seed) gives the same rows to the last bit, however the run is cut into
chunks and whatever else trains in this process: data, dropout and weights have random streams of
their own, and the state holds all of them.
"""

import copy
import functools
import math
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from core.model.config import Config
from core.model.layers import enable_dropout
from core.model.parts.init import generator
from core.model.transformer import Transformer
from core.settings.device import Machine, in_float64
from core.settings.setting import ConfigError
from core.tasks import IGNORE, task
from core.train.muon import matrix_heights
from core.train.settings import Training, initial_order, optimiser

SLICE = 64  # sequences at once when accuracy is measured


def total_norm(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return the Euclidean norm of all tensors together, 0-d; float64 where float32 overflows."""
    gradients = list(tensors)
    norm = torch.nn.utils.get_total_norm(gradients)
    if not norm.isfinite():  # squares beyond 3.4e38: numbers from 1.8e19
        norm = torch.nn.utils.get_total_norm([in_float64(x) for x in gradients])
    return norm


def norms_by_seed(tensors: Iterable[torch.Tensor]) -> torch.Tensor:  # several (S, …) -> (S,)
    """Return the Euclidean norm of all tensors for each seed: several (S, …) -> (S,)."""
    numbers = torch.cat([x.flatten(1) for x in tensors], 1)
    norms: torch.Tensor = numbers.norm(dim=1)
    if not norms.isfinite().all():
        wide = in_float64(numbers).norm(dim=1)
        norms = in_float64(norms)
        norms = torch.where(norms.isfinite(), norms, wide)  # finite norms stay as they were
    return norms


def clip_gradients(parameters: Iterable[torch.Tensor], clip: float, norm: torch.Tensor) -> None:
    """Scale .grad of parameters in place so that their total norm, now `norm`, is ≤ `clip`.

    As torch.nn.utils.clip_grads_with_norm_ does.
    """
    shorter = (clip / (norm + 1e-6)).clamp(max=1.0).item()
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.mul_(shorter)


class Row(NamedTuple):
    """Point of the curves; NaN after divergence."""

    step: int  # from 1
    loss: float  # mean cross-entropy of this step's batch, before its update, in nats
    accuracy: float  # share of correct answers in the held-out batch, after the update
    gradient_norm: float  # of all gradients together, before any clipping
    update_size: float  # norm of the change of all parameters / their norm before it
    learning_rate: float
    note: str = ""  # "diverged at step k", in the last row of a run that did


@dataclass(frozen=True)
class State:
    """Training between two steps, with tensors on the CPU; can be pickled."""

    config: Config  # with the seed of this run
    training: Training
    machine: Machine
    step: int = 0  # steps that are done
    seconds: float = field(default=0.0, compare=False)  # that they took
    diverged: bool = False
    model: dict[str, torch.Tensor] | None = None  # None: as drawn
    optimiser: dict[str, Any] | None = None
    data: torch.Tensor | None = None  # states of the random streams
    dropout: torch.Tensor | None = None

    @property
    def done(self) -> bool:
        """Whether no step is left, or the run diverged."""
        return self.diverged or self.step == self.training.steps

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.config.seed

    def __getstate__(self) -> Any:  # as arrays, which pickle ten times as fast as tensors
        return _map_values(self.__dict__, torch.Tensor, torch.Tensor.numpy)

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(_map_values(values, np.ndarray, torch.from_numpy))


def start(config: Config, training: Training, seed: int, machine: Machine | None = None) -> State:
    """Return the State before the first step, its seed `seed`; ConfigError for float16.

    Small gradients would be lost in float16.
    """
    machine = machine or Machine()
    if machine.dtype == "float16":
        raise ConfigError(
            "dtype",
            "dtype is float16, in which small gradients become 0; train in float32 or bfloat16.",
        )
    return State(config.replace(seed=seed), training, machine)


def train(
    config: Config, training: Training, seed: int, machine: Machine | None = None
) -> Generator[Row, None, State]:
    """Train; yield rows at steps 1, every, 2·every, … and the last; return the last State.

    A diverged run ends with its last row, which has a note.
    """
    run = Run(start(config, training, seed, machine))
    while not run.done:
        row = run.step()
        if row:
            yield row
    return run.state()


def chunk(state: State, seconds: float) -> tuple[State, list[Row]]:
    """Train for about so many seconds, at least one step if not done; return new state and rows."""
    run = Run(state)
    rows = []
    end = time.monotonic() + seconds
    while not run.done:
        row = run.step()
        if row:
            rows.append(row)
        if time.monotonic() >= end:
            break
    return run.state(), rows


def model(state: State) -> Transformer:
    """Rebuild the model of a state on the machine's device; before the first step, draw it."""
    transformer = Transformer(state.config, task[state.training.task].vocabulary)
    if state.model is None:
        initial_order[state.training.initial_order](transformer)
    else:
        transformer.load_state_dict(state.model)
    return transformer.to(state.machine.torch_device)


@functools.lru_cache(maxsize=64)
def held_out(name: str, seed: int, length: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a task's test batch (tokens, targets) for a seed: cached, shared, on the CPU.

    Do not change them. `length` None is the task's own.
    """
    with torch.inference_mode(False):
        return task[name](
            generator(seed, f"{name}.held_out"), task[name].test, length, held_out=True
        )


class Run:
    """Training in progress, built from a State."""

    def __init__(self, state: State):
        self.start = state
        self.at = state.step
        self.diverged = state.diverged
        self.begun = time.monotonic()
        training = state.training
        device = state.machine.torch_device
        self.task = task[training.task]
        self.model = model(state)
        self.parameters = list(self.model.parameters())
        make = optimiser[training.optimiser]
        rate = training.learning_rate
        shrink = training.weight_decay
        self.optimiser = make(
            self.parameters, matrix_heights(self.model), rate, shrink, device != "mps"
        )
        if state.optimiser:
            # A copy, because the optimiser updates the tensors that it loads.
            self.optimiser.load_state_dict(copy.deepcopy(state.optimiser))
        self.data = generator(state.seed, f"{training.task}.training")
        self.dropout = generator(state.seed, "dropout")
        if state.data is not None and state.dropout is not None:
            self.data.set_state(state.data)
            self.dropout.set_state(state.dropout)
        self.test = tuple(
            tensor.to(device) for tensor in held_out(training.task, state.seed, training.length)
        )

    @property
    def done(self) -> bool:
        """Whether no step is left, or the run diverged."""
        return self.diverged or self.at == self.start.training.steps

    def step(self) -> Row | None:
        """Update the weights once; return a Row (with accuracy) if due or diverged, else None."""
        training = self.start.training
        self.at += 1
        rate = training.rate(self.at)
        due = training.due(self.at)
        loss, norm = self.compute_gradients()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return self.diverge(Row(self.at, loss, math.nan, norm, math.nan, rate))
        before = [parameter.detach().clone() for parameter in self.parameters] if due else []
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        if not due:
            return None
        row = Row(self.at, loss, self.accuracy(), norm, self.measure_update(before), rate)
        return row if math.isfinite(row.update_size) else self.diverge(row)

    def compute_gradients(self) -> tuple[float, float]:
        """Set and clip the next batch's gradients (.grad); return loss and norm before clipping."""
        training = self.start.training
        device = self.start.machine.torch_device
        tokens, targets = self.task(self.data, training.batch, training.length)
        tokens = tokens.to(device)
        targets = targets.to(device)
        with enable_dropout(self.dropout):
            logits = self.logits(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORE)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
        norm = total_norm(p.grad for p in self.parameters if p.grad is not None)
        if training.clip:
            clip_gradients(self.parameters, training.clip, norm)
        return loss.item(), norm.item()

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:  # int (B, T) -> (B, T, V)
        """Return the logits of a batch: int (B, T) -> (B, T, V)."""
        machine = self.start.machine
        with machine.autocast():
            scores: torch.Tensor = self.model(tokens)
            return scores

    def accuracy(self) -> float:
        """Return the share of correct answers in the held-out batch."""
        with torch.no_grad():
            # Slices that fit into the processor's cache.
            slices = zip(*(torch.split(tensor, SLICE) for tensor in self.test))
            correct = [self.task.right(self.logits(tokens), targets) for tokens, targets in slices]
            return torch.cat(correct).float().mean().item()

    def measure_update(self, before: list[torch.Tensor]) -> float:
        """Return the norm of the last update relative to that of the weights before (copies)."""
        changes = [now.detach() - was for now, was in zip(self.parameters, before)]
        return (total_norm(changes) / total_norm(before)).item()

    def diverge(self, row: Row) -> Row:
        """Mark the run as diverged; return the row with a note, accuracy and update_size NaN."""
        self.diverged = True
        return row._replace(
            accuracy=math.nan, update_size=math.nan, note=f"diverged at step {row.step}"
        )

    def state(self) -> State:
        """Return a State with copies of the training as it stands, to go on from later."""
        return replace(
            self.start,
            step=self.at,
            seconds=self.start.seconds + time.monotonic() - self.begun,
            diverged=self.diverged,
            model=_copy_to_cpu(self.model.state_dict()),
            optimiser=_copy_to_cpu(self.optimiser.state_dict()),
            data=self.data.get_state(),
            dropout=self.dropout.get_state(),
        )


def _copy_to_cpu(value: Any) -> Any:
    """Return nested dicts and lists with every tensor copied to the CPU."""
    return _map_values(value, torch.Tensor, lambda tensor: tensor.detach().to("cpu", copy=True))


def _map_values(value: Any, kind: type, call: Callable[[Any], Any]) -> Any:
    """Return nested dicts and lists with a function applied to all values of one type."""
    if isinstance(value, kind):
        return call(value)
    if isinstance(value, dict):
        return type(value)((key, _map_values(item, kind, call)) for key, item in value.items())
    return [_map_values(item, kind, call) for item in value] if isinstance(value, list) else value
