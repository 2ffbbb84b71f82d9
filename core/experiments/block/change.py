"""How much each token changed from the input of the stack to its output."""

import pandas as pd
import torch
from torch.nn.functional import normalize

from core.experiments.forward import Pass
from core.measure.stream_statistics import cosines


def per_token(p: Pass) -> pd.DataFrame:
    """token (number), word, distance (Euclidean, output − input), cosine (similarity of output and input)."""
    before, after = ends(p)
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
    """Cosine similarity of every token with every other, before and after.  -> (2, T, T)"""
    return torch.stack([cosines(x) for x in ends(p)])


def ends(p: Pass) -> tuple[torch.Tensor, torch.Tensor]:
    """What enters the first block and what leaves the last one, real tokens only: 2 × (T, D)."""
    return p.sites["embed"][0][: p.n_real], p.output[: p.n_real]


def mean_similarity(matrix: torch.Tensor) -> float:
    """Mean over pairs of tokens; 1 means that all point the same way. NaN for a single token."""
    n = len(matrix)
    return ((matrix.sum() - matrix.trace()) / (n * (n - 1))).item() if n > 1 else float("nan")
