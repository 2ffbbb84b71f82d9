"""Meters: a trace -> one tidy table. A new meter is one decorated function of Totals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from core.measure.tensor_sums import Totals, Watcher
from core.settings.menu import Menu

meter: Menu[Callable[[Totals], np.ndarray]] = Menu("Statistics")

Place = tuple[str, int]  # site, layer


@meter
def mean(t: "Totals") -> Any:
    """Mean: the average of all numbers."""
    return t.total / t.n


@meter
def std(t: "Totals") -> Any:
    """Std: standard deviation, how far the numbers lie from their mean (population formula, divided by n)."""
    return np.sqrt(t.spread / t.n)


@meter
def rms(t: "Totals") -> Any:
    """RMS: root mean square, how large the numbers are."""
    return np.sqrt(t.squares / t.n)


@meter
def min(t: "Totals") -> Any:
    """Min: the lowest number."""
    return t.low


@meter
def max(t: "Totals") -> Any:
    """Max: the highest number."""
    return t.high


@meter
def zeros(t: "Totals") -> Any:
    """Zeros: the share of numbers that are 0, as ReLU and masks make them."""
    return t.zero / t.n


def reduce(watcher: Watcher) -> tuple[list[Place], np.ndarray]:
    """Every meter over all that a watcher saw -> ([(site, layer), …], float64 array (meters, tensors))."""
    sums = watcher.totals()
    return watcher.names, np.array([part(sums) for part in meter.values()])


def tidy(names: Iterable[Place], values: np.ndarray) -> pd.DataFrame:
    """What reduce() gives as a tidy table: layer, site, meter, value; in the order in which the tensors passed."""
    rows = [
        (layer, site, name, value)
        for (site, layer), column in zip(names, values.T.tolist())
        for name, value in zip(meter, column)
    ]
    return pd.DataFrame(rows, columns=["layer", "site", "meter", "value"])


def measure(trace: Mapping[str, Sequence[torch.Tensor]], sites: Iterable[str] | None = None) -> pd.DataFrame:
    """A recorded trace as a tidy table: layer, site, meter, value; site by site."""
    watcher = Watcher()
    for site in trace if sites is None else sites:
        for layer, x in enumerate(trace.get(site, ())):
            watcher(site, layer, x)
    return tidy(*reduce(watcher))
