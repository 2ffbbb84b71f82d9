"""Position encodings. Each overrides what it needs of embed, rotate and bias.

`start` is the number of tokens before the first of these, which a KV cache holds.
"""

import functools
import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from core.model.parts.init import Draw
from core.settings.menu import Menu

if TYPE_CHECKING:  # its menus are made from these parts
    from core.model.config import Config

# on_queries, on_scores: what a formula of queries and keys, or of scores, says of it.
position: Menu[type["Position"]] = Menu("Positions", on_queries="", on_scores="")

# Tables grow by so many positions, so that a text that grows token by token finds them cached.
ROWS = 64
CONTEXT = 272  # rows of the learned table: 256 tokens of text and 16 of padding


class Position(nn.Module):
    """Position encoding that does nothing; others override what they need.

    Args:
        config: Settings of the model.
        draw: Source of learned positions, for the encoding that is added to the embedding.
        layer: Layer that it acts in, from 0; RoPE's base may differ between layers.
    """

    turns = False  # whether pairs of dimensions of queries and keys are rotated
    table_rows = 0  # number of learned vectors, one per position

    def __init__(self, config: "Config", draw: Draw | None = None, layer: int = 0):
        super().__init__()

    def embed(self, x: torch.Tensor, start: int = 0) -> torch.Tensor:  # (B, T, D) -> (B, T, D)
        """Add positions to token vectors: (B, T, D) -> (B, T, D). Here: return them unchanged."""
        return x

    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, start: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rotate queries and keys by position: 2 × (B, H, T, d_head). Here: leave them."""
        return q, k  # 2 × (B, H, T, d_head)

    def bias(self, scores: torch.Tensor) -> torch.Tensor:
        """Return scores (B, H, queries, keys) with a position bias added. Here: unchanged.

        The queries are the last of the keys.
        """
        return scores  # (B, H, queries, keys): the queries are the last of the keys


def adds_to_tokens(part: type[Position]) -> bool:
    """Return whether a position encoding adds something to the token vectors."""
    return part.embed is not Position.embed


def acts_in_attention(part: type[Position]) -> bool:
    """Return whether a position encoding acts on queries, keys or scores."""
    return part.rotate is not Position.rotate or part.bias is not Position.bias


@functools.lru_cache(maxsize=64)
@torch.inference_mode(False)  # kept tables must also serve a training that comes later
def sinusoid_table(
    length: int, width: int, dtype: torch.dtype = torch.float32
) -> torch.Tensor:  # -> (T, D)
    """Return sin and cos of t / 10000^(2i/width), alternating in columns: (length, width).

    Vaswani et al., 2017, section 3.5.
    """
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * torch.exp(
        even * (-math.log(10000.0) / width)
    )
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width].to(dtype)


@functools.lru_cache(maxsize=64)
@torch.inference_mode(False)
def rotation_tables(
    length: int, width: int, base: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cos and sin of t / base^(2i/width), (length, width) each, once for each half.

    Su et al., 2021; half-split as in Llama.
    """
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * torch.exp(
        even * (-math.log(base) / width)
    )
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def table_dtype(x: torch.Tensor) -> torch.dtype:
    """Return the dtype for tables of x: x's own, at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def rotate_pairs(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> torch.Tensor:  # (…, T, width) -> the same
    """Rotate the pairs (i, i + width/2) of x, (…, T, width), by angles given as cos and sin."""
    a, other = x.chunk(2, -1)
    return x * cos + torch.cat([-other, a], dim=-1) * sin


def alibi_slopes(n_heads: int) -> list[float]:
    """Return ALiBi's slope, above 0, for each head (Press et al., 2021).

    2^(−8/n), 2^(−16/n), …; between powers of two, every other slope of the next power.
    """
    power = 2 ** math.floor(math.log2(n_heads))
    first = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    odd_slopes = [2 ** (-8 * (head + 1) / (2 * power)) for head in range(0, 2 * power, 2)]
    return first + odd_slopes[: n_heads - power]


@position.register(
    "none",
    label="None",
    help="no position encoding. Without a mask the model is then blind to word order.",
)
class NoPosition(Position):
    """Absent position encoding."""


@position.register(
    "sinusoidal",
    label="Sinusoidal",
    help="adds a fixed pattern of sines and cosines to each token (Vaswani et al., 2017).",
)
class Sinusoidal(Position):
    """Fixed sines and cosines."""

    def embed(self, x: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Add the sinusoids of the positions from `start`: (B, T, D) -> (B, T, D)."""
        return x + sinusoid_table(start + x.shape[-2], x.shape[-1], table_dtype(x))[start:].to(x)


