"""Comparison of several models on one sentence: outputs, and distances from the first model's."""

import math
from collections.abc import Mapping

import pandas as pd
import torch
from torch.nn.functional import cosine_similarity, normalize

from core.experiments.forward import Pass
from core.measure.stream_statistics import Streams, attention_entropy, cosines, statistic
from core.model import cost


def per_token(p: Pass) -> pd.DataFrame:
    """Compare real tokens' input and output: token (from 0), word, distance (Euclidean), cosine."""
    before, after = input_and_output(p)
    distance = (after.double() - before.double()).norm(dim=-1)
    cosine = (normalize(before.double(), dim=-1) * normalize(after.double(), dim=-1)).sum(-1)
    return pd.DataFrame(
        {
            "token": range(p.n_real),
            "word": p.labels[: p.n_real],
            "distance": distance.tolist(),
            "cosine": cosine.tolist(),
        }
    )


def token_similarity(p: Pass) -> torch.Tensor:
    """Return real tokens' cosine similarities before [0] and after [1] all blocks: (2, T, T)."""
    return torch.stack([cosines(x) for x in input_and_output(p)])


def input_and_output(p: Pass) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first block's input and the last block's output, real tokens only: (T, D) each."""
    return p.sites["embed"][0][: p.n_real], p.output[: p.n_real]


def mean_similarity(matrix: torch.Tensor) -> float:
    """Return the mean of cosine similarities (T, T) over pairs of tokens; NaN for one token."""
    n = len(matrix)
    return ((matrix.sum() - matrix.trace()) / (n * (n - 1))).item() if n > 1 else float("nan")


def compare(passes: Mapping[str, Pass]) -> pd.DataFrame:
    """Tabulate variant, parameters, output statistics, relative distance, cosine to the first.

    Each pass is requested once and released, so a mapping may compute it on access.

    Columns: variant; parameters (of the blocks); one per statistic of the output
    (core/measure/stream_statistics.py; entropy: mean over layers); distance: ‖output − baseline's
    output‖ / ‖baseline's output‖; direction: their cosine similarity, averaged over tokens. Both
    are NaN where widths differ.
    """
    rows = []
    base = None
    for name, forward_pass in passes.items():
        output = forward_pass.output[: forward_pass.n_real]
        base = output if base is None else base
        maps = forward_pass.sites.get("pattern")
        entropy = torch.tensor([math.nan])
        if maps:
            entropy = attention_entropy(torch.stack(maps), forward_pass.n_real).mean()[None]
        values = Streams(output[None], entropy).table[0].tolist()
        distance = direction = math.nan
        if output.shape == base.shape:
            a = output.double()
            two = base.double()
            distance = ((a - two).norm() / two.norm()).item()
            direction = cosine_similarity(a, two, dim=-1).mean().item()
        learned = sum(cost.parameters(forward_pass.config).values())
        rows.append((name, learned, *values, distance, direction))
    return pd.DataFrame(
        rows, columns=["variant", "parameters", *statistic, "distance", "direction"]
    )
