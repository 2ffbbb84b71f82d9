"""Euclidean norms of many tensors together, also where float32 cannot hold the sum of their squares."""

from collections.abc import Iterable

import torch

from core.settings.device import in_float64


def total_norm(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return the norm over all numbers of these tensors. It is infinite or NaN only if one of the numbers is."""
    given = list(tensors)
    norm = torch.nn.utils.get_total_norm(given)
    if not norm.isfinite():  # squares beyond 3.4e38: numbers from 1.8e19
        norm = torch.nn.utils.get_total_norm([in_float64(x) for x in given])
    return norm


def norms_by_seed(tensors: Iterable[torch.Tensor]) -> torch.Tensor:  # several (S, …) -> (S,)
    """Return the same norm for each seed of weights that stand side by side."""
    numbers = torch.cat([x.flatten(1) for x in tensors], 1)
    norms: torch.Tensor = numbers.norm(dim=1)
    if not norms.isfinite().all():
        wide = in_float64(numbers).norm(dim=1)
        norms = in_float64(norms)
        norms = torch.where(norms.isfinite(), norms, wide)  # the other seeds keep what they would have alone
    return norms


def clip_gradients(parameters: Iterable[torch.Tensor], clip: float, norm: torch.Tensor) -> None:
    """Shorten all gradients together to this norm, as torch.nn.utils.clip_grads_with_norm_ does, whatever type the norm has."""
    shorter = (clip / (norm + 1e-6)).clamp(max=1.0).item()
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.mul_(shorter)
