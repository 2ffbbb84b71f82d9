"""Depth, pins and exports in a browser: curves, links, clicks, files, two sessions."""

import csv
import io
import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.grid import grid
from core.model.config import Config
from core.model.text import DEFAULT_TEXT, split_words
from tests.test_browser import canvas_of, centre

pytestmark = pytest.mark.browser

WITHOUT = {
    "norm": {"norm": "none"},
    "residual": {"residual_attention": False, "residual_ffn": False},
    "head": {"n_heads": 1},
}


def curves(page):
    return page.locator(".st-key-statistics .panel")


def marks(page) -> list[str]:
    """Return every panel's drawing and the text next to it."""
    return [
        panel.locator(".marks").evaluate("e => e.innerHTML")
        + panel.locator(".title, .label, .sentence").all_inner_texts()[-1]
        for panel in curves(page).all()
    ]


def points(panel, colour) -> list[tuple[float, float]]:
    """Return the points of the line of a colour, in pixels."""
    path = panel.locator(f"path[stroke='{colour}']:not(.ended)").get_attribute("d")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)]


def scale(panel) -> list[tuple[float, float]]:
    """Return the vertical axis's labelled values and their places: [(value, pixel)]."""
    actual = panel.locator("text.tick[text-anchor=end]").evaluate_all(
        "all => all.map(t => [t.textContent, +t.getAttribute('y')])"
    )
    return [(float(text.replace("−", "-")), y) for text, y in actual]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_depth_curves_show_numbers(open_page, theme):
    page = open_page("/Depth?variants=norm-none&passes=12", theme=theme)
    statistics = {
        "Does the residual stream grow?": ("rms", True),
        "Do tokens become similar?": ("cosine", False),
    }
    for title, (meter, log) in statistics.items():
        panel = curves(page).filter(has_text=title)
        (low, bottom), *_, (high, top) = scale(panel)
        size = np.log10 if log else float
        for colour, changes in (("#0072B2", {}), ("#D55E00", WITHOUT["norm"])):
            values = travel(
                Config(**changes), split_words(DEFAULT_TEXT), None, Depth(12)
            ).values_of(meter)
            drawn = points(panel, colour)
            assert len(drawn) == 13
            for (_, y), value in zip(drawn, values):
                expected = bottom + (size(value) - size(low)) / (size(high) - size(low)) * (
                    top - bottom
                )
                assert abs(y - expected) < 0.6, (meter, value)


def test_pointing_at_a_curve_reads_every_variant(open_page):
    page = open_page("/Depth?variants=norm-none")
    panel = curves(page).first
    box = panel.locator("svg").bounding_box()
    x = points(panel, "#0072B2")[7][0]
    page.mouse.move(box["x"] + x, box["y"] + 60)
    tip = panel.locator(".tip").inner_text()
    assert "pass 7" in tip
    for changes in ({}, WITHOUT["norm"]):
        value = travel(Config(**changes), split_words(DEFAULT_TEXT)).values_of("rms")[7]
        assert f"{value:.5g}" in tip
    assert (
        curves(page).nth(3).locator(".here").evaluate("e => e.style.display") == "block"
    )  # marked in every panel
    panel.locator("svg").focus()
    page.keyboard.press("ArrowLeft")
    expect(panel.locator(".tip")).to_contain_text("pass 6")


def test_click_on_grid_adds_variant(open_page):
    page = open_page("/Depth?show=grid&variants=none")
    canvas, layout = canvas_of(page, "grid_cells")
    grid_results = grid(Config(), Axes(), split_words(DEFAULT_TEXT))
    page.mouse.wheel(0, 0)
    x, y = centre(layout, 0, 2, 0)  # LayerNorm, post, residual; ReLU, 1 head
    canvas.hover(position={"x": x, "y": y})
    tip = page.locator(".st-key-grid_cells .tip").inner_text()
    index = grid_results.entries.index(
        {
            "norm": "LayerNorm",
            "placement": "post",
            "residual": "both",
            "activation": "relu",
            "n_heads": "1",
        }
    )
    assert "LayerNorm · Post-norm · residual" in tip and "ReLU · 1 head" in tip
    assert f"{grid_results.final_values('rms')[index]:.3f}" in tip
    canvas.click(position={"x": x, "y": y})
    page.wait_for_url("**variants=n_heads-1__placement-post__activation-relu**")
    settle(page)
    expect(
        page.get_by_role("button", name="Remove 1 head, post-norm, ReLU activation")
    ).to_be_visible()


def downloaded(page, click) -> bytes:
    with page.expect_download() as got:
        click()
    return open(got.value.path(), "rb").read()


def open_take_away(page):
    page.locator(".st-key-take_away button").click()
    body = page.locator("[data-testid=stPopoverBody]")
    body.locator(".list button").first.wait_for()
    settle(page)
    return body


def test_exported_table_has_the_numbers(open_page):
    page = open_page("/Depth?variants=norm-none&passes=4")
    body = open_take_away(page)
    text = downloaded(page, body.get_by_role("link", name="statistics").click).decode("utf-8-sig")
    rows = {
        (r["meter"], r["variant"], int(r["pass"])): float(r["value"] or "nan")
        for r in csv.DictReader(io.StringIO(text))
    }
    for name, changes in (("baseline", {}), ("− norm", WITHOUT["norm"])):
        journey_made = travel(Config(**changes), split_words(DEFAULT_TEXT), None, Depth(4))
        for index in range(5):
            assert rows["Effective rank", name, index] == journey_made.values_of("rank")[index]
    script = downloaded(page, body.get_by_role("link", name="Python script").click).decode()
    compile(script, "script.py", "exec")
    assert 'BASELINE.replace(norm="none")' in script
    notebook = json.loads(downloaded(page, body.get_by_role("link", name="Jupyter notebook").click))
    assert "## statistics" in "".join(notebook["cells"][4]["source"])
