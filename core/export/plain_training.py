"""What a training script of flavour "torch" runs: a plain loop, for one seed and one model after the other.

As in plain.py, only torch, the standard library, and functions of core that need no more than these.
"""

import functools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F

from core.experiments.training.results import DIGITS
from core.export.plain import section
from core.measure.intervals import LEVEL, Paired, together
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

ENDS = (  # columns of what stands at the end of the curves
    "variant", "accuracy", "low", "high", "seeds", "diverged",
    "difference", "difference_low", "difference_high", "p", "parameters", "flops",
)  # fmt: skip


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
    ends: dict[str, dict[int, float]] = {name: {} for name in variants}
    late: dict[str, dict[int, float]] = {name: {} for name in variants}

    def rows() -> Iterator[tuple[object, ...]]:
        for seed in seeds:
            for name, config in variants.items():
                how, losses = (otherwise or {}).get(name, training), []
                for row in train(config.replace(seed=seed), how, problem, device, dtype):
                    yield name, seed, *row
                    losses.append((row.step, row.loss))
                ends[name][seed] = row.accuracy
                late[name][seed] = math.inf if row.note else late_loss(losses, how.steps)

    section("rows", ("variant", "seed", *Row._fields), rows())
    models = search or {name: {training.learning_rate: name} for name in variants}
    rates: dict[str, list[float]] = {}
    accuracies: dict[str, dict[int, float]] = {}
    for model, runs in models.items():
        rates[model] = [choose({rate: late[name][seed] for rate, name in runs.items()}) for seed in seeds]
        accuracies[model] = {seed: ends[runs[rate]][seed] for seed, rate in zip(seeds, rates[model])}
    found, nothing = differences(accuracies), spread([], (-1.0, 1.0), LEVEL)
    table: list[tuple[object, ...]] = []
    for model, runs in models.items():
        known = [each for each in accuracies[model].values() if not math.isnan(each)]
        mean = spread(known, (0.0, 1.0), LEVEL)
        gap = found.get(model, nothing)
        sizes = size(variants[next(iter(runs.values()))], training, problem)
        chosen = [counted(rates[model])] * bool(search)
        table.append((model, *mean[:3], len(known), len(seeds) - len(known), *gap[:3], gap.p, *sizes, *chosen))
    section("accuracy", (*ENDS, *["rates"] * bool(search)), table)


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


def differences(accuracies: dict[str, dict[int, float]]) -> dict[str, Paired]:
    """Compare every model with the first, seed by seed, corrected for all that are compared (Holm).

    accuracies: model -> seed -> accuracy, NaN where it diverged.
    """
    base, *others = accuracies

    def compare(model: str, level: float) -> Paired:
        both = [round(value - accuracies[base][seed], DIGITS) for seed, value in accuracies[model].items()]
        return spread([each for each in both if not math.isnan(each)], (-1.0, 1.0), level)

    return together(compare, others)


def spread(values: list[float], within: tuple[float, float], level: float) -> Paired:
    """Return the mean of several seeds with its interval, and the p of the t-test against 0 (Student, 1908).

    within: what a value can be, where the interval is cut. NaN where there are too few values.
    """
    n = len(values)
    mean = statistics.fmean(values) if values else math.nan
    if n < 2:
        return Paired(mean, math.nan, math.nan, n, math.nan, math.nan)
    error = statistics.stdev(values) / math.sqrt(n)
    reach = error * quantile(n - 1, level)
    p = float(mean == 0) if error == 0 else beyond(math.atan2(error * math.sqrt(n - 1), abs(mean)), n - 1)
    return Paired(mean, max(mean - reach, within[0]), min(mean + reach, within[1]), n, p, reach)


def beyond(angle: float, n: int) -> float:
    """Return the share of Student's t with n degrees of freedom that lies beyond ±√n / tan(angle).

    In that angle the density is its sine to the power of n − 1. It is integrated by Simpson's rule.
    """

    def area(end: float) -> float:
        heights = torch.linspace(0.0, end, 2001, dtype=torch.float64).sin() ** (n - 1)
        weights = torch.tensor([1.0, *[4.0, 2.0] * 999, 4.0, 1.0], dtype=torch.float64)
        return end * (heights * weights).sum().item()

    return area(angle) / area(math.pi / 2)


@functools.cache
def quantile(n: int, level: float) -> float:
    """Return the t between whose two signs so large a share of Student's t with n degrees of freedom lies."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if beyond(middle, n) < 1 - level:
            low = middle
        else:
            high = middle
    return math.sqrt(n) / math.tan(high)


def size(config: Config, training: Training, problem: Problem) -> tuple[int, int]:
    """-> (parameters, floating point operations of one sequence on its way forward)"""
    words = len(problem.vocabulary)
    return sum(parameters(config, words).values()), forward_flops(config, training.length, words)
