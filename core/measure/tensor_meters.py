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


@meter.register("mean", label="Mean", help="the average of all numbers.")
def mean(t: "Totals") -> Any:
    return t.total / t.n


@meter.register(
    "std",
    label="Std",
    help="standard deviation, how far the numbers lie from their mean (population formula, divided by n).",
)
def std(t: "Totals") -> Any:
    return np.sqrt(t.spread / t.n)


@meter.register("rms", label="RMS", help="root mean square, how large the numbers are.")
def rms(t: "Totals") -> Any:
    return np.sqrt(t.squares / t.n)


@meter.register("min", label="Min", help="the lowest number.")
def min(t: "Totals") -> Any:
    return t.low


@meter.register("max", label="Max", help="the highest number.")
def max(t: "Totals") -> Any:
    return t.high


@meter.register("zeros", label="Zeros", help="the share of numbers that are 0, as ReLU and masks make them.")
def zeros(t: "Totals") -> Any:
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
