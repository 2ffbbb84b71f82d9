"""What a script of flavour "torch" runs below the model: one variant after the other through the plain model.

Only torch, the standard library, and functions of core that need no more than these: core/export/bundle copies them.
"""

import csv
import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from core.experiments.block.compare import apart
from core.experiments.depth.gradients import norm, successor_loss, weight_rows
from core.experiments.forward import numbered, square
from core.measure.stream_statistics import Streams, attention_entropy, row_entropy, statistic
from core.measure.tensor_meters import meter
from core.model.config import Config
from core.model.parts.init import generator
from core.model.parts.mask import within
from core.model.text import shown
from core.model.trace import trace
from core.model.transformer import Memory, Transformer
from core.model.transformer.dropout import dropping
from core.settings.setting import ConfigError


def section(name: str, header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    """Print a table as CSV below a line with its name; numbers with all their digits."""
    if hasattr(sys.stdout, "reconfigure"):  # words may hold any character; a notebook's output takes them as it is
        sys.stdout.reconfigure(encoding="utf-8")
    print(f"# {name}")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)


def prepare(
    config: Config, tokens: list[str], device: str, dtype: torch.dtype
) -> tuple[Transformer, torch.Tensor, torch.Tensor | None]:
    """-> (model, token numbers (1, T), which of them are real (1, T) or None for all)"""
    known, ids, real = numbered(tokens, config.padding, device)
    model = Transformer(config, known).to(device, dtype).requires_grad_(False)
    return model, ids, real


class Totals:
    """What the statistics of one recorded tensor are made from, in float64."""

    def __init__(self, x: torch.Tensor):
        x = x.float().cpu().double()
        self.n = torch.tensor(float(x.numel()))
        self.total = x.sum()
        self.squares = x.square().sum()
        self.spread = (x - x.mean()).square().sum()
        self.low, self.high = x.min(), x.max()
        self.zero = (x == 0).sum()


@torch.inference_mode()
def print_block(config: Config, tokens: list[str], device: str, dtype: torch.dtype, dropout: bool = False) -> None:
    """One pass through the stack, every tensor of it recorded."""
    model, ids, real = prepare(config, tokens, device, dtype)
    with trace() as recorded, dropping(generator(config.seed, "dropout") if dropout else None):
        output = model.stream(ids, real)
    section("stages", ("layer", "site", "meter", "value"), stage_rows(recorded, config.n_layers))
    ends = [x[0, : len(tokens)].float().cpu() for x in (recorded["embed"][0], output)]
    section("tokens", ("token", "word", "distance", "cosine"), token_rows(tokens, *ends))
    rows = attention_rows(config, recorded.get("pattern", []), square(model.allowed(ids, real), ids.shape[1]))
    section("attention", ("layer", "head", "query", "key", "weight"), rows)


def stage_rows(recorded: dict[str, list[torch.Tensor]], n_layers: int) -> Iterator[tuple[int, str, str, float]]:
    """layer, site, meter, value: in the order in which the tensors were computed."""
    for layer in range(n_layers):
        for site, tensors in recorded.items():
            for x in tensors[layer : layer + 1]:
                totals: Any = Totals(x)  # of one tensor, where core's are of many
                for name, part in meter.items():
                    yield layer + 1, site, name, float(part(totals))


def token_rows(tokens: list[str], before: torch.Tensor, after: torch.Tensor) -> list[tuple[object, ...]]:
    """token, word, distance (Euclidean), cosine (similarity): from the input of the stack to its output."""
    before, after = before.double(), after.double()
    distance = (after - before).norm(dim=-1).tolist()
    unit = [torch.nn.functional.normalize(x, dim=-1) for x in (before, after)]
    cosine = (unit[0] * unit[1]).sum(-1).tolist()
    return [(at, shown(word), *row) for at, (word, *row) in enumerate(zip(tokens, distance, cosine), 1)]


def attention_rows(
    config: Config, patterns: list[torch.Tensor], allowed: torch.Tensor
) -> Iterator[tuple[int, int, int, int, float]]:
    """layer, head, query, key, weight: of all that a query may see; numbers from 1."""
    for layer, pattern in enumerate(patterns):
        inside = within(allowed, config.window_in(layer)).nonzero().tolist()
        for head, weights in enumerate(pattern[0].float().cpu(), 1):
            for query, key in inside:
                yield layer + 1, head, query + 1, key + 1, weights[query, key].item()


@torch.inference_mode()
def travel(
    config: Config, tokens: list[str], order: list[int], shown: Sequence[int], device: str, dtype: torch.dtype
) -> tuple[list[list[float]], dict[int, torch.Tensor]]:
    """Pass after pass -> (statistics of the stream before pass 1 and after each, pass -> its attention weights).

    A stream can come back from infinity, but what it then is means nothing: NaN from there on.
    """
    model, ids, real = prepare(config, tokens, device, dtype)
    x, allowed, n_real, memory = model.start(ids), model.allowed(ids, real), len(tokens), Memory()
    values = [summary(x[:, :n_real])]
    patterns: dict[int, torch.Tensor] = {}
    for number, at in enumerate(order, 1):
        if not x[:, :n_real].isfinite().all():
            break
        with trace(sites=["pattern"]) as recorded:
            x = model.layer(at, x, allowed, memory)
        pattern = recorded["pattern"][0] if recorded else None
        values.append(summary(x[:, :n_real], None if pattern is None else attention_entropy(pattern, n_real)))
        if pattern is not None and number in shown:
            patterns[number] = pattern[0].float().cpu()
    unknown = [math.nan] * len(statistic)
    return values + [unknown] * (len(order) + 1 - len(values)), patterns


