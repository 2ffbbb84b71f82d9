"""Sums over recorded tensors, in the cheapest way there is for their size and place.

torch.std_mean costs forty times a sum, and counting zeros ten times; so every statistic is made from six plain totals.
- Small tensors on the CPU are laid end to end and totalled together: at their size the number of calls is what costs.
- Middling ones, and all on a GPU, are totalled at the end, all of one shape together.
- Large ones are totalled as they pass, while they lie in the cache.
benchmarks/instrumentation.py has the figures.
"""

from dataclasses import dataclass

import numpy as np
import torch

SMALL, LARGE = 4096, 65536  # numbers in a tensor


@dataclass(frozen=True)
class Totals:
    """What statistics are made from: float64 arrays, one entry per tensor."""

    n: np.ndarray  # how many numbers
    total: np.ndarray  # their sum
    squares: np.ndarray  # the sum of their squares
    spread: np.ndarray  # the sum of the squares of their distances from the mean
    low: np.ndarray
    high: np.ndarray
    zero: np.ndarray  # how many of them are exactly 0


class Watcher:
    """Takes totals of all it is shown: a last edit for trace(), e.g. `trace(watcher, sites=["pattern"])`."""

    def __init__(self):
        self.names: list[tuple[str, int]] = []  # (site, layer) in order of appearance
        self._waiting: list[tuple[int, torch.Tensor]] = []
        self._done: list[tuple[int, np.ndarray]] = []

    def __call__(self, site, layer, x):
        at = len(self.names)
        self.names.append((site, layer))
        if x.numel() > LARGE and not (x.is_cuda or x.is_mps):
            self._done.append((at, _rows(x.detach().reshape(1, -1))))
        else:
            self._waiting.append((at, x))

    def totals(self) -> Totals:
        """The totals of everything seen, in the order of `names`."""
        if not self._done and all(x.numel() <= SMALL and x.is_cpu for _, x in self._waiting):
            return Totals(*_end_to_end([x for _, x in self._waiting]))
        fields = np.empty((7, len(self.names)))
        for at, values in self._done:
            fields[:, at : at + 1] = values
        groups: dict = {}
        for at, x in self._waiting:
            groups.setdefault(x.shape, []).append((at, x))
        for members in groups.values():
            at, tensors = zip(*members)
            rows = torch.cat([x.detach() for x in tensors]).reshape(len(at), -1)
            fields[:, at] = _rows(rows) if rows.is_cpu else _rows_on_device(rows)
        return Totals(*fields)


def _end_to_end(tensors) -> tuple:
    """The fields of Totals for small tensors on the CPU."""
    flat = torch.cat([x.reshape(-1) for x in tensors]).detach().float().numpy()
    n = np.array([x.numel() for x in tensors])
    start = n.cumsum() - n
    total, squares, spread = _sums(n, np.add.reduceat(flat, start), np.add.reduceat(flat * flat, start))
    for at in _inexact(n, total, squares):
        squares[at], spread[at] = _carefully(flat[start[at] : start[at] + n[at]], total[at] / n[at], squares[at])
    empty = flat == 0
    zero = np.add.reduceat(empty, start, dtype=np.int64) if empty.any() else np.zeros(len(n))
    return n, total, squares, spread, np.minimum.reduceat(flat, start), np.maximum.reduceat(flat, start), zero


def _rows(x: torch.Tensor) -> np.ndarray:
    """The fields of Totals for each row of a matrix on the CPU."""
    x = x.float()
    rows, n = x.numpy(), x.shape[1]
    # torch sums in a cascade, so that float32's rounding does not pile up
    total, squares, spread = _sums(n, x.sum(1).numpy(), np.einsum("ij,ij->i", rows, rows))
    for at in _inexact(n, total, squares):
        squares[at], spread[at] = _carefully(rows[at], total[at] / n, squares[at])
    low, high = np.minimum.reduce(rows, axis=1), np.maximum.reduce(rows, axis=1)
    full = np.count_nonzero(rows != 0) == rows.size
    zero = np.zeros(len(rows)) if full else (rows == 0).sum(axis=1)
    return np.stack([np.full(len(rows), n), total, squares, spread, low, high, zero])


def _sums(n, total, squares):
    """Σx, Σx² and Σ(x − mean)² in float64."""
    total, squares = total.astype(np.float64), squares.astype(np.float64)
    return total, squares, squares - total * total / n


def _inexact(n, total, squares):
    """Where float32 squares overflow or underflow, or Σx² − n·mean² cancels."""
    return (~((squares < 1e37) & (squares > 1e-30) & (total * total < 0.5 * n * squares))).nonzero()[0]


def _carefully(x: np.ndarray, mean: float, squares: float) -> tuple[float, float]:
    """Σx² and Σ(x − mean)², in float64 where float32 has not the range for it."""
    if 1e-30 < squares < 1e37:
        away = x - x.dtype.type(mean)
        spread = float(np.dot(away, away))
        if spread > 1e-30:
            return squares, spread
    wide = x.astype(np.float64)
    away = wide - mean
    return float(np.dot(wide, wide)), float(np.dot(away, away))


def _rows_on_device(x: torch.Tensor) -> np.ndarray:
    """The same on a GPU, in float64 where the device has it; one transfer."""
    wide = x.float() if x.is_mps else x.double()
    away = wide - wide.mean(1, keepdim=True)
    n = torch.full((len(x),), float(x.shape[1]), device=x.device, dtype=wide.dtype)
    fields = [n, wide.sum(1), wide.square().sum(1), away.square().sum(1), x.amin(1), x.amax(1), (x == 0).sum(1)]
    return torch.stack([field.to(wide.dtype) for field in fields]).cpu().double().numpy()
