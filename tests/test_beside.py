"""The comparison view: the variant's side is its own page on the baseline's scale.

A click in the diagram removes a part or restores it.
"""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest

from core.figures.scale import (
    CHANNELS,
    _encoding_units,
    can_subtract,
    for_differences,
    on_one_scale,
    subtract,
)
from core.model.variants import decode, name_of
from tests.charts import CHARTS, draw_example
from tests.pages import clicked, components, control, controls, link, move_control, setting
from tests.test_page import fine, opened
from ui.block import view as views
from ui.kit.pins import PILLS

TWICE = [view for view in views if view != "compare"]
PARTS = {
    "norm-none": {"norm": "none"},
    "ffn-off": {"ffn": "off"},
    "n_heads-1": {"n_heads": "1"},
    "mask-causal": {"mask": "causal"},
}


def sentences(app) -> list[str]:
    messages = [m.value for m in app.markdown if m.value.startswith("**") and ":small[" in m.value]
    return [
        re.sub(r"\? Each.*Click a head to open it.*?\*\*", "?**", item) for item in messages
    ]  # said where there is room for it


def grids(app) -> dict[str, tuple[dict, np.ndarray]]:
    """Return each heat map's description and numbers, by key."""
    actual = {}
    for component in components(app, "ablation_grid"):
        size = int.from_bytes(component.bytes[:4], "little")
        head = json.loads(component.bytes[4 : 4 + size])
        body = component.bytes[4 + size + (-size % 4) :]
        if head["steps"]:
            steps = np.frombuffer(body, "<u2").astype(float)
            cells = head["low"] + steps / 65534 * (head["high"] - head["low"])
            cells[steps == 65535] = math.nan
        else:
            cells = np.frombuffer(body, "<f4").astype(float)
        actual[re.search(r"(\w+?)(-None)?$", component.id).group(1)] = head, cells
    return actual


def domains(proto) -> list:
    return all_domains(json.loads(proto.spec))


def all_domains(spec) -> list:
    return [
        (CHANNELS[channel], encoding["scale"]["domain"])
        for unit in _encoding_units(spec)
        for channel, encoding in unit["encoding"].items()
        if channel in CHANNELS and "domain" in encoding.get("scale", {})
    ]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("view", TWICE)
def test_variant_side_matches_page_of_its_settings(view, part):
    both, alone, baseline = (
        fine(opened(view=view, **extra)) for extra in ({"variants": part}, PARTS[part], {})
    )
    assert sorted(sentences(both)) == sorted([*sentences(baseline), *sentences(alone)])
    pairs = grids(both)
    single = grids(alone)
    twins = {name for name in pairs if name.endswith("_beside")}
    assert {name.removesuffix("_beside") for name in twins} == set(single)
    for name in twins:
        head, cells = pairs[name]
        first, _ = pairs.get(name.removesuffix("_beside"), pairs[name])
        steps = (
            single[name.removesuffix("_beside")][0]["high"]
            - single[name.removesuffix("_beside")][0]["low"]
        ) / 65534
        np.testing.assert_allclose(
            cells,
            single[name.removesuffix("_beside")][1],
            atol=max(1e-6, 2 * (head["high"] - head["low"]) / 65534, 2 * steps),
        )
        if len(twins) == len(pairs) - len(twins):
            assert (head["low"], head["high"]) == (first["low"], first["high"])
    drawn = both.get("vega_lite_chart")
    if (
        len(drawn)
        == 2 * len(baseline.get("vega_lite_chart"))
        == 2 * len(alone.get("vega_lite_chart"))
    ):
        half = len(drawn) // 2
        kinds = [
            element.proto.alt.removeprefix(f"{name_of(decode(part, ''))}: ").partition(". ")[0]
            for element in drawn
        ]  # not what each says
        for index, other in (
            (a, b)
            for a in range(len(drawn))
            for b in range(a + 1, len(drawn))
            if kinds[a] == kinds[b]
        ):
            assert domains(drawn[index].proto) == domains(drawn[other].proto)
        assert half == 0 or len(set(kinds)) <= half


@pytest.mark.parametrize("part", ["norm-none", "mask-causal"])
def test_difference_is_variant_minus_baseline(part):
    plain, less = (
        grids(fine(opened(variants=part, **extra))) for extra in ({}, {"difference": "on"})
    )
    head, cells = less["all_heads_beside"]
    expected = plain["all_heads_beside"][1] - plain["all_heads"][1]
    np.testing.assert_allclose(cells, expected, atol=1e-6)
    assert head["low"] == -head["high"] and "difference" in head["what"]
    np.testing.assert_array_equal(less["all_heads"][1], plain["all_heads"][1])