def summary(stream: torch.Tensor, entropy: torch.Tensor | None = None) -> list[float]:
    """Every statistic of one stream (1, T, D), with the entropy of the attention that made it, if any did."""
    known = torch.full((1,), math.nan) if entropy is None else entropy.float()
    return Streams(stream, known.to(stream.device)).table[0].tolist()


def gradient_norms(
    config: Config, tokens: list[str], order: list[int], device: str, dtype: torch.dtype
) -> tuple[list[float], list[tuple[int, str, float]]]:
    """-> (norm of the gradient of the loss in the stream before every pass and after the last, rows of the weights)"""
    model, ids, real = prepare(config, tokens, device, dtype)
    model.requires_grad_(True)
    with trace(sites=["resid_pre"]) as recorded:
        out = model.stream(ids, real, order)
    loss = successor_loss(model, out, ids, len(tokens))
    streams, blocks = [*recorded["resid_pre"], out], dict(model.blocks.named_parameters())
    gradients = torch.autograd.grad(loss, [*streams, *blocks.values()], materialize_grads=True)
    rows = weight_rows(model, dict(zip(blocks, gradients[len(streams) :])))
    return [norm(each) for each in gradients[: len(streams)]], rows


@torch.inference_mode()
def print_compared(
    variants: dict[str, Config], tokens: list[str], device: str, dtype: torch.dtype, dropout: bool = False
) -> None:
    """What leaves every model, and how far it is from what leaves the first."""
    rows, outputs = [], []
    for name, config in variants.items():
        model, ids, real = prepare(config, tokens, device, dtype)
        with trace(sites=["pattern"]) as recorded, dropping(generator(config.seed, "dropout") if dropout else None):
            outputs.append(model.stream(ids, real)[0, : len(tokens)].float().cpu())
        maps = [attention_entropy(pattern.float().cpu(), len(tokens)) for pattern in recorded.get("pattern", ())]
        values = summary(outputs[-1][None], torch.stack(maps).mean()[None] if maps else None)
        parameters = sum(weight.numel() for weight in model.blocks.parameters())
        rows.append((name, parameters, *values, *apart(outputs[-1], outputs[0])))
    section("compared", ("variant", "parameters", *statistic, "distance", "direction"), rows)


@torch.inference_mode()
def print_heads(
    variants: dict[str, Config], tokens: list[str], device: str, dtype: torch.dtype, dropout: bool = False
) -> None:
    """The attention of every model, and how spread out it is."""
    heads, attention = [], []
    for name, config in variants.items():
        model, ids, real = prepare(config, tokens, device, dtype)
        with trace(sites=["pattern"]) as recorded, dropping(generator(config.seed, "dropout") if dropout else None):
            model.stream(ids, real)
        for layer, pattern in enumerate(recorded["pattern"], 1):
            bits = row_entropy(pattern[0, :, : len(tokens)].float().cpu()).mean(-1).tolist()
            heads += [(name, layer, head, value) for head, value in enumerate(bits, 1)]
        allowed = square(model.allowed(ids, real), ids.shape[1])
        attention += [(name, *row) for row in attention_rows(config, recorded["pattern"], allowed)]
    section("heads", ("variant", "layer", "head", "entropy"), heads)
    section("attention", ("variant", "layer", "head", "query", "key", "weight"), attention)


def print_depth(
    variants: dict[str, Config],
    tokens: list[str],
    order: list[int],
    shown: list[int],
    device: str,
    dtype: torch.dtype,
) -> None:
    """Every variant, pass after pass, and how its gradient comes back."""
    statistics, gradients, weights, attention = [], [], [], []
    for name, config in variants.items():
        values, patterns = travel(config, tokens, order, shown, device, dtype)
        statistics += [(name, at, *each) for at, row in enumerate(values) for each in zip(statistic, row)]
        norms, rows = gradient_norms(config, tokens, order, device, dtype)
        gradients += [(name, at, value) for at, value in enumerate(norms)]
        weights += [(name, *row) for row in rows]
        for number, pattern in patterns.items():
            for query, row in enumerate(pattern.mean(0).tolist(), 1):
                attention += [(name, number, query, key, weight) for key, weight in enumerate(row, 1)]
    section("statistics", ("variant", "pass", "meter", "value"), statistics)
    section("gradients", ("variant", "pass", "value"), gradients)
    section("weights", ("variant", "layer", "weight", "value"), weights)
    section("attention", ("variant", "pass", "query", "key", "weight"), attention)


def print_grid(
    baseline: Config,
    axes: dict[str, dict[str, dict[str, Any]]],
    repeats: list[int],
    tokens: list[str],
    order: list[int],
    device: str,
    dtype: torch.dtype,
) -> None:
    """Every combination of the entries that can be, pass after pass; no model a second time."""
    rows = []
    for number, entries in enumerate(itertools.product(*axes.values())):
        if number in repeats:
            continue
        changes: dict[str, Any] = {}
        for axis, entry in zip(axes, entries):
            changes |= axes[axis][entry]
        try:
            config = baseline.replace(**changes)
        except ConfigError:  # heads that do not divide the width, or that cannot be turned
            continue
        values, _ = travel(config, tokens, order, (), device, dtype)
        rows += [(*entries, at, *each) for at, row in enumerate(values) for each in zip(statistic, row)]
    section("grid", (*axes, "pass", "meter", "value"), rows)
