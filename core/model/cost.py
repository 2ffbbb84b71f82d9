"""What a stack costs: parameters by part, floating point operations, memory of activations. Formulas, no running."""

from collections.abc import Callable
from functools import lru_cache

import pandas as pd
from torch import nn

from core.model.config import Config
from core.model.parts.activation import inputs
from core.model.parts.placement import norm_places

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def parameters(config: Config, vocabulary: int = 0) -> dict[str, int]:
    """Numbers to learn, by part, over all layers. `vocabulary`: how many different tokens (0: the blocks alone)."""
    D = config.d_model
    F = config.d_ff
    gates = inputs(config.part("activation"))
    layers = config.n_blocks
    q, kv = (heads * config.d_head for heads in (config.n_heads, config.n_kv_heads))
    norm = _learned(config.part("norm"), "", D, config.bias)
    places = norm_places(config.part("placement"))
    sublayers = config.attention + config.ffn
    projections = D * 2 * (q + kv) + config.attention_bias * (q + 2 * kv + D)
    heads = _learned(config.part("softmax"), config.n_heads) + config.qk_norm * 2 * config.d_head
    gate = config.gate * (D * q + config.attention_bias * q)
    scale = _learned(config.part("residual_scale"), D)
    counts = {
        "attention": config.attention * (projections + heads + gate) * layers,
        "ffn": config.ffn * (D * F * (gates + 1) + config.bias * (gates * F + D)) * layers,
        "norm": sublayers * norm * len(places) * layers,
        "residual scale": sublayers * scale * layers,
    }
    counts = {part: n for part, n in counts.items() if n or part != "residual scale"}
    if vocabulary:
        counts["embedding"] = vocabulary * D
        counts["positions"] = config.part("position").table_rows * D
        counts["final norm"] = norm * ("after" not in places)
        counts["skips"] = config.skips * (config.n_layers // 2)
        counts["unembedding"] = vocabulary * D * (not config.tied)
    return counts


@lru_cache(maxsize=1000)
def _learned(make: Callable[..., nn.Module], *arguments: int | bool | str) -> int:
    """The same of a part that has yet to be made; it is made once, as making it costs more than all formulas here."""
    return sum(parameter.numel() for parameter in make(*arguments).parameters())


def flops(config: Config, tokens: int) -> dict[str, int]:
    """Floating point operations of the blocks' matrix products for one sequence: 2·m·n·k each, by part."""
    D = config.d_model
    F = config.d_ff
    T = tokens
    layers = config.n_layers
    q, kv = (heads * config.d_head for heads in (config.n_heads, config.n_kv_heads))
    return {
        "projections Q, K, V, O": config.attention * (4 * (q + kv) + 2 * q * config.gate) * T * D * layers,
        "scores and weighted sum": config.attention * 4 * T * T * q * layers,
        "ffn": config.ffn * 2 * T * D * F * (inputs(config.part("activation")) + 1) * layers,
    }


def forward_flops(config: Config, tokens: int, vocabulary: int) -> int:
    """Floating point operations of one sequence on its way forward, its scores for every word of the vocabulary included."""
    return sum(flops(config, tokens).values()) + 2 * tokens * config.d_model * vocabulary


def kept_bytes(config: Config, tokens: int, dtype: str = "float32") -> int:
    """Bytes of the keys and values that are kept while a text of so many tokens goes on: of a layer with a window no more than
    it holds (core/model/kv_cache.py)."""
    if not config.attention:
        return 0
    per_token = 2 * config.n_kv_heads * config.d_head * BYTES[dtype]
    windows = map(config.window_in, range(config.n_layers))
    return sum(per_token * min(tokens, window or tokens) for window in windows)


def activations(config: Config, tokens: int, dtype: str = "float32") -> dict[str, int]:
    """Bytes of everything a trace records in one pass, by part (a tensor that stands at two sites counts twice)."""
    D = config.d_model
    F = config.d_ff
    T = tokens
    H = config.n_heads
    layers = config.n_layers
    places = norm_places(config.part("placement"))
    raw = "on the output of" in places or config.residual_scale != "none"
    of_sublayer = 2 + config.part("norm").normalises * len(places) + raw
    vectors = 1 + config.attention * of_sublayer + (of_sublayer if config.ffn else 1)  # resid_pre first
    of_heads = config.attention * ((2 + config.gate) * H + 2 * config.n_kv_heads) * config.d_head  # q, gate, z; k, v
    size = BYTES[dtype]
    return {
        "token vectors": size * T * (D + layers * (D * vectors + of_heads)),
        "attention weights": size * layers * config.attention * 2 * H * T * T,
        "hidden units": size * layers * config.ffn * T * F * (1 + inputs(config.part("activation"))),
    }


def between(config: Config, tokens: int, dtype: str = "float32") -> int:
    """Bytes of what no trace records and the way back needs: scores before a cap and a mask, queries and keys before their norm, keys and
    values as each query head has them, mixed values, streams that wait to be skipped to."""
    scores = bool(config.score_cap) + (config.mask != "none" or bool(config.window)) + (config.softmax != "usual")
    of_heads = config.qk_norm * 2 * (config.n_heads + config.n_kv_heads) + config.value_residual * config.n_kv_heads
    of_heads += 2 * config.n_heads * (config.n_kv_heads < config.n_heads)
    numbers = (
        config.attention * (scores * config.n_heads * tokens + of_heads * config.d_head) + config.skips * config.d_model
    )
    return BYTES[dtype] * config.n_layers * tokens * numbers


def run_bytes(config: Config, tokens: int, vocabulary: int, dtype: str = "float32") -> int:
    """Memory a traced pass asks for: weights as drawn (float32) and in another precision, activations as recorded, as
    many again under way, and in float32 for those who look; a fifth on top."""
    copied = dtype != "float32"
    weights = sum(parameters(config, vocabulary).values()) * (4 + copied * BYTES[dtype])
    recorded = 2 * (sum(activations(config, tokens, dtype).values()) + between(config, tokens, dtype))
    recorded_bytes = copied * sum(activations(config, tokens).values())
    return int(1.2 * (weights + recorded + recorded_bytes))


def by_length(config: Config) -> pd.DataFrame:
    """How cost grows with the text: tokens, part, value (operations)."""
    lengths = (8, 16, 32, 64, 128, 256, 512, 1024)
    rows = [(length, part, value) for length in lengths for part, value in flops(config, length).items() if value]
    return pd.DataFrame(rows, columns=["tokens", "part", "value"])
