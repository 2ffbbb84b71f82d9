"""Every chart draws a table with the columns that its docstring names."""

import json
import re

import pytest
import vl_convert

from tests.charts import CHARTS, draw_example


@pytest.mark.parametrize("name", CHARTS)
def test_charts_draw_their_tables(name):
    chart, table = draw_example(CHARTS[name])
    assert set(table.columns) <= set(re.findall(r"\w+", CHARTS[name].__doc__))
    rows = json.loads(table.to_json(orient="records"))
    svg = vl_convert.vegalite_to_svg({**chart, "data": {"values": rows}})
    drawn = svg.count('role="graphics-symbol"')
    assert drawn >= len(rows) // 3 and "NaN" not in svg and "undefined" not in svg, svg
    blank = vl_convert.vegalite_to_svg({**chart, "data": {"values": []}})
    assert blank.count('role="graphics-symbol"') < drawn
