"""What a stack costs: parameters by part, floating point operations, memory of activations. Formulas, no running."""

import pandas as pd

from core.config import Config
from core.parts.activation import inputs

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def parameters(config: Config, vocabulary: int = 0) -> dict[str, int]:
    """Numbers to learn, by part, over all layers. `vocabulary`: how many different tokens (0: the blocks alone)."""
    D, F, gates, layers = config.d_model, config.d_ff, inputs(config.part("activation")), config.n_layers
    norm = sum(p.numel() for p in config.part("norm")("", D, config.bias).parameters())
    sublayers = config.attention + config.ffn
    made = {
        "attention": config.attention * (4 * D * D + config.bias * 4 * D) * layers,
        "ffn": config.ffn * (D * F * (gates + 1) + config.bias * (gates * F + D)) * layers,
        "norm": sublayers * norm * layers,
    }
    if vocabulary:
        made["embedding"] = vocabulary * D
        made["positions"] = config.part("position").table_rows * D
        made["last norm"] = norm * config.part("placement").final_norm
        made["unembedding"] = vocabulary * D
    return made


def flops(config: Config, tokens: int) -> dict[str, int]:
    """Floating point operations of the blocks' matrix products for one sequence: 2·m·n·k each, by part."""
    D, F, T, layers = config.d_model, config.d_ff, tokens, config.n_layers
    return {
        "projections Q, K, V, O": config.attention * 8 * T * D * D * layers,
        "scores and weighted sum": config.attention * 4 * T * T * D * layers,
        "ffn": config.ffn * 2 * T * D * F * (inputs(config.part("activation")) + 1) * layers,
    }


def activations(config: Config, tokens: int, dtype: str = "float32") -> dict[str, int]:
    """Bytes of everything a trace records in one pass, by part."""
    D, F, T, H, layers = config.d_model, config.d_ff, tokens, config.n_heads, config.n_layers
    per = BYTES[dtype] * layers
    return {
        "token vectors": per * T * D * (1 + config.attention * 7 + config.ffn * 3),
        "attention weights": per * config.attention * 2 * H * T * T,
        "hidden units": per * config.ffn * T * F * (1 + inputs(config.part("activation"))),
    }


def run_bytes(config: Config, tokens: int, vocabulary: int, dtype: str = "float32") -> int:
    """Memory a traced pass asks for: weights as drawn (float32), the copy in another precision, the activations twice
    (what is recorded, and what is under way)."""
    numbers = sum(parameters(config, vocabulary).values())
    copies = 4 + (BYTES[dtype] if dtype != "float32" else 0)
    return numbers * copies + 2 * sum(activations(config, tokens, dtype).values())


def by_length(config: Config, lengths=(8, 16, 32, 64, 128, 256, 512, 1024)) -> pd.DataFrame:
    """How cost grows with the text: tokens, part, value (operations)."""
    rows = [(length, part, value) for length in lengths for part, value in flops(config, length).items()]
    return pd.DataFrame(rows, columns=["tokens", "part", "value"])
