"""Softmax variants: from scores to weights."""

import math

import torch
from torch import nn

from core.settings.menu import Menu

# sums_to_one: whether a row of weights adds up to 1; formula: for those who explain it.
softmax: Menu[type["Softmax"]] = Menu("Softmax", sums_to_one=True, formula="exp(s) / Σ exp(s)")


class Softmax(nn.Module):
    def __init__(self, n_heads: int):
        super().__init__()

    def forward(
        self, scores: torch.Tensor, allowed: torch.Tensor | None = None
    ) -> (
        torch.Tensor
    ):  # (B, H, T, K), bool broadcastable to it, True where a query may look -> (B, H, T, K)
        raise NotImplementedError(f"{type(self).__name__} does not say how scores become weights")


def weights(scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
    """Softmax over what a query may look at; a query that may look at nothing gets zeros.

    (…, T, T), bool broadcastable to it -> (…, T, T)
    """
    if allowed is None:
        return scores.softmax(-1)
    alone = ~allowed.any(-1, keepdim=True)
    # A row of −inf would give NaN, and NaN gradients even if it were overwritten: such rows pass
    # the softmax unmasked.
    return scores.masked_fill(~(allowed | alone), -math.inf).softmax(-1).masked_fill(alone, 0.0)


def beside(scores: torch.Tensor, allowed: torch.Tensor | None, extra: torch.Tensor) -> torch.Tensor:
    """Softmax over what a query may look at, and one more score, whose weight is given to nobody."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    extra = extra.to(scores).expand(*scores.shape[:-1], 1)
    return torch.cat([scores, extra], -1).softmax(-1)[..., :-1]


@softmax.register(
    "usual",
    label="Softmax",
    help="weights sum to 1, so a head always attends somewhere (Vaswani et al., 2017).",
)
class usual(Softmax):
    def forward(self, scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        return weights(scores, allowed)


@softmax.register(
    "off_by_one",
    label="Softmax + 1",
    help="+1 in the denominator, so a head can attend to nothing (Miller, 2023).",
    sums_to_one=False,
    formula="exp(s) / (1 + Σ exp(s))",
)
class off_by_one(Softmax):
    def forward(self, scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        return beside(scores, allowed, torch.zeros(1))


@softmax.register(
    "sink",
    label="Softmax with a sink",
    help=(
        "each head has a learned attention-sink logit that absorbs unused attention (gpt-oss,"
        " 2025)."
    ),
    sums_to_one=False,
    formula="exp(s) / (exp(sink) + Σ exp(s))",
)
class sink(Softmax):
    def __init__(self, n_heads: int):
        super().__init__(n_heads)
        self.score = nn.Parameter(torch.zeros(n_heads))

    def forward(self, scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        return beside(scores, allowed, self.score[:, None, None])
