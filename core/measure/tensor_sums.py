"""Sums over recorded tensors, in the cheapest way there is for their size and place.

torch.std_mean costs forty times a sum, and counting zeros ten times; so every statistic is made
from six plain totals.
- Small tensors on the CPU are laid end to end and totalled together: at their size the number of
calls is what costs.
- Middling ones, and all on a GPU, are totalled at the end, all of one shape together.
- Large ones are totalled as they pass, while they lie in the cache.
benchmarks/instrumentation.py has the figures.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from core.settings.device import in_float64

# numbers in a tensor
SMALL = 4096
LARGE = 65536
PIECE = 4096  # numbers that BLAS may add up in float32


class Totals(NamedTuple):
    """Sums from which statistics are computed: float64 arrays, one entry per tensor."""

    n: np.ndarray  # how many numbers
    total: np.ndarray  # their sum
    squares: np.ndarray  # the sum of their squares
    spread: np.ndarray  # the sum of the squares of their distances from the mean
    low: np.ndarray
    high: np.ndarray
    zero: np.ndarray  # how many of them are exactly 0


class Watcher:
    """Last edit for trace() that sums every tensor, e.g. `trace(watcher, sites=["pattern"])`."""

    def __init__(self) -> None:
        self.names: list[tuple[str, int]] = []  # (site, layer) in order of appearance
        self._waiting: list[tuple[int, torch.Tensor]] = []
        self._done: list[tuple[int, np.ndarray]] = []

    def __call__(self, site: str, layer: int, x: torch.Tensor) -> None:
        """Note a tensor under its site and layer; large ones on the CPU are summed at once."""
        names = self.names
        if x.numel() > LARGE and x.is_cpu:
            self._done.append((len(names), _sum_rows(x.detach().reshape(1, -1))))
        else:
            self._waiting.append((len(names), x))
        names.append((site, layer))

    def totals(self) -> Totals:
        """Return the sums of all tensors that were watched, in the order of `names`."""
        if not self._done:
            n = tuple([x.numel() for _, x in self._waiting])
            if n and max(n) <= SMALL and all([x.is_cpu for _, x in self._waiting]):
                return Totals(*_sum_small_tensors([x for _, x in self._waiting], n))
        fields = np.empty((7, len(self.names)))
        for place, values in self._done:
            fields[:, place : place + 1] = values
        groups: dict[torch.Size, list[tuple[int, torch.Tensor]]] = {}
        for place, x in self._waiting:
            groups.setdefault(x.shape, []).append((place, x))
        for members in groups.values():
            indices, tensors = zip(*members)
            rows = torch.stack(tensors).detach().reshape(len(indices), -1)
            fields[:, indices] = _sum_rows(rows) if rows.is_cpu else _sum_rows_on_device(rows)
        return Totals(*fields)


@np.errstate(
    over="ignore", invalid="ignore"
)  # _spreads() looks again where numbers are out of range
def _sum_small_tensors(tensors: list[torch.Tensor], lengths: tuple[int, ...]) -> np.ndarray:
    """Return the fields of Totals, (7, tensors), for small tensors on the CPU."""
    n, start = _layout(lengths)
    flat = torch.cat([x.reshape(-1) for x in tensors]).detach().float().numpy()
    square = flat * flat
    fields = np.empty((7, len(tensors)))
    fields[0] = n
    fields[1] = np.add.reduceat(flat, start)
    fields[2] = np.add.reduceat(square, start)
    fields[4] = np.minimum.reduceat(flat, start)
    fields[5] = np.maximum.reduceat(flat, start)
    # No square is 0: no number is. The test is cheap, and NaN fails it.
    fields[6] = (
        0 if np.minimum.reduce(square) > 0 else np.add.reduceat(flat == 0, start, dtype=np.int64)
    )
    _fill_spreads(fields, flat, start)
    return fields


@lru_cache(maxsize=256)
def _layout(lengths: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return how many numbers each tensor has, and where it starts in the flat array."""
    n = np.array(lengths)
    return n.astype(float), n.cumsum() - n


@np.errstate(over="ignore", invalid="ignore")
def _sum_rows(x: torch.Tensor) -> np.ndarray:
    """Return the fields of Totals, (7, rows), for each row of a matrix on the CPU."""
    x = x.float()
    rows = x.numpy()
    fields = np.empty((7, len(rows)))
    fields[0] = x.shape[1]
    fields[1] = x.sum(1).numpy()  # in a cascade, so that float32's rounding does not pile up
    # BLAS is fastest, but sums straight on: so it gets pieces, and float64 adds them up.
    pieces, remainder = divmod(rows.shape[1], PIECE)
    head = rows[:, : rows.shape[1] - remainder].reshape(len(rows), pieces, PIECE)
    tail = rows[:, rows.shape[1] - remainder :]
    fields[2] = np.vecdot(head, head).sum(1, dtype=np.float64) + np.vecdot(tail, tail)
    fields[4] = np.minimum.reduce(rows, axis=1)
    fields[5] = np.maximum.reduce(rows, axis=1)
    full = np.count_nonzero(rows != 0) == rows.size
    fields[6] = 0 if full else [np.count_nonzero(row) for row in rows == 0]
    _fill_spreads(fields, rows.reshape(-1), range(0, rows.size, rows.shape[1]))
    return fields


def _fill_spreads(fields: np.ndarray, flat: np.ndarray, start: Sequence[int] | np.ndarray) -> None:
    """Fill in Σ(x − mean)²; in float64, with the sums again, where float32 fails or rounds."""
    n, total, squares, spread = fields[:4]
    np.subtract(squares, total * total / n, out=spread)
    # Where less than a sixteenth is left, rounding shows; infinity, NaN and all but nothing fail
    # this too.
    exact = 16 * spread > squares + 2e-29
    if not exact.all():
        for row in (~exact).nonzero()[0]:
            wide = flat[start[row] :][: int(n[row])].astype(np.float64)
            total[row] = wide.sum()
            squares[row] = np.dot(wide, wide)
            wide -= total[row] / n[row]
            spread[row] = np.dot(wide, wide)


def _sum_rows_on_device(x: torch.Tensor) -> np.ndarray:
    """Return the fields of Totals, (7, rows), for each row of a matrix on a GPU.

    In float64, with one transfer.
    """
    wide = in_float64(x)
    away = wide - wide.mean(1, keepdim=True)
    n = torch.full((len(wide),), float(wide.shape[1]), device=wide.device, dtype=wide.dtype)
    fields = [
        n,
        wide.sum(1),
        wide.square().sum(1),
        away.square().sum(1),
        wide.amin(1),
        wide.amax(1),
        (wide == 0).sum(1),
    ]
    return torch.stack([field.to(wide.dtype) for field in fields]).cpu().numpy()
