"""Sidebar controls in a browser: mouse, touch, keys, and their accessible descriptions."""

import re
import urllib.parse

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from ui.kit.pages import PAGES

pytestmark = pytest.mark.browser
# Notes every change of the drawing of the block, which follows each value of the width.
WATCH = """() => {
  window.shown = []
  const look = () => {
    const elements = [...document.querySelectorAll(".st-key-drawing *")]
    const roots = elements.flatMap((element) => element.shadowRoot ?? [])
    const widths = roots.map((root) => root.textContent.match(/in: \\d+ × (\\d+)/)?.[1])
    const words = widths.find(Boolean)
    if (words && words !== window.shown.at(-1)) window.shown.push(words)
    window.looking = requestAnimationFrame(look)
  }
  look()
}"""


def params(page) -> dict[str, str]:
    page.wait_for_timeout(400)
    settle(page)
    text = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))
    return {
        name: value for name, value in text.items() if (name, value) != ("weights", "random")
    }  # of One block, all along


def thumb(page, name):
    """Return the input, its thumb's x and y, and the width of its track."""
    field = page.locator(f"[data-name={name}] input")
    box = field.bounding_box()
    share = field.evaluate("e => (e.value - e.min) / (e.max - e.min)")
    return (
        field,
        box["x"] + 7 + share * (box["width"] - 14),
        box["y"] + box["height"] / 2,
        box["width"] - 14,
    )


@pytest.mark.parametrize("path", ["/One_block?weights=random", "/Depth?show=curves"])
def test_pictures_and_link_follow_what_is_dragged(open_page, path):
    page = open_page(path)
    field, x, y, way = thumb(page, "d_model")
    entries = page.evaluate("history.length")
    if path == "/One_block?weights=random":
        page.evaluate(WATCH)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 31):
        page.mouse.move(x + step * way / 60, y)
        page.wait_for_timeout(60)
    page.wait_for_timeout(500)
    under = field.input_value()
    if path == "/One_block?weights=random":
        widths = page.evaluate("window.shown")
        assert len(widths) >= 4 and widths[-1] == under, (widths, under)  # while the button is down
    assert "d_model" not in page.url  # no entry of the history for what is passed over
    page.mouse.up()
    assert params(page) == {"d_model": under} and field.input_value() == under
    assert page.evaluate("history.length") == entries + 1


def test_held_slider_stays_when_bounds_change(open_page):
    page = open_page("/One_block?weights=random")
    field, x, y, way = thumb(page, "d_model")
    top = field.get_attribute("max")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 2 * way, y, steps=8)
    page.wait_for_timeout(1500)
    assert field.input_value() == top == field.get_attribute("max")
    page.mouse.move(x + way / 3, y, steps=8)
    page.wait_for_timeout(800)
    under = field.input_value()
    assert int(under) < int(top)
    page.mouse.up()
    assert params(page) == {"d_model": under}


def test_finger_moves_slider_on_phone(chromium, address):
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{address}/One_block?weights=random")
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").tap()
    settle(page)
    box = page.locator("[data-name=d_model] input").bounding_box()
    page.touchscreen.tap(box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2)
    assert (
        params(page)
        == {"d_model": page.locator("[data-name=d_model] input").input_value()}
        != {"d_model": "64"}
    )
    page.get_by_role("switch", name="Attention", exact=True).tap()
    assert params(page)["attention"] == "off"
    context.close()


def test_phone_has_controls_in_sheet_below_picture(chromium, address):
    page = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    ).new_page()
    page.goto(f"{address}/One_block?weights=random&variants=norm-none")
    settle(page)
    picture = page.locator("[data-testid=stMain] canvas:visible").first
    assert picture.bounding_box()["y"] < page.locator(".st-key-drawing").bounding_box()["y"], (
        "the picture comes first"
    )
    page.get_by_test_id("stExpandSidebarButton").tap()
    sheet = page.get_by_test_id("stSidebar")
    width = page.locator("[data-name=d_model] input")
    expect(sheet).to_be_in_viewport()
    page.wait_for_timeout(500)
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollBy(0, 260)")
    box = sheet.bounding_box()
    assert (
        box["width"] == 390
        and box["y"] > 0.5 * 844
        and picture.bounding_box()["y"] + 100 < box["y"]
    )
    before = width.input_value()
    width.tap()
    assert params(page)["d_model"] == width.input_value() != before
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").tap()
    expect(sheet).not_to_be_visible()


