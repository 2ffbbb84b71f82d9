"""Keyboard use: focus stays where a control was pressed, is visible, and reaches every cell."""

import re

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from tests.test_browser import canvas_of, centre

pytestmark = pytest.mark.browser
# What has the focus, through the components' own documents.
FOCUSED = """() => {
  let focus = document.activeElement
  while (focus?.shadowRoot?.activeElement) focus = focus.shadowRoot.activeElement
  if (focus === document.body) return ""
  const label = focus.getAttribute("aria-label") || focus.textContent.trim() || focus.title
  return `${label || focus.closest("[data-name]")?.dataset.name}`
}"""


def focused(page) -> str:
    """Return the focused element's label, once there is one: a replaced element loads later."""
    return page.wait_for_function(FOCUSED, timeout=10_000).json_value()


def press(page, locator, key="Enter", until=settle):
    """Press a key on an element; Tab before it makes the browser treat the focus as by keyboard."""
    page.keyboard.press("Tab")
    locator.focus()
    locator.press(key)
    until(page)
    page.wait_for_timeout(500)


@pytest.mark.parametrize(
    "path, pressed, then",
    [
        ("/One_block?weights=random&d_model=128", "Width (d_model): reset to 64", "d_model"),
        ("/One_block?weights=random", "One block", "One block"),
        ("/Trained_model", "Remove L2H3", None),
    ],
)
def test_focus_is_never_lost(open_page, path, pressed, then):
    page = open_page(path)
    control = (
        page.get_by_role("link", name="Depth")
        if pressed == "One block"
        else page.get_by_role("button", name=pressed)
    )
    press(page, control.first)
    actual = focused(page)
    if then == "d_model":
        assert page.locator("[data-name=d_model] input").evaluate(
            "e => e === document.activeElement"
        )
    if pressed == "One block":
        assert page.locator("h1").inner_text() == "Depth" and "Depth" in actual


def test_focus_moves_from_start_to_stop_and_back(open_page):
    page = open_page("/Training?steps=2000&seeds=1")
    # A page that trains changes all the time: it has settled when the training is over.
    stop = page.get_by_role("button", name="Stop", exact=True)
    press(
        page, page.get_by_role("button", name="Start", exact=True), until=lambda _: stop.wait_for()
    )
    expect(stop).to_be_visible()
    assert focused(page)
    press(page, stop)
    expect(page.get_by_role("button", name="Continue", exact=True)).to_be_visible()
    page.wait_for_timeout(500)
    assert focused(page)


def test_focus_ring_surrounds_tabs_and_menu_entries(open_page):
    page = open_page("/One_block?weights=random")
    page.get_by_text("Compare with", exact=True).click()
    for name, role in (("Attention", "radio"), ("− norm", "checkbox")):
        page.keyboard.press("Tab")
        tick = page.get_by_role(role, name=name, exact=True).first
        tick.focus()
        around = tick.evaluate(
            "e => [getComputedStyle(e.nextElementSibling).outlineStyle,"
            " getComputedStyle(e.parentElement).overflow]"
        )
        assert around == ["solid", "visible"], name


@pytest.mark.parametrize("width", [1280, 1920])
def test_change_sheet_fits_screen_and_enter_picks(open_page, width):
    page = open_page("/One_block?weights=random")
    page.set_viewport_size({"width": width, "height": 800})
    press(page, page.locator(".more summary"))
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    box = page.locator(".sheet").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    page.keyboard.type("rope")
    page.keyboard.press("Enter")
    page.wait_for_url("**variants=position-rope*")


def test_arrow_keys_move_between_maps_and_cells(open_page):
    page = open_page("/One_block?weights=random&text=one two three")
    maps, layout = canvas_of(page, "all_heads")
    tip = page.locator(".st-key-all_heads .tip")
    tokens = ["one", "two", "three"]
    maps.focus()
    messages = []
    for key in ["ArrowRight"] * 3 + ["ArrowDown"] * 3 + ["End", "Home", "ArrowUp"]:
        page.keyboard.press(key)
        messages.append(tip.inner_text().rsplit("  ", 1)[0])
        panel, row, col = re.fullmatch(r"L1H(\d): (\w+) → (\w+)", messages[-1]).groups()
        x, y = centre(layout, int(panel) - 1, tokens.index(row), tokens.index(col))
        edge = [x, y - layout["cellH"] / 2]
        pixel = maps.evaluate(
            "(c, [x, y]) => [...c.getContext('2d').getImageData(x, y, 1, 1).data]", edge
        )
        assert max(pixel[:3]) < 60, key  # a ring in the colour of text
    head = "L1H{}: {} → {}".format
    assert messages[:4] == [
        head(1, "one", "two"),
        head(1, "one", "three"),
        head(2, "one", "one"),
        head(2, "two", "one"),
    ]
    assert messages[4] == head(2, "three", "one") and messages[5].startswith(("L1H4", "L1H2"))
    assert messages[6].endswith("→ three") and messages[7].endswith("→ one")
    page.keyboard.press("Tab")
    expect(tip).to_be_hidden()
