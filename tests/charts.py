"""Tables that charts can draw, made from the fields that they read."""

import inspect
import json
import re
from collections.abc import Callable

import pandas as pd

from core.figures.charts import attention, stream, trained

CHARTS = {  # functions that @as_vega_lite has wrapped
    name: chart
    for topic in (attention, stream, trained)
    for name, chart in vars(topic).items()
    if name != "spec" and hasattr(chart, "__wrapped__")
}
ARGUMENTS = {"str": "title", "bool": True, "int": 2, "tuple[str, ...]": ("000 word", "001 word")}
ROWS = 6


def draw_example(chart: Callable) -> tuple[dict, pd.DataFrame]:
    """Return a chart's specification, and a table of every field that it reads."""
    parameters = inspect.signature(chart).parameters.values()
    needed = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    spec = chart(*(ARGUMENTS[inspect.formatannotation(item.annotation)] for item in needed))
    text = json.dumps(spec)
    kinds = dict.fromkeys(re.findall(r'"field": "(\w+)"', text), "quantitative") | dict(
        find_kinds(spec)
    )
    for computed in re.findall(r'"as": "(\w+)"', text):
        kinds.pop(computed, None)
    columns = {}
    for name, kind in kinds.items():
        if kind == "quantitative":
            columns[name] = [float(row + 1) for row in range(ROWS)]
        else:
            columns[name] = [f"{row % 2:03d} word" for row in range(ROWS)]
        if f"datum.{name} == null" in text:  # some rows are drawn in another way
            columns[name][: ROWS // 2] = [None] * (ROWS // 2)
    return spec, pd.DataFrame(columns)


def find_kinds(part):
    """Yield (field, type) of every encoding."""
    if isinstance(part, dict):
        if isinstance(part.get("field"), str) and "type" in part:
            yield part["field"], part["type"]
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from find_kinds(item)
