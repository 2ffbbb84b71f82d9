"""Several seeds of one variant trained as one batch: a small model alone leaves a GPU idle.

Each run keeps its own data, held-out batch and random streams; only the weights are stacked, so
that a step of all runs is one forward and one backward pass. No value of one seed reaches another:
the optimisers work element by element (Muon: matrix by matrix), and a norm is taken over the
weights of one seed.
"""

import math
import time
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch.func import functional_call, stack_module_state, vmap

from core.tasks import IGNORE
from core.train.muon import matrix_heights
from core.train.run import SLICE, Row, Run, State, norms_by_seed
from core.train.settings import optimiser


def can_stack(states: list[State]) -> bool:
    """Return whether states train as one: equal but for the seed, unfinished, no dropout.

    The step must be equal, too; a single state is one.
    """
    kinds = {
        (state.config.replace(seed=0), state.training, state.machine, state.step)
        for state in states
    }
    return len(kinds) == 1 and not any(state.done or state.config.dropout for state in states)


def chunk(states: list[State], seconds: float) -> list[tuple[State, list[Row]]]:
    """Train states at once for about `seconds`: [(new state, rows)]; ValueError if they cannot.

    The numbers are those of each alone, up to rounding, and the states too: a run may go on stacked
    or alone. One that diverges stops, and the others go on.
    """
    if not can_stack(states):
        raise ValueError("only runs without dropout that differ only in the seed can be stacked")
    end = time.monotonic() + seconds
    rows: dict[Run, list[Row]] = {Run(state): [] for state in states}
    stack = _Stack(list(rows))
    while True:
        for run, row in stack.step().items():
            rows[run].append(row)
        going = [run for run in stack.runs if not run.done]
        over = time.monotonic() >= end
        if over or len(going) < len(stack.runs):
            stack.put_back(run for run in stack.runs if not run.diverged)
            if over or not going:
                return [(run.state(), of_run) for run, of_run in rows.items()]
            stack = _Stack(going)


class _Stack:
    """Runs at the same step with stacked weights and optimiser states: (S, …) for (…)."""

    def __init__(self, runs: list[Run]):
        self.runs = list(runs)
        self.model = runs[0].model
        self.training = runs[0].start.training
        self.machine = runs[0].start.machine
        self.named = stack_module_state([run.model for run in runs])[0]
        self.weights = list(self.named.values())
        make = optimiser[self.training.optimiser]
        fused = self.machine.torch_device != "mps"
        rate = self.training.learning_rate
        shrink = self.training.weight_decay
        self.optimiser = make(self.weights, matrix_heights(self.model), rate, shrink, fused)
        states = [run.optimiser.state_dict() for run in runs]
        stacked = {
            index: {
                name: _stack_states(
                    [state["state"][index][name] for state in states], runs[0].parameters[index]
                )
                for name in names
            }
            for index, names in states[0]["state"].items()
        }
        self.optimiser.load_state_dict(states[0] | {"state": stacked})
        self.test = tuple(torch.stack(tensors) for tensors in zip(*(run.test for run in runs)))

    def put_back(self, runs: Iterable[Run]) -> None:
        """Copy weights and optimiser states of some runs of the stack back into the runs."""
        for run in runs:
            index = self.runs.index(run)
            for parameter, stacked in zip(run.parameters, self.weights):
                parameter.data.copy_(stacked[index])
                entries = self.optimiser.state[stacked].items()
                run.optimiser.state[parameter] = {
                    k: (v[index] if v.shape == stacked.shape else v).clone() for k, v in entries
                }
            for group in run.optimiser.param_groups:
                group["lr"] = self.optimiser.param_groups[0]["lr"]

    def step(self) -> dict[Run, Row]:
        """Update each run once; return run -> Row, of all if due, else of runs that just diverged.

        A diverged run has its last row in the dict.
        """
        next_step = self.runs[0].at + 1
        training = self.training
        rate = training.rate(next_step)
        due = training.due(next_step)
        for run in self.runs:
            run.at = next_step
        losses, norms = self.compute_gradients()
        lost = {
            run: run.diverge(Row(next_step, loss, math.nan, norm, math.nan, rate))
            for run, loss, norm in zip(self.runs, losses, norms)
            if not (math.isfinite(loss) and math.isfinite(norm))
        }
        self.put_back(lost)  # before the update: it would be NaN
        before = [parameter.detach().clone() for parameter in self.weights] if due else []
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        if not due:
            return lost
        results = map(
            Row,
            [next_step] * len(losses),
            losses,
            self.accuracies(),
            norms,
            self.measure_update(before),
            [rate] * len(losses),
        )
        rows = dict(zip(self.runs, results)) | lost
        late = [
            run
            for run, row in rows.items()
            if run not in lost and not math.isfinite(row.update_size)
        ]
        self.put_back(late)
        return rows | {run: run.diverge(rows[run]) for run in late}

    def compute_gradients(self) -> tuple[list[float], list[float]]:
        """Set and clip each run's gradients; return losses and norms before clipping."""
        training = self.training
        clip = training.clip
        drawn = [run.task(run.data, training.batch, training.length) for run in self.runs]
        tokens, targets = (
            torch.stack(tensors).to(self.machine.torch_device) for tensors in zip(*drawn)
        )
        scores = self.logits(tokens).flatten(0, 2).float()
        answers = targets.flatten()
        losses = (
            F.cross_entropy(scores, answers, ignore_index=IGNORE, reduction="none")
            .view(len(targets), -1)
            .sum(1)
        )
        losses = losses / (targets != IGNORE).flatten(1).sum(1)
        self.optimiser.zero_grad()
        losses.sum().backward()  # type: ignore[no-untyped-call]  # torch gives it no types
        norms = norms_by_seed([parameter.grad for parameter in self.weights])
        if clip:
            # As torch.nn.utils.clip_grads_with_norm_ does.
            factors = (clip / (norms + 1e-6)).clamp(max=1.0)  # (S,)
            for weight in self.weights:
                weight.grad.mul_(factors.to(weight.grad).view(-1, *[1] * (weight.ndim - 1)))
        return losses.tolist(), norms.tolist()

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:  # int (S, B, T) -> (S, B, T, V)
        """Return the logits of each run's batch: int (S, B, T) -> (S, B, T, V)."""
        machine = self.machine
        with machine.autocast():
            passes = vmap(lambda weights, tokens: functional_call(self.model, weights, (tokens,)))
            scores: torch.Tensor = passes(self.named, tokens)
            return scores

    def accuracies(self) -> list[float]:
        """Return each run's accuracy on its own test batch."""
        right: list[list[torch.Tensor]] = [[] for _ in self.runs]
        with torch.no_grad():  # in slices, as alone
            for tokens, targets in zip(*(torch.split(tensor, SLICE, 1) for tensor in self.test)):
                for of_model, logits, answers in zip(right, self.logits(tokens), targets):
                    of_model.append(self.runs[0].task.right(logits, answers))
            return torch.stack([torch.cat(of_model).float().mean() for of_model in right]).tolist()

    def measure_update(self, before: list[torch.Tensor]) -> list[float]:
        """Return the norm of each run's last update relative to its weights' norm."""
        changes = [now.detach() - was for now, was in zip(self.weights, before)]
        moved: list[float] = (norms_by_seed(changes) / norms_by_seed(before)).tolist()
        return moved


def _stack_states(tensors: list[torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
    """Stack the optimiser's tensors of a weight; those of another shape (step count) are shared."""
    return torch.stack(tensors) if tensors[0].shape == weight.shape else tensors[0].clone()
