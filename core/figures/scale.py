"""Common scale for two charts of one kind."""

import copy
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from core.figures.spec import Spec

CHANNELS = {
    "x": "x",
    "x2": "x",
    "y": "y",
    "y2": "y",
    "color": "color",
}  # which of them have a scale in common
MEASURED = ("value", "reference")  # columns of what is measured, which can be subtracted


def on_one_scale(spec: Spec, *tables: pd.DataFrame) -> Spec:
    """Return a copy of a chart's specification whose free quantitative axes cover all tables.

    Fixed ends stay. Bars and areas include 0, as do linear axes without zero=False. Stacked or
    counted values keep the browser's own scale.
    """
    scaled: Spec = copy.deepcopy(spec)
    encodings = [
        (unit, channel, encoding)
        for unit in _encoding_units(scaled)
        for channel, encoding in unit["encoding"].items()
        if channel in CHANNELS
    ]
    ends: dict[str, tuple[float, float]] = {}
    for _, channel, encoding in encodings:
        values = _drawn_values(encoding, tables)
        if values:
            low, high = ends.get(CHANNELS[channel], (math.inf, -math.inf))
            ends[CHANNELS[channel]] = min(low, *values), max(high, *values)
    fixed = {
        CHANNELS[channel]
        for _, channel, encoding in encodings
        if "domain" in (encoding.get("scale") or {})
    }
    for unit, channel, encoding in encodings:
        if CHANNELS[channel] not in ends.keys() - fixed or encoding.get("type") != "quantitative":
            continue
        low, high = ends[CHANNELS[channel]]
        scale = encoding.get("scale") or {}
        mark = unit.get("mark")
        kind = mark["type"] if isinstance(mark, dict) else mark
        if scale.get("type") == "log":
            low, high = (low, high) if low > 0 else (math.nan, math.nan)
        elif kind in ("bar", "area") or scale.get("zero") is not False:
            low = min(low, 0.0)
            high = max(high, 0.0)
        if low < high:
            encoding["scale"] = {"nice": True, **scale, "domain": [low, high]}
    return scaled


def can_subtract(spec: Spec, table: pd.DataFrame, other: pd.DataFrame | None) -> bool:
    """Return whether other (None: False) has table's rows, numbers aside, on linear axes.

    False without a column value.
    """
    log = any(
        (encoding.get("scale") or {}).get("type") == "log" for encoding in _measured_encodings(spec)
    )
    if (
        log
        or other is None
        or "value" not in table
        or table.shape != other.shape
        or list(table) != list(other)
    ):
        return False
    named = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    return all(list(table[name]) == list(other[name]) for name in named)


def for_differences(spec: Spec, table: pd.DataFrame | None = None) -> Spec:
    """Return a copy without fixed ends of measured axes; −1 to 1 if table's values are all 0."""
    scaled: Spec = copy.deepcopy(spec)
    columns = [] if table is None else [table[name] for name in MEASURED if name in table]
    nothing = bool(columns) and all((column == 0).all() for column in columns)
    for encoding in _measured_encodings(scaled):
        if "scale" in encoding:
            encoding["scale"] = {
                k: v for k, v in (encoding["scale"] or {}).items() if not k.startswith("domain")
            }
        if nothing:
            encoding["scale"] = {**(encoding.get("scale") or {}), "domain": [-1, 1]}
    return scaled


def _measured_encodings(spec: Spec) -> Iterator[Spec]:
    """Yield the axis and colour encodings of the columns value and reference."""
    for unit in _encoding_units(spec):
        for channel, encoding in unit["encoding"].items():
            if (
                channel in CHANNELS
                and isinstance(encoding, dict)
                and encoding.get("field") in MEASURED
            ):
                yield encoding


def subtract(table: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of table with value and reference minus those of other, row by row."""
    return table.assign(
        **{
            name: table[name].to_numpy() - other[name].to_numpy()
            for name in MEASURED
            if name in table
        }
    )


def _encoding_units(spec: Spec) -> Iterator[Spec]:
    """Yield all parts of a specification that encode something."""
    if "encoding" in spec:
        yield spec
    for key in ("layer", "hconcat", "vconcat"):
        for part in spec.get(key, []):
            yield from _encoding_units(part)
    if "spec" in spec:
        yield from _encoding_units(spec["spec"])


def _drawn_values(encoding: Any, tables: tuple[pd.DataFrame, ...]) -> list[float]:
    """Return the numbers that an encoding draws; [] where they are not those of the tables."""
    if (
        not isinstance(encoding, dict)
        or {"aggregate", "bin"} & encoding.keys()
        or encoding.get("stack")
    ):
        return []
    name = encoding.get("field")
    columns = [
        table[name]
        for table in tables
        if name in table and pd.api.types.is_numeric_dtype(table[name])
    ]
    return [float(value) for column in columns for value in column if math.isfinite(value)]
