"""Browser tests: pixels, hover, click, keys, links on a cold server, themes, narrow screens."""

import io
import json
import math

import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.checkpoints.family import BASELINE
from core.experiments.block.attention import patterns
from core.experiments.forward import forward
from core.figures.palette import SEQUENTIAL, colour
from core.model.config import Config
from core.model.text import DEFAULT_TEXT, split_words

pytestmark = pytest.mark.browser


def canvas_of(page, key):
    canvas = page.locator(f".st-key-{key} canvas[data-layout]")  # which it has once it is painted
    canvas.wait_for()
    return canvas, json.loads(canvas.get_attribute("data-layout"))


def centre(layout, panel, row, col):
    """Return a cell's centre in CSS pixels from the canvas's corner."""
    x = (
        (panel % layout["across"]) * layout["stepX"]
        + layout["left"]
        + (col + 0.5) * layout["cellW"]
    )
    y = (
        layout["head"]
        + (panel // layout["across"]) * layout["stepY"]
        + layout["top"]
        + (row + 0.5) * layout["cellH"]
    )
    return x, y


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "query, config, text",
    [
        ("", Config(), DEFAULT_TEXT),
        ("&mask=causal&n_heads=8&seed=3", Config(mask="causal", n_heads=8, seed=3), DEFAULT_TEXT),
        # more than 20,000 cells travel as 16-bit steps
        (
            "&n_heads=8&text=" + "+".join(f"w{n}" for n in range(60)),
            Config(n_heads=8),
            " ".join(f"w{n}" for n in range(60)),
        ),
    ],
    ids=["default", "causal", "long"],
)
def test_picture_shows_numbers(open_page, query, config, text, theme):
    page = open_page("/One_block?weights=random" + query, theme=theme)
    canvas, layout = canvas_of(page, "all_heads")
    canvas.scroll_into_view_if_needed()
    picture = Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")
    # Chromium paints a canvas on whole pixels, while a screenshot starts with the pixel that its
    # box begins in.
    box = canvas.bounding_box()
    right, down = (round(box[side]) - math.floor(box[side]) for side in "xy")
    expected = patterns(forward(config, split_words(text)), 0)
    high = expected.nan_to_num().max().item()
    masked = {"light": (243, 245, 248), "dark": (54, 65, 76)}[theme]
    heads, length, _ = expected.shape
    rows = torch.linspace(0, length - 1, 7).int().tolist()
    for panel in range(heads):
        for row in rows:
            for col in rows:
                value = expected[panel, row, col].item()
                if math.isnan(value) and row < 2 and col >= length // 2:
                    continue  # the name of the head stands there
                x, y = centre(layout, panel, row, col)
                pixel = picture.getpixel((int(x) + right, int(y) + down))
                reference = masked if value != value else colour(SEQUENTIAL, value / high)
                assert max(abs(a - b) for a, b in zip(pixel, reference)) <= 6, (
                    panel,
                    row,
                    col,
                    value,
                )


def test_hover_names_the_words_and_the_weight(open_page):
    page = open_page()
    canvas, layout = canvas_of(page, "all_heads")
    x, y = centre(layout, 2, 9, 1)
    canvas.hover(position={"x": x, "y": y})
    weight = patterns(forward(BASELINE, split_words(DEFAULT_TEXT), kind="trained"), 1)[
        2, 9, 1
    ].item()
    expect(page.locator(".st-key-all_heads .tip")).to_have_text(
        f"L2H3: was → defendant  {weight:.3f}"
    )


def rings(canvas, layout) -> list[list[bool]]:
    """Return, for four heads, whether two cells have a ring at their upper edge.

    The cells are (was, defendant) and (who, The).
    """
    has_ring = []
    for panel in range(4):
        has_ring.append([])
        for row, col in ((9, 1), (3, 0)):
            x, y = centre(layout, panel, row, col)
            edge = [x, y - layout["cellH"] / 2]
            pixel = canvas.evaluate(
                "(c, [x, y]) => [...c.getContext('2d').getImageData(x, y, 1, 1).data]", edge
            )
            has_ring[-1].append(max(pixel[:3]) < 60)  # the colour of text in the light theme
    return has_ring


def test_ring_marks_strongest_weight_and_follows_mouse(open_page):
    page = open_page(theme="light")
    canvas, layout = canvas_of(page, "all_heads")
    expect(page.get_by_text("Strongest: L2H3, was → defendant")).to_be_visible()
    at_rest = [[False, False], [False, False], [True, False], [False, False]]
    assert rings(canvas, layout) == at_rest
    x, y = centre(layout, 0, 3, 0)
    canvas.hover(position={"x": x, "y": y})
    assert rings(canvas, layout) == [[False, True]] * 4
    page.mouse.move(2, 2)
    assert rings(canvas, layout) == at_rest


def test_click_opens_head(open_page):
    page = open_page()
    canvas, layout = canvas_of(page, "all_heads")
    x, y = centre(layout, 3, 5, 5)
    canvas.click(position={"x": x, "y": y})
    page.wait_for_function("location.search.includes('head=4')")
    settle(page)
    assert "maps=one" in page.url
    expect(page.locator(".st-key-one_head canvas")).to_have_count(1)


@pytest.mark.parametrize("view", ["maps=one", "view=steps"])
def test_selected_head_stays_when_layers_change(open_page, view):
    """The list of heads changes its labels when there are several layers."""
    page = open_page(f"/One_block?weights=random&{view}&head=3")
    chosen = page.get_by_test_id("stMain").get_by_role("combobox", name="Head")
    for key, head in (("ArrowRight", "L2H3"), ("ArrowLeft", "L1H3"), ("ArrowRight", "L2H3")):
        page.get_by_role("slider", name="Layers (n_layers)").focus()
        page.keyboard.press(key)
        settle(page)
        expect(chosen.locator("option:checked")).to_have_text(head)
        assert "head=3" in page.url
        expect(page.locator("[data-testid=stAlert]")).to_have_count(0)


def test_typed_markup_is_shown_and_not_run(open_page):
    page = open_page(
        "/One_block?weights=random&text=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E"
        "+%3Cscript%3Ealert(2)%3C%2Fscript%3E+%24x%24+**b**&view=pairs"
    )
    expect(page.locator("[data-testid=stMain] img[src=x]")).to_have_count(0)
    field = page.locator("[data-name=text] input")
    page.wait_for_function("e => e.value.startsWith('<img src=x')", arg=field.element_handle())


@pytest.mark.parametrize(
    "path, picture",
    [
        ("/One_block", ".st-key-all_heads canvas, .st-key-drawing svg"),
        ("/Depth", ".st-key-statistics svg"),
    ],
)
def test_first_screen_shows_pictures(open_page, path, picture):
    page = open_page(path)
    for element in page.locator(picture).all():
        box = element.bounding_box()
        assert box["y"] + box["height"] <= 900
