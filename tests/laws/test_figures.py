"""Every chart draws the table of its example, and reads no column that is not in it."""

import json

import pytest
import vl_convert

from core.figures import charts
from core.figures.spec import examples

CHARTS = {name: getattr(charts, name) for name in charts.__all__ if name != "word"}


def test_every_chart_has_an_example():
    assert set(examples) == set(CHARTS.values())


def fields(part) -> set[str]:
    """All that a specification reads."""
    if isinstance(part, list):
        return set().union(*map(fields, part))
    if not isinstance(part, dict):
        return set()
    own = {part["field"]} if isinstance(part.get("field"), str) else set()
    made = {each["as"] for each in part.get("transform", []) if isinstance(each.get("as"), str)}
    return set().union(own, *map(fields, part.values())) - made


@pytest.mark.parametrize("name", CHARTS)
def test_the_example_is_drawn(name):
    args, make = examples[CHARTS[name]]
    chart, table = CHARTS[name](*args), make()
    assert fields(chart) <= set(table.columns)
    rows = json.loads(table.to_json(orient="records"))
    svg = vl_convert.vegalite_to_svg({**chart, "data": {"values": rows}})
    drawn = svg.count('role="graphics-symbol"')
    assert drawn >= len(rows) // 3 and "NaN" not in svg and "undefined" not in svg, svg
    blank = vl_convert.vegalite_to_svg({**chart, "data": {"values": []}})
    assert blank.count('role="graphics-symbol"') < drawn
