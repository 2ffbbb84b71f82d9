"""Cost of a stack from formulas: parameters, floating point operations, activation memory."""

from collections.abc import Callable
from functools import lru_cache

import pandas as pd
from torch import nn

from core.model.config import Config
from core.model.parts.activation import count_inputs
from core.model.parts.placement import AFTER, ON_OUTPUT

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def parameters(config: Config, vocabulary_size: int = 0) -> dict[str, int]:
    """Count parameters by part, shared layers once; of the blocks alone if vocabulary_size is 0.

    Keys: attention, ffn, norm, residual scale (if any); with a vocabulary also embedding,
    positions, final norm, skips, unembedding. Other missing parts count 0.
    """
    D = config.d_model
    F = config.d_ff
    gates = count_inputs(config.part("activation"))
    layers = config.n_blocks
    q, kv = (heads * config.d_head for heads in (config.n_heads, config.n_kv_heads))
    norm = _count_learned(config.part("norm"), "", D, config.bias, 1e-5, config.norm_gain)
    places = config.part("placement").norms
    sublayers = config.attention + config.ffn
    projections = D * 2 * (q + kv) + config.attention_bias * (q + 2 * kv + D)
    qk_gains = q + kv if config.qk_norm_joint else 2 * config.d_head
    heads = _count_learned(config.part("softmax"), config.n_heads)
    heads += (config.qk_norm and config.norm_gain) * qk_gains
    gate = config.gate * (D * q + config.attention_bias * q)
    scale = _count_learned(config.part("residual_scale"), D)
    counts = {
        "attention": config.attention * (projections + heads + gate) * layers,
        "ffn": config.ffn * (D * F * (gates + 1) + config.bias * (gates * F + D)) * layers,
        "norm": sublayers * norm * len(places) * layers,
        "residual scale": sublayers * scale * layers,
    }
    counts = {part: n for part, n in counts.items() if n or part != "residual scale"}
    if vocabulary_size:
        counts["embedding"] = vocabulary_size * D
        counts["positions"] = config.part("position").table_rows * D
        if config.embedding_norm:
            counts["norm on embeddings"] = norm
        counts["final norm"] = norm * (AFTER not in places)
        counts["skips"] = config.skips * (config.n_layers // 2)
        counts["unembedding"] = vocabulary_size * D * (not config.tied)
    return counts


@lru_cache(maxsize=1000)
def _count_learned(make: Callable[..., nn.Module], *arguments: float | bool | str) -> int:
    """Build a part with these arguments and count its parameters."""
    return sum(parameter.numel() for parameter in make(*arguments).parameters())


def flops(config: Config, tokens: int) -> dict[str, int]:
    """Return the blocks' forward FLOPs of one sequence by part; masks and windows save none.

    2·m·n·k per matrix product in blocks, each layer counted. Keys: "projections Q, K, V, O",
    "scores and weighted sum", "ffn".
    """
    D = config.d_model
    F = config.d_ff
    T = tokens
    layers = config.n_layers
    q, kv = (heads * config.d_head for heads in (config.n_heads, config.n_kv_heads))
    return {
        "projections Q, K, V, O": (
            config.attention * (4 * (q + kv) + 2 * q * config.gate) * T * D * layers
        ),
        "scores and weighted sum": config.attention * 4 * T * T * q * layers,
        "ffn": config.ffn * 2 * T * D * F * (count_inputs(config.part("activation")) + 1) * layers,
    }


def forward_flops(config: Config, tokens: int, vocabulary_size: int) -> int:
    """Return the forward FLOPs of one sequence, of blocks and unembedding together."""
    return sum(flops(config, tokens).values()) + 2 * tokens * config.d_model * vocabulary_size


def kv_cache_bytes(config: Config, tokens: int, dtype: str = "float32") -> int:
    """Return the bytes of one sequence's KV cache, over all layers; windows limit its tokens."""
    if not config.attention:
        return 0
    per_token = 2 * config.n_kv_heads * config.d_head * BYTES[dtype]
    windows = map(config.window_in, range(config.n_layers))
    return sum(per_token * min(tokens, window or tokens) for window in windows)


def activation_bytes(config: Config, tokens: int, dtype: str = "float32") -> dict[str, int]:
    """Return a traced sequence's bytes: "token vectors", "attention weights", "hidden units"."""
    D = config.d_model
    F = config.d_ff
    T = tokens
    H = config.n_heads
    layers = config.n_layers
    places = config.part("placement").norms
    raw = ON_OUTPUT in places or config.residual_scale != "none"
    normalises = config.part("norm").normalises
    of_sublayer = 2 + normalises * len(places) + raw
    vectors = (
        1 + config.attention * of_sublayer + (of_sublayer if config.ffn else 1)
    )  # resid_pre first
    of_input = 1 + config.embedding_norm * (1 + normalises)  # embed; embed_raw, ln_embed
    of_heads = (
        config.attention * ((2 + config.gate) * H + 2 * config.n_kv_heads) * config.d_head
    )  # q, gate, z; k, v
    size = BYTES[dtype]
    return {
        "token vectors": size * T * (D * of_input + layers * (D * vectors + of_heads)),
        "attention weights": size * layers * config.attention * 2 * H * T * T,
        "hidden units": (
            size * layers * config.ffn * T * F * (1 + count_inputs(config.part("activation")))
        ),
    }


def bytes_for_backward(config: Config, tokens: int, dtype: str = "float32") -> int:
    """Return the bytes, for one sequence, that backward needs beyond what a trace records.

    Scores before caps and masks, queries and keys before their norm, keys and values per query
    head, mixed values, and streams that wait for a skip.
    """
    scores = (
        bool(config.score_cap)
        + (config.mask != "none" or bool(config.window))
        + (config.softmax != "usual")
    )
    of_heads = (
        config.qk_norm * 2 * (config.n_heads + config.n_kv_heads)
        + config.value_residual * config.n_kv_heads
    )
    of_heads += 2 * config.n_heads * (config.n_kv_heads < config.n_heads)
    numbers = (
        config.attention * (scores * config.n_heads * tokens + of_heads * config.d_head)
        + config.skips * config.d_model
    )
    return BYTES[dtype] * config.n_layers * tokens * numbers


def run_bytes(config: Config, tokens: int, vocabulary_size: int, dtype: str = "float32") -> int:
    """Estimate the bytes of a traced pass of one sequence: weights, activations, a fifth on top."""
    copied = dtype != "float32"
    weights = sum(parameters(config, vocabulary_size).values()) * (4 + copied * BYTES[dtype])
    recorded = 2 * (
        sum(activation_bytes(config, tokens, dtype).values())
        + bytes_for_backward(config, tokens, dtype)
    )
    recorded_bytes = copied * sum(activation_bytes(config, tokens).values())
    return int(1.2 * (weights + recorded + recorded_bytes))


def flops_by_length(config: Config) -> pd.DataFrame:
    """Tabulate the FLOPs of 8, 16, … 1,024 tokens: tokens, part (of flops(), if not 0), value."""
    lengths = (8, 16, 32, 64, 128, 256, 512, 1024)
    rows = [
        (length, part, value)
        for length in lengths
        for part, value in flops(config, length).items()
        if value
    ]
    return pd.DataFrame(rows, columns=["tokens", "part", "value"])
