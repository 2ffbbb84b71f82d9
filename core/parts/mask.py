"""Which keys a query may attend to, before padding is taken into account."""

import torch

from core.menu import Menu

mask = Menu("Mask")


@mask
def none(length, device=None):
    """None: every token sees every token, as in BERT."""
    return None


@mask
def causal(length, device=None):
    """Causal: a token sees itself and what came before it, never the future, as in GPT."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
