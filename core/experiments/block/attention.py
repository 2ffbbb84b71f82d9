"""Attention of one pass: what each head does, and every step of one head by hand."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
import torch

from core.experiments.forward import Pass
from core.measure.stream_statistics import row_entropy
from core.model.attention import cap_logits
from core.model.config import Config
from core.model.parts.placement import ON_OUTPUT
from core.model.variants import apply
from core.settings.setting import ConfigError
from core.settings.wording import count

Pair = tuple[int, int]  # a reader, and what it depends on: token numbers


def pair_attention(p: Pass, layer: int, pairs: Iterable[Pair]) -> pd.DataFrame:
    """Tabulate attention on given keys, summed per query, mean: head (from 1), value, uniform.

    `uniform` is the same for attention spread evenly over all visible keys.

    Args:
        p: The recorded pass.
        layer: Index of the layer, from 0.
        pairs: (query, key) token indices, from 0; at least one.
    """
    readers: dict[int, list[int]] = {}
    for reader, other in pairs:
        readers.setdefault(reader, []).append(other)
    pattern = p.sites["pattern"][layer]
    allowed = p.allowed_in(layer)
    rows = []
    for head in range(len(pattern)):
        shares = [pattern[head, reader, others].sum().item() for reader, others in readers.items()]
        even = [
            allowed[reader, others].sum().item() / max(1, allowed[reader].sum().item())
            for reader, others in readers.items()
        ]
        rows.append((head + 1, sum(shares) / len(shares), sum(even) / len(even)))
    return pd.DataFrame(rows, columns=["head", "value", "uniform"])


def read_pairs(text: str, n_tokens: int) -> tuple[tuple[Pair, ...], list[str]]:
    """Parse "12-1,13-1", query-key from 1, into index pairs from 0, and notes on invalid parts.

    Notes are sentences, at most three.
    """
    pairs: list[Pair] = []
    notes = []
    for part in filter(None, text.split(",")):
        ends = part.split("-")
        if len(ends) == 2 and all(
            e.isascii() and e.isdigit() and len(e) < 5 and 1 <= int(e) <= n_tokens for e in ends
        ):
            pair = (int(ends[0]) - 1, int(ends[1]) - 1)
            pairs += [pair] if pair not in pairs else []
        else:
            notes.append(
                f"pairs contains {part[:20]!r}, which is ignored; a pair is two token numbers from"
                f" 1 to {n_tokens}, such as 12-2."
            )
    return tuple(pairs), notes[:3]


def write_pairs(pairs: Iterable[Pair]) -> str:
    """Return pairs of token indices as text for a link: (11, 0) becomes "12-1"."""
    return ",".join(f"{a + 1}-{b + 1}" for a, b in pairs)


HEADS = (1, 4, 8)  # that are compared on the same sentence


def patterns(p: Pass, layer: int) -> torch.Tensor:
    """Return a copy of a layer's attention weights (H, T, T), NaN for keys that are not visible."""
    return p.sites["pattern"][layer].masked_fill(~p.allowed_in(layer), math.nan)


def weight_table(p: Pass) -> pd.DataFrame:
    """Tabulate every visible attention weight: layer, head, query, key (all from 1) and weight."""
    rows = [
        (layer, head, query + 1, key + 1, pattern[query, key].item())
        for layer, patterns in enumerate(p.sites.get("pattern", []), 1)
        for head, pattern in enumerate(patterns, 1)
        for query, key in p.allowed_in(layer - 1).nonzero().tolist()
    ]
    return pd.DataFrame(rows, columns=["layer", "head", "query", "key", "weight"])


def vary_head_count(config: Config) -> dict[int, Config | None]:
    """Return {heads: config} for HEADS; None unless they divide d_model; no RoPE if unfit."""
    configs: dict[int, Config | None] = {}
    for number in HEADS:
        try:
            configs[number] = (
                None if config.d_model % number else apply({"n_heads": number}, config)
            )
        except ConfigError:
            configs[number] = apply({"n_heads": number, "position": "none"}, config)
    return configs


