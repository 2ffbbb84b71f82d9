"""Several models on the same sentence: what leaves each, in numbers, and how far it is from what leaves the first."""

import math
from collections.abc import Mapping

import pandas as pd
import torch
from torch.nn.functional import cosine_similarity

from core.experiments.forward import Pass
from core.measure.stream_statistics import Streams, attention_entropy, statistic
from core.model import cost


def compare(passes: Mapping[str, Pass]) -> pd.DataFrame:
    """One row per model, the first of them the baseline. Each is asked for once, and let go: a mapping may compute them then.

    variant; parameters (of the blocks); one column per statistic of the output (core/measure/stream_statistics.py; entropy: mean over
    layers); distance: ‖output − baseline's output‖ / ‖baseline's output‖; direction: their cosine similarity, averaged
    over tokens. Both are NaN where widths differ.
    """
    rows, base = [], None
    for name, forward_pass in passes.items():
        output = forward_pass.output[: forward_pass.n_real]
        base = output if base is None else base
        values = Streams(output[None], entropy(forward_pass)[None]).table[0].tolist()
        rows.append((name, sum(cost.parameters(forward_pass.config).values()), *values, *apart(output, base)))
    return pd.DataFrame(rows, columns=["variant", "parameters", *statistic, "distance", "direction"])


def entropy(forward_pass: Pass) -> torch.Tensor:
    """Attention entropy in bits, averaged over layers, heads and real readers; NaN without attention.  -> ()"""
    maps = forward_pass.sites.get("pattern")
    return attention_entropy(torch.stack(maps), forward_pass.n_real).mean() if maps else torch.tensor(math.nan)


def apart(one: torch.Tensor, two: torch.Tensor) -> tuple[float, float]:
    """-> (distance, direction) of one output from another, (T, D) each; see compare()."""
    if one.shape != two.shape:
        return math.nan, math.nan
    one, two = one.double(), two.double()
    return ((one - two).norm() / two.norm()).item(), cosine_similarity(one, two, dim=-1).mean().item()