@position.register(
    "learned",
    label="Learned",
    help="adds a learned vector per position, random before training (GPT-2, BERT).",
)
class Learned(Position):
    """Learned vector per position."""

    table_rows = CONTEXT

    def __init__(self, config: "Config", draw: Draw | None = None, layer: int = 0):
        super().__init__(config)
        if draw is not None:
            self.weight = nn.Parameter(draw.rows(map(str, range(CONTEXT)), config.d_model))

    def embed(self, x: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Add vectors of the positions from `start`, (B, T, D); ValueError beyond the table."""
        # a model from a file brings a table of its own length
        end = start + x.shape[-2]
        rows = len(self.weight)
        if end > rows:
            raise ValueError(f"learned positions go up to {rows} tokens; these are {end}")
        return x + self.weight[start:end]


@position.register(
    "rope",
    label="RoPE",
    help=(
        "rotates queries and keys by an angle proportional to position, so scores depend on"
        " relative position (Su et al., 2021)."
    ),
    on_queries=", rotated by position (RoPE)",
)
class RoPE(Position):
    """Rotary positions."""

    turns = True

    def __init__(self, config: "Config", draw: Draw | None = None, layer: int = 0):
        super().__init__(config)
        self.n_rotated = config.n_rotated
        self.n_kept = config.d_head - self.n_rotated
        self.base = config.rope_base_in(layer)

    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, start: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rotate queries and keys by position, counted from `start`: 2 × (B, H, T, d_head)."""
        end = start + q.shape[-2]
        n_rows = -(-end // ROWS) * ROWS
        tables = rotation_tables(n_rows, self.n_rotated, self.base, table_dtype(q))
        cos, sin = (table[start:end].to(q) for table in tables)
        return self._rotate_head(q, cos, sin), self._rotate_head(k, cos, sin)

    def _rotate_head(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Rotate the first dimensions of each head; the others stay, as in GPT-NeoX."""
        if not self.n_kept:
            return rotate_pairs(x, cos, sin)
        rotated, unchanged = torch.split(x, [self.n_rotated, self.n_kept], -1)
        return torch.cat([rotate_pairs(rotated, cos, sin), unchanged], -1)


@position.register(
    "alibi",
    label="ALiBi",
    help=(
        "subtracts a penalty from each score, linear in distance, with a slope per head (Press et"
        " al., 2021)."
    ),
    on_scores=" − slope · distance (ALiBi)",
)
class ALiBi(Position):
    """Linear penalty on distance."""

    slopes: torch.Tensor

    def __init__(self, config: "Config", draw: Draw | None = None, layer: int = 0):
        super().__init__(config)
        self.exact = alibi_slopes(config.n_heads)
        self.register_buffer("slopes", torch.tensor(self.exact)[:, None, None], persistent=False)

    def bias(self, scores: torch.Tensor) -> torch.Tensor:
        """Return scores (B, H, queries, keys) − slope · |distance|, the queries the last keys."""
        keys = torch.arange(scores.shape[-1], device=scores.device)
        slope = self.slopes
        if scores.dtype == torch.float64:  # the buffer has the precision of float32
            slope = torch.tensor(self.exact, dtype=torch.float64, device=scores.device)
            slope = slope[:, None, None]
        distance = (keys - keys[-scores.shape[-2] :, None]).abs()
        return scores - slope * distance
