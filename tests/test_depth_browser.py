"""Depth, pins and what can be taken away, in a browser: curves against numbers, links, clicks, files, two visitors."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from benchmarks.serving import server, settle
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.grid import grid
from core.model.config import Config
from core.model.text import DEFAULT_TEXT, words
from tests.test_browser import canvas_of, centre
from ui.depth import view as views

pytestmark = pytest.mark.browser

WITHOUT = {
    "norm": {"norm": "none"},
    "residual": {"residual_attention": False, "residual_ffn": False},
    "head": {"n_heads": 1},
}
THREE = "variants=norm-none~residual_attention-off__residual_ffn-off~n_heads-1"


def curves(page):
    return page.locator(".st-key-statistics .panel")


def marks(page) -> list[str]:
    """Everything that is drawn in every panel, and the words beside it."""
    return [
        panel.locator(".marks").evaluate("e => e.innerHTML")
        + panel.locator(".title, .label, .sentence").all_inner_texts()[-1]
        for panel in curves(page).all()
    ]


def legend(page) -> str:
    return page.locator("[data-testid=stMain] [data-testid=stHtml] .legend").last.inner_text()


def points(panel, colour) -> list[tuple[float, float]]:
    """Where the line of a colour goes through, in pixels."""
    path = panel.locator(f"path[stroke='{colour}']:not(.ended)").get_attribute("d")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)]


def scale(panel) -> list[tuple[float, float]]:
    """The labelled values of the vertical axis and where they stand: [(value, pixel)]."""
    found = panel.locator("text.tick[text-anchor=end]").evaluate_all(
        "all => all.map(t => [t.textContent, +t.getAttribute('y')])"
    )
    return [(float(text.replace("−", "-")), y) for text, y in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_curves_show_the_numbers(open_page, theme):
    page = open_page("/Depth?variants=norm-none&passes=12", theme=theme)
    shown = {"Does the stream grow?": ("rms", True), "Do the words become alike?": ("cosine", False)}
    for title, (meter, log) in shown.items():
        panel = curves(page).filter(has_text=title)
        (low, bottom), *_, (high, top) = scale(panel)
        size = np.log10 if log else float
        for colour, changes in (("#0072B2", {}), ("#D55E00", WITHOUT["norm"])):
            values = travel(Config(**changes), words(DEFAULT_TEXT), None, Depth(12)).of(meter)
            drawn = points(panel, colour)
            assert len(drawn) == 13
            for (_, y), value in zip(drawn, values):
                expected = bottom + (size(value) - size(low)) / (size(high) - size(low)) * (top - bottom)
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
        value = travel(Config(**changes), words(DEFAULT_TEXT)).of("rms")[7]
        assert f"{value:.5g}" in tip
    assert curves(page).nth(3).locator(".here").evaluate("e => e.style.display") == "block"  # marked in every panel
    panel.locator("svg").focus()
    page.keyboard.press("ArrowLeft")
    expect(panel.locator(".tip")).to_contain_text("pass 6")


def test_a_link_with_three_variants_opens_the_same_on_a_cold_server(open_page):
    page = open_page("/Depth")
    for name in ("− residual", "1 head"):
        page.get_by_role("checkbox", name=name, exact=True).click()
        settle(page)
    page.locator("[data-name=passes] input").focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    page.get_by_role("button", name="Pin baseline").click()
    settle(page)
    page.locator("[data-name=seed] input").focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    link, seen, said = page.url, marks(page), legend(page)
    assert "variants=residual_attention-off__residual_ffn-off~n_heads-1" in link
    assert "baseline=defaults" in link and "passes=11" in link and "seed=1" in link
    assert "now: seed 1" in said
    with server() as (address, _):
        again = open_page("/Depth?" + link.split("?")[1], at=address)
        assert again.url.split("?")[1] == link.split("?")[1]
        assert legend(again) == said
        assert marks(again) == seen
        expect(again.locator("[data-name=passes] input")).to_have_value("11")


def test_pins_travel_between_pages_and_a_click_shows_its_effect(open_page):
    page = open_page("/Depth?d_ff=96&variants=ffn-off")
    page.get_by_role("link", name="One block").first.click()
    page.locator(".st-key-all_heads canvas").wait_for()
    settle(page)
    assert page.url.endswith("/One_block?variants=ffn-off")
    page.get_by_role("checkbox", name="− scaling", exact=True).click()
    page.locator(".st-key-all_heads_beside canvas").wait_for()
    settle(page)
    assert "− scaling" in page.locator("[data-testid=stMain]").inner_text()
    page.get_by_role("radio", name="Compare", exact=True).click()
    page.locator(".st-key-compared_maps canvas").wait_for()
    settle(page)
    assert "− scaling" in legend(page) and "− FFN" in legend(page)
    assert "view=compare" in page.url
    page.get_by_role("link", name="Depth").first.click()
    curves(page).first.wait_for()
    settle(page)
    assert page.url.endswith("/Depth?d_ff=96&variants=ffn-off~scale-off")
    expect(page.locator("[data-name=d_ff] input")).to_have_value("96")


def test_a_click_on_the_grid_makes_a_variant(open_page):
    page = open_page("/Depth?show=grid&variants=none")
    canvas, layout = canvas_of(page, "grid_cells")
    made = grid(Config(), Axes(), words(DEFAULT_TEXT))
    page.mouse.wheel(0, 0)
    x, y = centre(layout, 0, 2, 0)  # LayerNorm, post, residual; ReLU, 1 head
    canvas.hover(position={"x": x, "y": y})
    tip = page.locator(".st-key-grid_cells .tip").inner_text()
    at = made.entries.index(
        {"norm": "LayerNorm", "placement": "post", "residual": "both", "activation": "relu", "n_heads": "1"}
    )
    assert "LayerNorm · Post-norm · residual" in tip and "ReLU · 1 head" in tip
    assert f"{made.ends('rms')[at]:.3f}" in tip
    canvas.click(position={"x": x, "y": y})
    page.wait_for_url("**variants=n_heads-1__placement-post__activation-relu**")
    settle(page)
    expect(page.get_by_role("checkbox", name="1 head, post-norm, ReLU activation").first).to_be_checked()


def downloaded(page, click) -> bytes:
    with page.expect_download() as got:
        click()
    return open(got.value.path(), "rb").read()


def open_take_away(page):
    page.get_by_role("button", name="Take away").click()
    body = page.locator("[data-testid=stPopoverBody]")
    body.locator(".list button").first.wait_for()
    settle(page)
    return body


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "path",
    [
        "/Depth",
        "/Depth?show=attention",
        "/Depth?show=gradients",
        "/Depth?show=grid",
        "/One_block?weights=random",
        "/One_block?weights=random&maps=lines",
        "/One_block?weights=random&view=cost",
    ],
)
def test_every_picture_can_be_taken_away(open_page, path, theme):
    page = open_page(path, theme=theme)
    body = open_take_away(page)
    rows = body.locator(".list > div")
    shown = page.locator(
        "[data-testid=stMain] :is(canvas[role=img], svg.picture, [data-testid=stVegaLiteChart] svg.marks)"
    )
    assert rows.count() >= shown.count() > 0
    for row in rows.all()[:4]:  # a browser lets no page save many files in a row
        svg = downloaded(page, row.get_by_text("SVG").click)
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg")
        assert sum(1 for each in root.iter() if each.tag.rsplit("}")[-1] in ("path", "image", "rect", "circle")) > 3
        assert b"var(--" not in svg
        image = Image.open(io.BytesIO(downloaded(page, row.get_by_text("PNG").click)))
        assert (image.width, image.height) == (
            2 * round(float(root.get("width"))),
            2 * round(float(root.get("height"))),
        )
        assert len(set(image.convert("RGB").resize((60, 60)).tobytes())) > 8  # something is to be seen on it


def test_a_table_taken_away_holds_the_numbers(open_page):
    page = open_page("/Depth?variants=norm-none&passes=4")
    body = open_take_away(page)
    text = downloaded(page, body.get_by_role("link", name="statistics").click).decode("utf-8-sig")
    rows = {
        (r["meter"], r["variant"], int(r["pass"])): float(r["value"] or "nan")
        for r in csv.DictReader(io.StringIO(text))
    }
    for name, changes in (("baseline", {}), ("− norm", WITHOUT["norm"])):
        made = travel(Config(**changes), words(DEFAULT_TEXT), None, Depth(4))
        for at in range(5):
            assert rows["Effective rank", name, at] == made.of("rank")[at]
    script = downloaded(page, body.get_by_role("link", name="Python script").click).decode()
    compile(script, "script.py", "exec")
    assert 'BASELINE.replace(norm="none")' in script
    notebook = json.loads(downloaded(page, body.get_by_role("link", name="Jupyter notebook").click))
    assert "## statistics" in "".join(notebook["cells"][4]["source"])


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("view", views)
def test_every_view_of_depth_shows_something_on_wide_and_narrow_screens(open_page, view, theme):
    for width in (1400, 420):
        page = open_page(f"/Depth?show={view}&{THREE}&blocks=separate&passes=12", theme=theme, width=width)
        expect(page.locator("[data-testid=stException], [data-testid=stAlert]")).to_have_count(0)
        pictures = page.locator("[data-testid=stMain] :is(canvas[role=img], svg.picture)")
        pictures.first.wait_for()
        boxes = [box for box in (picture.bounding_box() for picture in pictures.all()) if box]
        assert boxes and all(box["width"] > 50 and box["height"] > 30 for box in boxes)
        main = page.locator("[data-testid=stMain]")
        assert main.evaluate("e => e.scrollWidth <= e.clientWidth"), "the page is wider than the screen"


def test_the_first_screen_of_depth_shows_the_curves_without_scrolling(open_page):
    page = open_page("/Depth")
    for panel in curves(page).all():
        box = panel.locator("svg").bounding_box()
        assert box["y"] + box["height"] <= 900


def test_back_never_loses_the_settings(open_page):
    page = open_page("/Depth?passes=20&norm=none&variants=ffn-off")
    page.get_by_role("link", name="One block").first.click()
    page.locator(".st-key-all_heads canvas").wait_for()
    settle(page, 1500)
    assert page.url.endswith("/One_block?variants=ffn-off")
    for _ in range(2):  # the bare link that the click led to may or may not be one step of its own
        page.go_back()
        settle(page, 1500)
        assert "variants=ffn-off" in page.url
        if "/Depth" in page.url:
            break
    assert "passes=20&norm=none" in page.url
    assert "− FFN" in legend(page)


@pytest.mark.parametrize("slower", [1, 6, 20])
def test_no_address_is_that_of_one_page_with_the_settings_of_another(open_page, slower):
    """The browser takes a page's name into its address a while after it was told of the page, and a slow one handles other
    messages meanwhile."""
    page = open_page("/Depth?passes=20&norm=none&variants=ffn-off")
    page.evaluate(
        """() => {
        window.pushed = []
        const push = history.pushState.bind(history)
        history.pushState = (state, title, address) => { window.pushed.push(String(address)); push(state, title, address) }
        }"""
    )
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.get_by_role("link", name="One block").first.click()
    page.wait_for_url("**/One_block?variants=ffn-off")
    assert not [address for address in page.evaluate("window.pushed") if "/Depth" in address]
