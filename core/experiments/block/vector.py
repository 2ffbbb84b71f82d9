"""A vector that somebody types in, and what every norm makes of it: the parts of the model themselves, in float64."""

import re

import pandas as pd
import torch

from core.model.parts.norm import EPSILON, norm
from core.settings.setting import ConfigError
from core.settings.wording import shorten

MOST, LARGEST = 64, 1e100  # numbers; and how large one may be, so that no square leaves its range
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
SIGNS = str.maketrans("−–", "--")  # as they are typeset
HOW = "type numbers with commas between them, as 3.2, −1.5, 0.8."


def read_vector(text: str) -> list[float]:
    """ "3.2, −1.5, 0.8" -> numbers; none for a text that is empty. Raises ConfigError for what is no list of numbers."""
    if not text.strip():
        return []
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MOST:
        raise ConfigError("vector", f"vector has {len(parts)} numbers; it may have {MOST}.")
    return [_read(part) for part in parts]


def _read(part: str) -> float:
    if not part:
        raise ConfigError("vector", f"vector has a comma with no number beside it; {HOW}")
    plain = part.translate(SIGNS)
    if not NUMBER.fullmatch(plain):
        raise ConfigError("vector", f"vector holds {shorten(part, 20)}, which is no number; {HOW}")
    value = float(plain)
    if abs(value) > LARGEST:
        raise ConfigError("vector", f"vector holds {shorten(part, 20)}; a number may be as large as 1e100.")
    return value


def moments(values: list[float] | torch.Tensor, eps: float = EPSILON) -> dict[str, float]:
    """Return mean, variance (divided by n) and mean square in float64, and the norms' epsilon."""
    x = torch.as_tensor(values, dtype=torch.float64)
    return {
        "mean": x.mean().item(),
        "variance": x.var(correction=0).item(),
        "mean square": x.square().mean().item(),
        "epsilon": eps,
    }


@torch.inference_mode()
def normed(values: list[float], eps: float = EPSILON) -> pd.DataFrame:
    """One row per number: place, typed, and one column for every entry of the menu of norms, by its name there."""
    x = torch.tensor(values, dtype=torch.float64)
    modules = {name: part("typed", len(values), eps=eps).double() for name, part in norm.items()}
    columns = {name: module(x[None, None])[0, 0].tolist() for name, module in modules.items()}
    return pd.DataFrame({"place": range(1, len(values) + 1), "typed": values} | columns)
