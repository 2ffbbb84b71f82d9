"""The block stage by stage, and one token's norm in detail."""

import re

import pandas as pd
import torch

from core.experiments.forward import Pass
from core.model.parts.norm import EPSILON, norm
from core.model.parts.position import adds_to_tokens
from core.settings.setting import ConfigError
from core.settings.wording import shorten

# numbers; and how large one may be, so that no square leaves its range
MOST = 64
LARGEST = 1e100
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
SIGNS = str.maketrans("−–", "--")  # as they are typeset
HOW = "enter comma-separated numbers, such as 3.2, −1.5, 0.8."


def read_vector(text: str) -> list[float]:
    """Parse comma-separated numbers, "3.2, −1.5"; [] for an empty text, ConfigError if invalid."""
    if not text.strip():
        return []
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MOST:
        raise ConfigError("vector", f"vector has {len(parts)} numbers; at most {MOST} are allowed.")
    values = []
    for part in parts:
        if not part:
            raise ConfigError("vector", f"vector has a comma without a number; {HOW}")
        plain = part.translate(SIGNS)
        if not NUMBER.fullmatch(plain):
            raise ConfigError(
                "vector", f"vector contains {shorten(part, 20)}, which is not a number; {HOW}"
            )
        values.append(float(plain))
        if abs(values[-1]) > LARGEST:
            raise ConfigError(
                "vector",
                f"vector contains {shorten(part, 20)}; the largest number allowed is 1e100.",
            )
    return values


def moments(values: list[float] | torch.Tensor, eps: float = EPSILON) -> dict[str, float]:
    """Return "mean", "variance" (divided by n) and "mean square" of all values, and "epsilon"."""
    x = torch.as_tensor(values, dtype=torch.float64)
    return {
        "mean": x.mean().item(),
        "variance": x.var(correction=0).item(),
        "mean square": x.square().mean().item(),
        "epsilon": eps,
    }


@torch.inference_mode()
def apply_every_norm(values: list[float], eps: float = EPSILON) -> pd.DataFrame:
    """Apply every norm, untrained, to values: columns place (from 1), typed, one per norm's key."""
    x = torch.tensor(values, dtype=torch.float64)
    modules = {name: part("typed", len(values), eps=eps).double() for name, part in norm.items()}
    columns = {name: module(x[None, None])[0, 0].tolist() for name, module in modules.items()}
    return pd.DataFrame({"place": range(1, len(values) + 1), "typed": values} | columns)


STAGES = {  # recorded sites in plain words
    "embed_raw": "Token vectors, before their norm",
    "ln_embed": "Norm of token vectors",
    "embed": "Token vectors + positions",
    "resid_pre": "Block input",
    "ln1": "Norm 1",
    "attn_raw": "Attention, before its norm",
    "ln1_post": "Second norm 1",
    "attn_out": "Attention output",
    "resid_mid": "Sum after attention",
    "ln2": "Norm 2",
    "mlp_pre": "Hidden units before activation",
    "mlp_post": "Hidden units after activation",
    "mlp_raw": "Feed-forward, before its norm",
    "ln2_post": "Second norm 2",
    "mlp_out": "Feed-forward output",
    "resid_post": "Sum after feed-forward",
}

OF_INPUT = ("embed_raw", "ln_embed", "embed")  # recorded once, before the first block


def list_stages(p: Pass) -> list[str]:
    """List the stages of a layer, as hook names, in the order in which the pass computed them."""
    return [site for site in p.sites if site in STAGES]


def stage_name(p: Pass, site: str) -> str:
    """Return the name of a stage in this model, such as "Norm 1"; it says if a residual is off."""
    if site == "embed" and p.config.embedding_norm:
        return "Token vectors, normalised"
    if site == "embed" and not adds_to_tokens(p.config.part("position")):
        return "Token vectors"
    if site == "resid_mid" and not p.config.residual_attention:
        return "Attention alone (residual off)"
    if site == "resid_post" and not p.config.ffn:
        return "Output of the block"
    if site == "resid_post" and not p.config.residual_ffn:
        return "Feed-forward alone (residual off)"
    return STAGES[site]


def stages(p: Pass, layer: int) -> pd.DataFrame:
    """Return a row per stage of a layer (from 0): stage (name), site, shape (text), statistics."""
    wide = p.statistics.query("layer == @layer").pivot(
        index="site", columns="meter", values="value"
    )
    sites = [site for site in list_stages(p) if site not in OF_INPUT or layer == 0]
    table = wide.loc[sites].reset_index()
    table.insert(0, "stage", [stage_name(p, site) for site in sites])
    table.insert(2, "shape", [" × ".join(map(str, p.sites[site][layer].shape)) for site in sites])
    meters = list(p.statistics.meter.unique())
    return table[["stage", "site", "shape", *meters]]


def norm_placements(p: Pass) -> dict[str, tuple[str, str]]:
    """Return {norm site: (sub-layer, place)}: "before", "on the output of", or "after" its sum."""
    places = p.config.part("placement").norms
    return {
        f"{site}{second}": (sublayer, place)
        for site, sublayer in (("ln1", "attention"), ("ln2", "ffn"))
        for second, place in zip(("", "_post"), places)
        if f"{site}{second}" in p.sites
    }


def norm_input(p: Pass, site: str) -> str:
    """Return the name of the hook that a norm of the model, such as "ln2_post", reads."""
    sublayer, place = norm_placements(p)[site]
    if place == "on the output of":
        return {"attention": "attn_raw", "ffn": "mlp_raw"}[sublayer]
    if place == "after":
        return {"attention": "resid_mid", "ffn": "resid_post"}[sublayer]
    beside = sublayer == "attention" or p.config.parallel or not p.config.attention
    return "resid_pre" if beside else "resid_mid"


def token_through_norm(
    p: Pass, layer: int, site: str, token: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Tabulate a token through a norm: dimension (from 1), before, after; also moments() before.

    Variance is the population variance (divided by n), as the norm uses it. Gain and bias are 1 and
    0 in a model that was not trained, so `after` is the normalised vector itself.
    """
    before = p.sites[norm_input(p, site)][layer][token]
    after = p.sites[site][layer][token]
    table = pd.DataFrame(
        {"dimension": range(1, len(before) + 1), "before": before.numpy(), "after": after.numpy()}
    )
    return table, moments(before, p.config.norm_eps)
