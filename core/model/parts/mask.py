"""Which keys a query may attend to, before padding is taken into account."""

import functools
from typing import Any

import torch

from core.settings.menu import Menu

# looks_ahead: whether a token may see what comes after it. Then all are computed again for every
# new one (kv_cache.py).
# sees_all_before: whether it may see everything that came before it, so that the newest one needs
# no mask.
mask: Menu[Any] = Menu("Mask", looks_ahead=True, sees_all_before=False)


@mask.register("none", label="None", help="each token attends to all tokens, as in BERT.")
def none(length: int, device: torch.device | None = None) -> None:
    """Return None: every key is allowed."""


@mask.register(
    "causal",
    label="Causal",
    help="a token attends to itself and to earlier tokens only, as in GPT.",
    looks_ahead=False,
    sees_all_before=True,
)
def causal(length: int, device: torch.device | None = None) -> torch.Tensor:
    """Return True where the key is not later than the query: bool (T, T)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


@functools.lru_cache(maxsize=64)
@torch.inference_mode(False)  # kept for a training that comes later, too
def window_mask(
    window: int, queries: int, keys: int, device: torch.device | None = None
) -> torch.Tensor:
    """Return which keys are less than `window` away from each query: bool (queries, keys).

    On either side; 1 is the query alone. The queries are the last of the keys (Beltagy et al.,
    2020, section 3.1).
    """
    positions = torch.arange(keys, device=device)
    return (positions - positions[keys - queries :, None]).abs() < window


def restrict_to_window(
    allowed: torch.Tensor, window: int
) -> torch.Tensor:  # bool (T, T) -> the same
    """Return the allowed keys that are in the window too, bool (T, T); window 0 for all."""
    return allowed & window_mask(window, *allowed.shape[-2:], allowed.device) if window else allowed
