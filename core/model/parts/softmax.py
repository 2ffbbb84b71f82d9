"""Softmax variants: from scores to weights."""

import math

import torch
from torch import nn

from core.settings.menu import Menu

# sums_to_one: whether a row of weights adds up to 1; formula: the text of the step-by-step view.
softmax: Menu[type["Softmax"]] = Menu("Softmax", sums_to_one=True, formula="exp(s) / Σ exp(s)")


class Softmax(nn.Module):
    """Base class of softmax variants.

    Args:
        n_heads: Number of attention heads.
    """

    def __init__(self, n_heads: int):
        super().__init__()

    def forward(self, scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        """Return attention weights, (B, H, T, K); NotImplementedError in this base class.

        Args:
            scores: Scores before the mask, (B, H, T, K).
            allowed: True where a query may attend to a key, bool, broadcastable to the scores;
                None for everywhere.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how scores become weights")


def masked_softmax(scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
    """Apply softmax to the allowed scores; a query without any allowed key gets zeros.

    Args:
        scores: Scores before the mask, (…, T, K).
        allowed: True where a query may attend to a key, bool, broadcastable to the scores; None for
            everywhere.
    """
    if allowed is None:
        return scores.softmax(-1)
    # A row of −inf would give NaN, and NaN gradients even if it were overwritten: such rows pass
    # the softmax unmasked.
    sees_nothing = ~allowed.any(-1, keepdim=True)
    masked = scores.masked_fill(~(allowed | sees_nothing), -math.inf)
    return masked.softmax(-1).masked_fill(sees_nothing, 0.0)


def softmax_with_extra_score(
    scores: torch.Tensor, allowed: torch.Tensor | None, extra: torch.Tensor
) -> torch.Tensor:
    """Apply softmax to the allowed scores and one more, whose column is dropped from the result.

    Args:
        scores: Scores before the mask, (…, T, K).
        allowed: True where a query may attend to a key; None for everywhere.
        extra: Additional score, broadcastable to (…, T, 1).
    """
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    extra = extra.to(scores).expand(*scores.shape[:-1], 1)
    return torch.cat([scores, extra], -1).softmax(-1)[..., :-1]


@softmax.register(
    "usual",
    label="Softmax",
    help="weights sum to 1, so a head always attends somewhere (Vaswani et al., 2017).",
)
class StandardSoftmax(Softmax):
    """Standard softmax."""

    def forward(self, scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        """Return exp(s) / Σ exp(s) over the allowed keys, (B, H, T, K); zeros if there is none."""
        return masked_softmax(scores, allowed)


@softmax.register(
    "off_by_one",
    label="Softmax + 1",
    help="+1 in the denominator, so a head can attend to nothing (Miller, 2023).",
    sums_to_one=False,
    formula="exp(s) / (1 + Σ exp(s))",
)
class OffByOneSoftmax(Softmax):
    """Softmax with 1 added to the denominator."""

    def forward(self, scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        """Return exp(s) / (1 + Σ exp(s)) over the allowed keys, (B, H, T, K); zeros without any."""
        return softmax_with_extra_score(scores, allowed, torch.zeros(1))


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
class SinkSoftmax(Softmax):
    """Softmax with a learned sink logit per head."""

    def __init__(self, n_heads: int):
        super().__init__(n_heads)
        self.score = nn.Parameter(torch.zeros(n_heads))

    def forward(self, scores: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        """Return exp(s) / (exp(sink) + Σ exp(s)) over the allowed keys, (B, H, T, K)."""
        return softmax_with_extra_score(scores, allowed, self.score[:, None, None])
