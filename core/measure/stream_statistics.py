"""Statistics of the residual stream: a menu of functions of (passes, tokens, d_model).

Everything is computed in float64, so that a stream near the end of float32's range still has a
standard deviation. A stream with a number that is infinite or no number has no statistics: NaN.
"""

import math
from typing import Any

import torch

from core.settings.cache import LazyProperty
from core.settings.device import in_float64
from core.settings.menu import Menu

# (streams) -> one number per stream. question: what it answers, for the subtitle of its chart; log:
# whether it may grow or fade by powers of ten; most: the largest value that it can have with n
# tokens, where it lies between 0 and that.
statistic: Menu[Any] = Menu("Statistics of a pass", log=False, most=None)

SAME = 1e-6  # a difference of that share is float32's rounding


class Streams:
    """Residual streams of one shape, whose statistics are computed together.

    x: (P, T, D), the real tokens only; entropy: (P,), bits, already taken from the attention
    weights of each pass.
    """

    def __init__(self, x: torch.Tensor, entropy: torch.Tensor):
        # A tenth of what isfinite() costs.
        self.largest = in_float64(torch.maximum(x.amax((1, 2)), -x.amin((1, 2))))
        wide = in_float64(x)
        self.finite = self.largest.isfinite()  # (P,) bool
        self.x = wide if self.finite.all() else torch.where(self.finite[:, None, None], wide, 0.0)
        self.entropy = in_float64(entropy)

    @LazyProperty
    def mean(self) -> torch.Tensor:
        """Mean of all values of each stream: (P,)."""
        return self.x.mean((1, 2))

    @LazyProperty
    def square(self) -> torch.Tensor:
        """Mean of the squares of each stream: (P,)."""
        return self.products.diagonal(dim1=1, dim2=2).sum(1) / self.x[0].numel()

    @LazyProperty
    def products(self) -> torch.Tensor:
        """Dot products of every token with every token, itself included: (P, T, T)."""
        if self.x.is_cpu:  # NumPy sees that both sides are the same and computes only half
            rows = self.x.numpy()
            return torch.from_numpy(rows @ rows.swapaxes(1, 2))
        return self.x @ self.x.mT

    @LazyProperty
    def table(self) -> torch.Tensor:
        """Statistics of each of P streams, NaN where it is not finite: float64 (P, statistics)."""
        values = torch.stack(
            [part(self).to("cpu", torch.float64) for part in statistic.values()], dim=1
        )
        return torch.where(self.finite.cpu()[:, None], values, math.nan)


@statistic.register(
    "rms",
    label="RMS",
    help="root mean square of the residual stream.",
    question="Does the residual stream grow?",
    log=True,
)
def rms(s: Streams) -> torch.Tensor:
    """Return the root mean square of each stream: (P,)."""
    return s.square.sqrt()


@statistic.register(
    "std",
    label="SD",
    help="standard deviation of the residual stream (population formula).",
    question="How far do activations spread?",
    log=True,
)
def std(s: Streams) -> torch.Tensor:
    """Return the standard deviation of each stream (population formula): (P,)."""
    spread = s.square - s.mean.square()
    # Where nearly nothing is left of the difference, the long way: rounding would show.
    for row in (spread <= 1e-6 * s.square).nonzero()[:, 0].tolist():
        spread[row] = (s.x[row] - s.mean[row]).square().mean()
    return spread.sqrt()


@statistic.register(
    "mean", label="Mean", help="mean of the residual stream.", question="Does the mean drift?"
)
def mean(s: Streams) -> torch.Tensor:
    """Return the mean of each stream: (P,)."""
    return s.mean


@statistic.register(
    "largest",
    label="Max magnitude",
    help="largest absolute value in the residual stream.",
    question="How large is the largest activation?",
    log=True,
)
def largest(s: Streams) -> torch.Tensor:
    """Return the largest absolute value of each stream: (P,)."""
    return s.largest


@statistic.register(
    "cosine",
    label="Token similarity",
    help="mean cosine similarity over all pairs of tokens. 1 = identical direction.",
    question="Do tokens become similar?",
    most=lambda n: 1.0,
)
def cosine(s: Streams) -> torch.Tensor:
    """Return the mean cosine similarity over pairs of tokens, (P,); NaN for a single token."""
    length = s.products.diagonal(dim1=1, dim2=2).sqrt()
    weight = torch.where(length > 0, 1 / length, 0.0)  # a token of zeros is like no other
    n = length.shape[1]
    both = (weight[:, None] @ s.products @ weight[:, :, None])[:, 0, 0]
    return (
        (both - (length > 0).sum(1)) / max(1, n * (n - 1))
        if n > 1
        else torch.full_like(both, math.nan)
    )


@statistic.register(
    "rank",
    label="Effective rank",
    help=(
        "exponential of the entropy of the normalised singular values: the number of "
        "directions that the tokens effectively span (Roy and Vetterli, 2007)."
    ),
    question="How many directions are left?",
    most=float,
)
def rank(s: Streams) -> torch.Tensor:
    """Return the effective rank of each stream, uncentred, 1 to min(T, D): (P,); NaN for zeros.

    Roy and Vetterli, 2007.
    """
    # Squared singular values are the eigenvalues of the products; largest first to 1, so that
    # nothing leaves the range.
    scale = s.products.diagonal(dim1=1, dim2=2).amax(1).clamp_min(1e-300)[:, None, None]
    values = torch.linalg.eigvalsh((s.products / scale).cpu()).clamp_min(0).sqrt()
    spread: torch.Tensor = torch.special.entr(values / values.sum(1, keepdim=True)).sum(1).exp()
    return spread  # NaN where all is zero


@statistic.register(
    "entropy",
    label="Attention entropy",
    help=(
        "entropy of the attention weights in bits, averaged over heads and query tokens."
        " 0 = all on one token, log₂ n = uniform over n."
    ),
    question="Does attention narrow or spread?",
    most=math.log2,
)
def entropy(s: Streams) -> torch.Tensor:
    """Return the attention entropy (bits) with which the Streams were built: (P,)."""
    return s.entropy


def attention_entropy(pattern: torch.Tensor, n_real: int) -> torch.Tensor:
    """Return entropy (bits) averaged over heads and real queries: (…, H, T, T) -> (…).

    Shannon, 1948.
    """
    return row_entropy(pattern[..., :n_real, :].float()).mean((-2, -1))


def row_entropy(weights: torch.Tensor) -> torch.Tensor:
    """Return the entropy (bits) of each row of attention weights: (…, T) -> (…)."""
    # No guard such as 1e-45: where subnormal numbers are flushed to zero, log2 would give −∞, and 0
    # · −∞ is NaN.
    return torch.where(weights > 0, weights, 1.0).log2().mul_(weights).sum(-1).neg_()


def cosines(x: torch.Tensor) -> torch.Tensor:
    """Return the cosine similarity of every row with every row: (T, D) -> float32 (T, T)."""
    unit = torch.nn.functional.normalize(x.double(), dim=-1)
    return (unit @ unit.T).float()