@pytest.mark.parametrize("name", CHARTS)
def test_shared_scale_covers_both_tables(name):
    spec, table = draw_example(CHARTS[name])
    numbers = table.select_dtypes("number").columns
    other = table.assign(**{name: 3 * table[name] - 1 for name in numbers})
    before = json.dumps(spec)
    fixed = {channel for channel, _ in all_domains(spec)}
    for scaled in (on_one_scale(spec, table, other), on_one_scale(spec, other, table)):
        for unit in _encoding_units(scaled):
            for channel, encoding in unit["encoding"].items():
                domain = encoding.get("scale", {}).get("domain") if channel in CHANNELS else None
                if (
                    domain
                    and CHANNELS[channel] not in fixed
                    and encoding.get("field") in numbers
                    and encoding.get("type") == "quantitative"
                ):
                    values = pd.concat(
                        [table[encoding["field"]], other[encoding["field"]]]
                    ).dropna()
                    assert domain[0] <= values.min() and values.max() <= domain[1]
    assert json.dumps(spec) == before  # it is shared by all
    if "value" in table:
        log = '"log"' in json.dumps(spec)
        assert can_subtract(spec, table, other) != log
        assert (subtract(table, table)["value"].dropna() == 0).all()
        assert not can_subtract(spec, table, other[1:]) and not can_subtract(spec, table, None)
        assert "domain" not in [key for _, key in all_domains(for_differences(spec))]


@pytest.mark.parametrize("view", ["attention", "stages", "heads"])
def test_baseline_is_default_and_pills_stay_on_page(view):
    app = fine(opened(view=view))
    assert control(app, PILLS)["value"] == [] and "_beside" not in str(grids(app))
    move_control(app, PILLS, ["ffn-off"])
    assert setting(fine(app), "view") == view and setting(app, "variants") == "ffn-off"
    move_control(app, PILLS, ["ffn-off", "n_heads-1"])  # the newest stands beside
    assert (
        setting(fine(app), "beside") == "n_heads-1"
        and control(app, "beside")["value"] == "n_heads-1"
    )
    move_control(app, "beside", "ffn-off")
    assert control(fine(app), "beside")["value"] == "ffn-off"
    move_control(app, PILLS, ["n_heads-1"])
    assert link(fine(app)).get("beside", "") == "" and len(components(app, "ablation_drawing")) == 2
    move_control(app, PILLS, [])
    assert (
        setting(fine(app), "variants") == "none" and len(components(app, "ablation_drawing")) == 1
    )


def parts(app, drawing: int = 0) -> list[str]:
    """Return the action of a click on each part of a drawing."""
    return re.findall(r'data-part=\\"(.*?)\\"', components(app, "ablation_drawing")[drawing].json)


def click(app, part: str, drawing: int = 0):
    return clicked(app, components(app, "ablation_drawing")[drawing], part)


def test_parts_of_diagram_are_removed_and_restored():
    start = [
        "norm-none",
        "attention-off",
        "n_heads-1",
        "residual_attention-off",
        "norm-none",
        "ffn-off",
        "residual_ffn-off",
    ]
    app = fine(opened())
    assert sorted(parts(app)) == sorted(start)
    for part in dict.fromkeys(start):
        app = fine(click(opened(), part))
        assert link(app)["variants"] == part and len(components(app, "ablation_drawing")) == 2
        name, value = part.split("-")
        back = {"off": "on", "none": "LayerNorm", "1": "4"}[value]
        assert f"{name}-{back}" in parts(app, 1)
        click(app, f"{name}-{back}", 1)  # in the drawing of the variant, where it is out
        assert link(fine(app)).get("variants", "none") == "none"
    app = fine(click(opened(), "ffn-off"))
    click(app, "residual_attention-off", 1)
    assert link(fine(app))["variants"] == "residual_attention-off__ffn-off"
    click(app, "ffn-off")  # of the baseline: one more variant, and once more takes it away
    assert link(fine(app))["variants"] == "residual_attention-off__ffn-off~ffn-off"
    click(app, "ffn-off")
    assert link(fine(app))["variants"] == "residual_attention-off__ffn-off"


def test_diagram_of_four_variants_names_its_variant():
    app = fine(
        opened(
            weights="random",
            variants="norm-none~ffn-off~n_heads-1~activation-relu",
            beside="ffn-off",
        )
    )
    first, second = (
        re.sub("<[^>]*>", "", json.loads(component.json)["picture"])
        for component in components(app, "ablation_drawing")
    )
    assert "Baseline" in first and "− FFN (variant 2 of 4)" in second
    assert "− FFN:" in second and "Baseline:" in second.partition("− FFN:")[2]


def test_sidebar_works_beside_pinned_baseline():
    app = fine(opened(baseline="defaults", variants="none", ffn="off"))
    assert len(components(app, "ablation_drawing")) == 2
    click(app, "residual_attention-off", 1)
    assert setting(fine(app), "residual_attention") is False and setting(app, "ffn") is False


def test_controls_match_the_side_that_has_the_part():
    for params in (
        {"attention": "off", "variants": "attention-on"},
        {"n_heads": "1", "variants": "n_heads-8", "maps": "one"},
    ):
        app = fine(opened(**params))
        assert "picture" in controls(app)
    assert len(control(app, "head")["options"]) == 8
