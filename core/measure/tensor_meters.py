"""Statistics of recorded tensors as one tidy table; each is a function of Totals."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from core.measure.tensor_sums import Totals, Watcher
from core.settings.menu import Menu

Place = tuple[str, int]  # site, layer

meter: Menu[Callable[[Totals], np.ndarray]] = Menu("Statistics")
meter.add("mean", lambda t: t.total / t.n, label="Mean", help="mean of all values.")
meter.add(
    "std",
    lambda t: np.sqrt(t.spread / t.n),
    label="SD",
    help="standard deviation (population formula, divided by n).",
)
meter.add("rms", lambda t: np.sqrt(t.squares / t.n), label="RMS", help="root mean square.")
meter.add("min", lambda t: t.low, label="Min", help="smallest value.")
meter.add("max", lambda t: t.high, label="Max", help="largest value.")
meter.add("zeros", lambda t: t.zero / t.n, label="Zeros", help="share of exact zeros.")


def compute_meters(watcher: Watcher) -> tuple[list[Place], np.ndarray]:
    """Return a watcher's (site, layer) pairs, and every `meter` of each: (meters, tensors)."""
    sums = watcher.totals()
    return watcher.names, np.array([part(sums) for part in meter.values()])


def tidy(places: Iterable[Place], values: np.ndarray) -> pd.DataFrame:
    """Tabulate a value per meter and (site, layer), as given: layer, site, meter, value."""
    rows = [
        (layer, site, name, value)
        for (site, layer), column in zip(places, values.T.tolist())
        for name, value in zip(meter, column)
    ]
    return pd.DataFrame(rows, columns=["layer", "site", "meter", "value"])


def measure(
    trace: Mapping[str, Sequence[torch.Tensor]], sites: Iterable[str] | None = None
) -> pd.DataFrame:
    """Return all meters of a trace's tensors as a table: layer (from 0), site, meter, value."""
    watcher = Watcher()
    for site in trace if sites is None else sites:
        for layer, x in enumerate(trace.get(site, ())):
            watcher(site, layer, x)
    return tidy(*compute_meters(watcher))