@pytest.mark.parametrize("path", [page.path for page in PAGES], ids=[page.key for page in PAGES])
def test_link_is_copied_by_key_without_rerun(chromium, address, path):
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page.goto(f"{address}/{re.sub(r'^pages/[0-9]_|app|[.]py$', '', path)}")
    settle(page)
    page.get_by_role("button", name="Copy link").focus()
    assert sent  # that is, what is sent is seen
    sent.clear()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    assert not sent
    context.close()


def test_panel_works_by_keyboard_and_keeps_focus(open_page):
    page = open_page("/One_block?weights=random")
    page.get_by_role("slider", name="Width (d_model)").focus()
    for key, name in (("ArrowRight", "Width (d_model)"), ("Home", "Width (d_model)")):
        page.keyboard.press(key)
        settle(page)
        expect(page.get_by_role("slider", name=name)).to_be_focused()
    assert params(page)["d_model"] == "8"
    page.get_by_role("switch", name="Attention", exact=True).focus()
    page.keyboard.press("Space")
    settle(page)
    expect(page.get_by_role("switch", name="Attention", exact=True)).to_be_focused()
    page.get_by_role("combobox", name="Norm").focus()
    page.keyboard.press("ArrowDown")
    settle(page)
    expect(page.get_by_role("combobox", name="Norm")).to_be_focused()
    assert params(page) == {"d_model": "8", "attention": "off", "norm": "RMSNorm"}


def test_controls_have_help_and_reset(open_page):
    page = open_page("/One_block?weights=random&d_model=96&d_ff=100&norm=none")
    page.get_by_role("button", name="About Norm").click()
    expect(page.locator("[data-name=norm] .help")).to_contain_text("RMSNorm")
    page.keyboard.press("Escape")
    expect(page.locator("[data-name=norm] .help")).to_be_hidden()
    expect(page.get_by_role("button", name="Heads (n_heads): reset to")).to_have_count(
        0
    )  # it is at its default
    page.get_by_role("button", name="FFN width (d_ff): reset to 384").click()
    assert params(page) == {"d_model": "96", "norm": "none"}
    page.get_by_role("button", name="Norm: reset to LayerNorm").click()
    page.locator("[data-name=d_model] input").press("ArrowRight")  # and d_ff follows again
    assert params(page) == {"d_model": "104"}
    page.get_by_role("button", name="Reset to defaults").click()
    assert params(page) == {}


@pytest.mark.parametrize("key, then", [("ArrowRight", 100), ("ArrowLeft", 50)])
def test_value_between_steps_is_shown_as_is(open_page, key, then):
    """A link may hold such a value; the first key press goes to the next step."""
    page = open_page("/Training?steps=60")
    field = page.locator("[data-name=steps] input")
    text = page.locator("[data-name=steps] output")
    expect(text).to_have_text("60")
    assert field.input_value() == "60" and field.get_attribute("aria-valuetext") == "60"
    field.press(key)
    expect(text).to_have_text(str(then))
    assert params(page)["steps"] == str(then)
    field.press("ArrowRight")
    expect(text).to_have_text(str(then + 50))
    assert params(page)["steps"] == str(then + 50)


def test_typed_text_is_kept_while_page_changes(open_page):
    """Another text may still be under way from the server when typing begins.

    It happened once in eight times in a slow browser that had just turned to the page.
    """
    page = open_page("/One_block?weights=random&text=one+two")
    field = page.get_by_role("textbox", name="Sentence")
    field.fill("one two three")
    field.press("Enter")
    page.wait_for_function("new URLSearchParams(location.search).get('text') == 'one two three'")
    settle(page)
    field.press("End")
    page.keyboard.type(" four", delay=40)
    page.evaluate("history.back()")
    page.wait_for_function("new URLSearchParams(location.search).get('text') == 'one two'")
    settle(page)
    expect(field).to_have_value("one two three four")
    field.press("Enter")
    page.wait_for_function(
        "new URLSearchParams(location.search).get('text') == 'one two three four'"
    )


def test_first_screen_has_sizes_and_components(open_page):
    page = open_page("/One_block?weights=random", width=1280, height=720)
    for name in (
        "d_model",
        "n_heads",
        "d_ff",
        "placement",
        "activation",
        "residual_attention",
        "residual_ffn",
    ):
        box = page.locator(f".st-key-panel .control[data-name={name}]").bounding_box()
        assert box["y"] + box["height"] <= 720, name


def test_side_by_side_maps_fit_one_screen(open_page):
    page = open_page("/One_block?variants=residual_attention-off", width=1280, height=720)
    for element in (
        ".st-key-drawing svg",
        ".st-key-drawing_beside svg",
        ".st-key-all_heads canvas",
        ".st-key-all_heads_beside canvas",
    ):
        box = page.locator(element).first.bounding_box()
        assert box["y"] + box["height"] <= 720, element
