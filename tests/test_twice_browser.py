"""The second press of a double click has no effect on an element that replaced the first."""

import time

import pytest
from playwright.sync_api import expect

from tests.test_class_browser import WORDS, ask, join, started
from tests.test_training_browser import LONG

pytestmark = pytest.mark.browser
GAP = 60  # ms between the presses


def press_twice(page, button):
    """Press twice at one position, whatever has moved there meanwhile.

    The times are those of a fast double click. On a busy machine the second press may come later
    than half a second after the first.
    """
    box = button.bounding_box()
    inputs = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "button": "left"}
    browser = page.context.new_cdp_session(page)
    began = time.time()
    for count, index in ((1, began), (2, began + GAP / 1000)):
        page.wait_for_timeout(max(0.0, 1000 * (index - time.time())))
        for kind in ("mousePressed", "mouseReleased"):
            browser.send(
                "Input.dispatchMouseEvent",
                {"type": kind, "timestamp": index, "clickCount": count, **inputs},
            )


def test_teacher_double_press_takes_one_step(open_page):
    teacher, code = started(open_page)
    student = join(open_page, code)
    ask(teacher)
    button = lambda name: teacher.get_by_role("button", name=name)  # noqa: E731
    press_twice(teacher, button("Close voting"))
    expect(student.get_by_text(WORDS["class_closed"])).to_be_visible()
    teacher.wait_for_timeout(1500)  # a second step would have been taken by then
    expect(button("Vote again")).to_be_visible()
    expect(student.get_by_text(WORDS["class_closed"])).to_be_visible()
    press_twice(teacher, button(WORDS["class_show"]))
    expect(button(WORDS["class_hide"])).to_be_visible()
    teacher.wait_for_timeout(1500)
    expect(button(WORDS["class_hide"])).to_be_visible()
    press_twice(teacher, button("Vote again"))
    expect(student.get_by_role("radio", name=WORDS["sure_2"])).to_be_visible()
    teacher.wait_for_timeout(1500)
    expect(button("Close voting")).to_be_visible()
    expect(student.get_by_role("radio", name=WORDS["sure_2"])).to_be_visible()
    teacher.wait_for_timeout(500)
    button("Close voting").click()  # and one press is one
    expect(student.get_by_text(WORDS["class_closed"])).to_be_visible()


@pytest.mark.parametrize("start", ["taken=knockout", "head=2.3"])
def test_head_removed_twice_is_removed_alone(open_page, start):
    page = open_page(f"/Trained_model?{start}")
    button = page.locator(".st-key-remove_reader button, button[data-name=remove_head]").first
    expect(button).to_be_visible()
    press_twice(page, button)
    page.wait_for_url(lambda url: "out=" in url)
    page.wait_for_timeout(2000)
    assert page.url.split("out=")[1].split("&")[0] == "2.3" and "taken=knockout" in page.url


def test_double_start_starts_once(open_page):
    page = open_page(f"/Training?{LONG}")
    button = page.locator(".st-key-start button")
    press_twice(page, button)
    expect(page.locator(".st-key-stop button")).to_be_visible()
    page.wait_for_timeout(1500)
    stop = page.locator(".st-key-stop button")
    expect(stop).to_be_visible()
    stop.click()
    expect(page.locator(".st-key-resume button")).to_be_visible()


def test_press_across_redraw_counts_once(open_page):
    page = open_page("/Training")
    button = page.locator(".st-key-start button")
    expect(button).to_be_visible()
    page.evaluate("""() => {
        const style = "position: fixed; inset: 0; z-index: 1000000"
        document.body.insertAdjacentHTML("beforeend", `<div id=tried style="${style}"></div>`)
        window.presses = []
        window.draw = (words) => {
            tried.innerHTML = `<button style="width: 200px; height: 200px">${words}</button>`
            tried.firstChild.onclick = () => presses.push(words)
        }
    }""")
    for words, then, expected in (
        ("one", "one", ["one"]),
        ("two", "another", []),
        ("three", None, ["three"]),
    ):
        page.evaluate("words => { presses = []; draw(words) }", words)
        page.mouse.move(100, 100)
        page.mouse.down()
        if then:
            page.evaluate("words => draw(words)", then)
        page.mouse.up()
        page.wait_for_timeout(700)
        assert page.evaluate("presses") == expected


@pytest.mark.parametrize("key", ["Enter", " "])
def test_held_key_presses_once(open_page, key):
    page = open_page("/Training")
    pin = page.get_by_role("button", name="Pin baseline")
    pin.focus()
    for _ in range(14):  # down, and down again without up, is a key that repeats
        page.keyboard.down(key)
        page.wait_for_timeout(33)
    page.keyboard.up(key)
    page.wait_for_timeout(1500)
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
