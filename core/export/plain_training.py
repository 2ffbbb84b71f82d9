"""What a training script of flavour "torch" runs: a plain loop, for one seed and one model after the other.

As in plain.py, only torch, the standard library, and functions of core that need no more than these.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F

from core.export.plain import section
from core.model.config import Config
from core.model.cost import forward_flops, parameters
from core.model.parts.init import generator
from core.model.transformer import Transformer
from core.model.transformer.dropout import dropping
from core.tasks.task import IGNORE, one_side
from core.train.muon import matrices
from core.train.norms import clip_gradients, total_norm
from core.train.run import SLICE, Row
from core.train.search import choose, counted, late_loss
from core.train.settings import Training, optimiser


class Problem(NamedTuple):
    """What is to be learnt."""

    # (random stream, number of sequences, length, vocabulary) -> tokens, targets
    draw: Callable[[torch.Generator, int, int, tuple[str, ...]], tuple[torch.Tensor, torch.Tensor]]
    vocabulary: tuple[str, ...]  # token number i is vocabulary[i]
    test: int  # sequences on which accuracy is measured
    held_out: float = 0.0  # share of all sequences that training never draws; 0: none are kept apart
    until: tuple[str, ...] = ()  # if given: for that counts how a sequence begins, up to the first of these words
    rivals: tuple[tuple[str, ...], ...] = ()  # if given: only these words are scored, each against its group


def print_training(
    variants: dict[str, Config],
    seeds: Sequence[int],
    training: Training,
    problem: Problem,
    device: str,
    dtype: torch.dtype,
    otherwise: dict[str, Training] | None = None,
    search: dict[str, dict[float, str]] | None = None,
) -> None:
    """Train every model with every seed; print the curves, row by row, and then where they end.

    otherwise: how those are trained that are trained in another way; search: model -> learning rate -> name of its run, of which for
    each seed the one counts that ends with the lowest loss.
    """
    torch.set_num_threads(1)  # as in the app: several would add the same numbers in another order
    ends: dict[str, list[float]] = {name: [] for name in variants}
    late: dict[str, list[float]] = {name: [] for name in variants}

    def rows() -> Iterator[tuple[object, ...]]:
        for seed in seeds:
            for name, config in variants.items():
                how, losses = (otherwise or {}).get(name, training), []
                for row in train(config.replace(seed=seed), how, problem, device, dtype):
                    yield name, seed, *row
                    losses.append((row.step, row.loss))
                ends[name].append(row.accuracy)
                late[name].append(math.inf if row.note else late_loss(losses, how.steps))

    def end(runs: dict[float, str]) -> tuple[object, ...]:
        rates = [choose({rate: late[name][at] for rate, name in runs.items()}) for at in range(len(seeds))]
        accuracies = [ends[runs[rate]][at] for at, rate in enumerate(rates)]
        return *mean(accuracies), *size(variants[runs[rates[0]]], training, problem), counted(rates)

    section("rows", ("variant", "seed", *Row._fields), rows())
    models = search or {name: {training.learning_rate: name} for name in variants}
    columns = ("variant", "accuracy", "seeds", "parameters", "flops", *["rates"] * bool(search))
    section("accuracy", columns, [(model, *end(runs)[: len(columns) - 1]) for model, runs in models.items()])


def train(config: Config, training: Training, problem: Problem, device: str, dtype: torch.dtype) -> Iterator[Row]:
    """A model from its random weights to its last step: yields a Row at the first, every few, and at the last."""
    model = Transformer(config, problem.vocabulary).to(device)
    weights = list(model.parameters())
    make, fused = optimiser[training.optimiser], device != "mps"
    update = make(weights, matrices(model), training.learning_rate, training.weight_decay, fused)
    data, dropout = generator(config.seed, f"{training.task}.training"), generator(config.seed, "dropout")
    unseen = generator(config.seed, f"{training.task}.held_out")
    test = sequences(problem, unseen, problem.test, training.length, held_out=True)

    for step in range(1, training.steps + 1):
        tokens, targets = sequences(problem, data, training.batch, training.length, held_out=False)
        with dropping(dropout):
            logits = read(model, tokens.to(device), dtype)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.to(device).flatten(), ignore_index=IGNORE)
        update.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
        norm = total_norm([weight.grad for weight in weights if weight.grad is not None])
        if training.clip:
            clip_gradients(weights, training.clip, norm)
        for group in update.param_groups:
            group["lr"] = training.rate(step)

        row = Row(step, loss.item(), math.nan, norm.item(), math.nan, training.rate(step))
        if math.isfinite(row.loss) and math.isfinite(row.gradient_norm):
            before = [weight.detach().clone() for weight in weights] if training.due(step) else []
            update.step()
            if not training.due(step):
                continue
            row = row._replace(
                accuracy=accuracy(model, test, problem, device, dtype), update_size=moved(before, weights)
            )
        if not math.isfinite(row.update_size):
            yield row._replace(accuracy=math.nan, update_size=math.nan, note=f"diverged at step {step}")
            return
        yield row


def sequences(
    problem: Problem, stream: torch.Generator, count: int, length: int, held_out: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """-> tokens, targets: (count, length) each. held_out: of those that training never draws, or of the others."""
    if problem.held_out:
        return one_side(problem, stream, count, length, problem.vocabulary, held_out)
    return problem.draw(stream, count, length, problem.vocabulary)


def read(model: Transformer, tokens: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:  # int (B, T) -> (B, T, V)
    """The scores of every word; the weights stay float32, only products are taken in the given precision."""
    with torch.autocast(tokens.device.type, dtype, enabled=dtype != torch.float32):
        scores: torch.Tensor = model(tokens)
        return scores


@torch.no_grad()
def accuracy(
    model: Transformer, test: tuple[torch.Tensor, torch.Tensor], problem: Problem, device: str, dtype: torch.dtype
) -> float:
    """The share of right answers in the held-out sequences."""
    are_right = []
    for tokens, targets in zip(*(torch.split(each.to(device), SLICE) for each in test)):
        are_right.append(right(problem, read(model, tokens, dtype), targets))
    return torch.cat(are_right).float().mean().item()


def right(problem: Problem, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Whether each answer is right: the highest score is the target's.

    (B, T, V), int (B, T) -> bool (number of answers)
    """
    if problem.rivals:
        return right_among_rivals(problem, logits, targets)
    asked = targets != IGNORE
    return logits[asked].argmax(-1) == targets[asked]


def right_among_rivals(problem: Problem, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of rivals alone: whether the score of the one that is the target is the highest of its group's."""
    are_right = []
    for group in problem.rivals:
        among = [number for number, word in enumerate(problem.vocabulary) if word in group]
        words = torch.tensor(among, device=targets.device)
        asked = torch.isin(targets, words)
        are_right.append(words[logits[asked][:, words].argmax(-1)] == targets[asked])
    return torch.cat(are_right)


def moved(before: list[torch.Tensor], weights: list[torch.nn.Parameter]) -> float:
    """How far an update has moved all weights together, relative to their norm before it."""
    changes = [now.detach() - was for now, was in zip(weights, before)]
    return (total_norm(changes) / total_norm(before)).item()


def mean(accuracies: list[float]) -> tuple[float, int]:
    """-> (mean of those that are known, how many they are)"""
    known = [each for each in accuracies if not math.isnan(each)]
    return math.fsum(known) / len(known) if known else math.nan, len(known)


def size(config: Config, training: Training, problem: Problem) -> tuple[int, int]:
    """-> (parameters, floating point operations of one sequence on its way forward)"""
    words = len(problem.vocabulary)
    return sum(parameters(config, words).values()), forward_flops(config, training.length, words)