def measure_heads(p: Pass, layer: int) -> pd.DataFrame:
    """Tabulate head (from 1), meter (entropy, distance, self, uniform), value: mean of queries.

    entropy in bits; distance: how many tokens away it looks on average (weighted mean of |query −
    key|); self: the weight on the token itself; uniform: the entropy of uniform attention over all
    visible keys.
    """
    weights = p.sites["pattern"][layer][:, : p.n_real]  # (H, readers, T)
    positions = torch.arange(weights.shape[-1])
    away = (positions - positions[: p.n_real, None]).abs().float()
    uniform = p.allowed_in(layer)[: p.n_real].sum(-1).clamp_min(1).float().log2().mean().item()
    columns = {
        "entropy": row_entropy(weights).mean(-1),
        "distance": (weights * away).sum(-1).mean(-1),
        "self": weights.diagonal(dim1=-2, dim2=-1).mean(-1),
    }
    rows = [
        (head + 1, name, float(v))
        for name, values in columns.items()
        for head, v in enumerate(values)
    ]
    rows += [(head + 1, "uniform", uniform) for head in range(len(weights))]
    return pd.DataFrame(rows, columns=["head", "meter", "value"])


def head_similarity(p: Pass, layer: int) -> torch.Tensor:
    """Return the cosine similarity of heads' patterns, (H, H); real queries, hidden keys as 0."""
    flat = torch.nn.functional.normalize(
        p.sites["pattern"][layer][:, : p.n_real].flatten(1), dim=-1
    )
    return flat @ flat.T


@dataclass(frozen=True)
class Step:
    """Matrix of one attention step, with its formula and explanation."""

    name: str
    formula: str
    explanation: str
    matrix: torch.Tensor  # (rows, columns)
    columns: str  # "token" or "dimension"


