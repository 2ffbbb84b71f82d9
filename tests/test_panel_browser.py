"""The controls of the sidebar in a real browser: by mouse while it is held, by touch, by keys; and what they say of themselves."""

import urllib.parse

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from tests.test_quick_hands_browser import LATE

pytestmark = pytest.mark.browser
# Notes every change of the drawing of the block, which follows each value of the width.
WATCH = """() => {
  window.shown = []
  const look = () => {
    const roots = [...document.querySelectorAll(".st-key-drawing *")].flatMap((each) => each.shadowRoot ?? [])
    const words = roots.map((root) => root.textContent.match(/in: 14 × (\\d+)/)?.[1]).find(Boolean)
    if (words && words !== window.shown.at(-1)) window.shown.push(words)
    window.looking = requestAnimationFrame(look)
  }
  look()
}"""


def params(page) -> dict[str, str]:
    page.wait_for_timeout(400)
    settle(page)
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))


def thumb(page, name):
    """-> (the input, x and y of its thumb, width of its way)"""
    field = page.locator(f"[data-name={name}] input")
    box = field.bounding_box()
    share = field.evaluate("e => (e.value - e.min) / (e.max - e.min)")
    return field, box["x"] + 7 + share * (box["width"] - 14), box["y"] + box["height"] / 2, box["width"] - 14


@pytest.mark.parametrize("path", ["/One_block", "/Depth?show=curves"])
def test_pictures_and_link_follow_what_is_dragged(open_page, path):
    page = open_page(path)
    field, x, y, way = thumb(page, "d_model")
    entries = page.evaluate("history.length")
    if path == "/One_block":
        page.evaluate(WATCH)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 31):
        page.mouse.move(x + step * way / 60, y)
        page.wait_for_timeout(60)
    page.wait_for_timeout(500)
    under = field.input_value()
    if path == "/One_block":
        shown = page.evaluate("window.shown")
        assert len(shown) >= 4 and shown[-1] == under, (shown, under)  # while the button is down
    assert "d_model" not in page.url  # no entry of the history for what is passed over
    page.mouse.up()
    assert params(page) == {"d_model": under} and field.input_value() == under
    assert page.evaluate("history.length") == entries + 1


def test_what_is_held_stays_under_the_finger_when_its_bounds_open_up(open_page):
    page = open_page("/One_block")
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


def test_a_finger_moves_it_on_a_phone(chromium, address):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}/One_block")
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").tap()
    settle(page)
    box = page.locator("[data-name=d_model] input").bounding_box()
    page.touchscreen.tap(box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2)
    assert params(page) == {"d_model": page.locator("[data-name=d_model] input").input_value()} != {"d_model": "64"}
    page.get_by_role("switch", name="Attention", exact=True).tap()
    assert params(page)["attention"] == "off"
    context.close()


def test_all_of_it_can_be_done_by_keys_and_the_focus_stays(open_page):
    page = open_page("/One_block")
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


def test_each_says_what_it_is_for_and_goes_back_by_one_click(open_page):
    page = open_page("/One_block?d_model=96&d_ff=100&norm=none")
    page.get_by_role("button", name="About Norm").click()
    expect(page.locator("[data-name=norm] .help")).to_contain_text("RMSNorm")
    page.keyboard.press("Escape")
    expect(page.locator("[data-name=norm] .help")).to_be_hidden()
    expect(page.get_by_role("button", name="Heads (n_heads): back to")).to_have_count(0)  # it is at its default
    page.get_by_role("button", name="FFN width (d_ff): back to 384").click()
    assert params(page) == {"d_model": "96", "norm": "none"}
    page.get_by_role("button", name="Norm: back to LayerNorm").click()
    page.locator("[data-name=d_model] input").press("ArrowRight")  # and d_ff follows again
    assert params(page) == {"d_model": "104"}
    page.get_by_role("button", name="Back to the defaults").click()
    assert params(page) == {}


def test_a_task_that_brings_another_default_takes_no_keys_away(chromium, address):
    """The slider under the hand stays the one that it was, also where a group above it goes: here 400 ms after the task was chosen."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.add_init_script(LATE)
    page.goto(f"{address}/Training")
    settle(page)
    page.wait_for_timeout(1500)
    page.locator("[data-name=task] select").select_option(label="Legal sentences")
    batch = page.get_by_role("slider", name="Batch")
    batch.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(100)
    page.wait_for_timeout(2000)
    settle(page)
    expect(page.locator("[data-name=length]")).to_have_count(0)
    expect(batch).to_be_focused()
    assert int(batch.input_value()) >= 32 + 12 * 8
    assert params(page)["batch"] == batch.input_value()
    page.close()
