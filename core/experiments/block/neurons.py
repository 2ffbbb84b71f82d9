"""FFN as key-value memory: which hidden units fire for which token (Geva et al., 2021)."""

import math
from contextlib import suppress

import pandas as pd
import torch

from core.experiments.forward import Pass
from core.model.parts import MENUS
from core.settings.setting import ConfigError


def strongest(p: Pass, layer: int, token: int) -> pd.DataFrame:
    """Return a token's 8 largest |activations|: unit (from 1), before, after. Token is from 0.

    For a gated activation, `before` is the value half.
    """
    after = p.sites["mlp_post"][layer][token]
    before = p.sites["mlp_pre"][layer][token]
    top = after.abs().argsort(descending=True, stable=True)[:8]
    return pd.DataFrame(
        {"unit": (top + 1).tolist(), "before": before[top].tolist(), "after": after[top].tolist()}
    )


NEARLY = 0.1  # of the RMS of all hidden units: below this a unit is called nearly zero


def sparsity(p: Pass, layer: int) -> pd.DataFrame:
    """Tabulate each real token of a layer: token (from 0), word, value (share of zeros), small.

    small: share of units that are nearly zero, exact zeros included.
    """
    hidden = p.sites["mlp_post"][layer][: p.n_real].double()
    zero, small, _ = (share.double().mean(-1).tolist() for share in _classify_units(hidden))
    words = p.labels[: p.n_real]
    return pd.DataFrame({"token": range(p.n_real), "word": words, "value": zero, "small": small})


def _classify_units(hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return bool masks: units that are exactly zero, nearly zero (the former too), negative."""
    rms = hidden.square().mean().sqrt()
    return hidden == 0, hidden.abs() < NEARLY * rms, hidden < 0


def every_activation(p: Pass, layer: int) -> pd.DataFrame:
    """Tabulate a layer rerun with each activation, same weights: shares zeros, small, negative.

    Everything else, weights included, stays as it is (SwiGLU adds its gate matrix; a trained model
    that has none is left out with it). NaN where activations became infinite.
    """
    rows = []
    for name in MENUS["activation"]:
        with suppress(ConfigError):
            other = p.run_with(p.config.replace(activation=name), same_weights=True)
            # In float64: squares of 1e19 leave the range of float32.
            hidden = other.sites["mlp_post"][layer][: other.n_real].double()
            shares = [math.nan] * 3
            if hidden.isfinite().all():
                shares = [float(share.float().mean()) for share in _classify_units(hidden)]
            rows.append((name, MENUS["activation"].label(name), *shares))
    return pd.DataFrame(rows, columns=["activation", "label", "zeros", "small", "negative"])


def unit_map(p: Pass, layer: int, units: int = 256) -> tuple[torch.Tensor, list[int]]:
    """Return the most active units' activations (tokens, units), and units (from 1), ascending."""
    hidden = p.sites["mlp_post"][layer][: p.n_real]
    units_shown = (
        hidden.double().square().sum(0).argsort(descending=True, stable=True)[:units].sort().values
    )
    return hidden[:, units_shown], (units_shown + 1).tolist()