def list_head_steps(p: Pass, layer: int, head: int) -> list[Step]:
    """List a head's steps with their matrices, queries to output; layer and head are from 0.

    Raw scores are recomputed from q and k; everything else is what the model itself computed.
    """
    c = p.config
    sites = p.sites
    group = group_of(c, head)
    q = sites["q"][layer][head]
    k = sites["k"][layer][group]
    v = sites["v"][layer][group]
    scores = sites["scores"][layer][head]
    z = sites["z"][layer]
    written = sites.get("attn_raw", sites["attn_out"])[layer]
    visible = scores.masked_fill(~p.allowed_in(layer), -math.inf)

    position = c.position_in(layer)
    window = c.window_in(layer)
    bias = c.attention_bias
    normed = ""
    if c.qk_norm:
        which = "all heads together" if c.qk_norm_joint else "each head"
        normed = f", {which} normalised (QK-norm)"
    turned = f"{normed}{position.on_queries}"
    shared = ""
    if c.n_kv_heads < c.n_heads:
        shared = f", key-value head {group + 1} of {c.n_kv_heads}"
    values = f"x·W_V{' + b_V' if bias else ''}"
    if c.value_residual and layer:
        values = f"½ · ({values}) + ½ · V of layer 1"
    sized = "Unchanged: scaling is off."
    if c.scale:
        sized = f"Divided by √{c.d_head}, so that the softmax does not saturate."
    cap = ""
    if c.score_cap:
        cap = f"{c.score_cap:g} · tanh(… / {c.score_cap:g}) of "
        sized += f" Then soft-capped to between −{c.score_cap:g} and {c.score_cap:g}."
    hidden = "Masked positions are set to −∞."
    if window:
        hidden += (
            f" Sliding window of {count(window, 'token')} in this layer, current one included."
        )
    softmax = c.part("softmax")
    adds_up = "a row may sum to less than 1: the remainder is discarded"
    if softmax.sums_to_one:
        adds_up = "each row sums to 1"
    dropped = " Dropout was applied to the weights." if p.dropout else ""
    about = f"Each token's average of the values, weighted by attention.{dropped}"
    does = (
        "is added to the residual stream"
        if c.residual_attention
        else "replaces the residual stream"
    )
    if ON_OUTPUT in c.part("placement").norms and c.part("norm").normalises:
        does = f"passes through its norm and {does}"

    mixture = [Step("Weighted sum", "z = weights · V", about, z[head], "dimension")]
    if c.gate:
        opens = "A factor for each dimension of the head's output: 0 blocks it, 1 passes it on."
        gate = sites["gate"][layer][head]
        mixture = [
            Step("Gate", f"sigmoid(x·W_G{' + b_G' if bias else ''})", opens, gate, "dimension"),
            Step(
                "Weighted sum",
                "z = (weights · V) × gate",
                f"{about} Multiplied by the gate.",
                z[head],
                "dimension",
            ),
        ]
    return [
        Step(
            "Queries",
            f"Q = x·W_Q{' + b_Q' if bias else ''}{turned}",
            "What each token is looking for.",
            q,
            "dimension",
        ),
        Step(
            "Keys",
            f"K = x·W_K{' + b_K' if bias else ''}{turned}{shared}",
            "What each token advertises.",
            k,
            "dimension",
        ),
        Step(
            "Values",
            f"V = {values}{shared}",
            "What each token passes on when attended to.",
            v,
            "dimension",
        ),
        Step("Raw scores", "Q·Kᵀ", "How well each query matches each key.", q @ k.T, "token"),
        Step(
            "Scaled scores",
            f"{cap}Q·Kᵀ{f' / √{c.d_head}' if c.scale else ''}{position.on_scores}",
            sized,
            scores,
            "token",
        ),
        Step("Mask", "−∞ at masked positions", hidden, visible, "token"),
        Step(
            "Softmax",
            softmax.formula,
            f"Attention weights: 0 or more, 0 at masked positions; {adds_up}.",
            sites["pattern"][layer][head],
            "token",
        ),
        *mixture,
        Step(
            "Concatenation",
            "all heads side by side",
            "The weighted sums of all heads, concatenated.",
            z.transpose(0, 1).flatten(1),
            "dimension",
        ),
        Step(
            "Output projection",
            f"concat·W_O{' + b_O' if bias else ''}",
            f"Mixes the heads; this {does}.{dropped}",
            written,
            "dimension",
        ),
    ]


def group_of(config: Config, head: int) -> int:
    """Return the key-value group that a head reads; both counted from 0."""
    return head * config.n_kv_heads // config.n_heads


@torch.no_grad()
def entropy_by_scaling(p: Pass, layer: int, head: int) -> dict[str, float]:
    """Return a head's mean entropies (bits): "scaled" by 1/√d_k, "unscaled" and "uniform".

    Over real queries; the first two are recomputed with the model's softmax and position bias.
    """
    c = p.config
    q = p.sites["q"][layer][head]
    k = p.sites["k"][layer][group_of(c, head)]
    entropies = {}
    length = len(q)
    allowed = p.allowed_in(layer)
    bias = c.position_in(layer)(c).bias(torch.zeros(1, c.n_heads, length, length))[0, head]
    readers = allowed.any(-1)
    readers[p.n_real :] = False
    softmax = c.part("softmax")(c.n_heads)
    for parameter, learnt in zip(softmax.parameters(), p.softmax[c.block_of(layer)]):
        parameter.data = learnt
    for name, divisor in (("scaled", math.sqrt(c.d_head)), ("unscaled", 1.0)):
        scores = (q @ k.T) / divisor
        scores = (cap_logits(scores, c.score_cap) if c.score_cap else scores) + bias
        scores = scores.masked_fill(~allowed, -math.inf)[readers]
        weights = softmax(scores.expand(1, c.n_heads, *scores.shape))[
            0, head
        ]  # a head may have a sink of its own
        entropies[name] = row_entropy(weights).mean().item()
    entropies["uniform"] = allowed[readers].sum(-1).float().log2().mean().item()
    return entropies
