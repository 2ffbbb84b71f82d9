"""Fast input in a browser: keys and clicks 20 to 120 ms apart.

It is tried on every page with settings that depend on others.
"""

import urllib.parse

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from tests.test_browser import canvas_of, centre

pytestmark = pytest.mark.browser
GAPS = [20, 120]  # ms


def params(page) -> dict[str, str]:
    """Return the address's parameters once the page has settled: equal twice, a moment apart."""
    before = None
    while True:
        page.wait_for_timeout(300)
        settle(page)
        if page.url == before:
            break
        before = page.url
    query = urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query)
    # All pages of One block here have random weights.
    return {name: value for name, value in query if (name, value) != ("weights", "random")}


def press(page, label, key, times, gap):
    page.get_by_role("slider", name=label).first.focus()
    for _ in range(times):
        page.keyboard.press(key)
        page.wait_for_timeout(gap)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize(
    "path, label, times, expected",
    [
        ("/One_block?weights=random", "Width (d_model)", 7, {"d_model": "120"}),
        (
            "/One_block?weights=random&d_ff=96",
            "Width (d_model)",
            7,
            {"d_model": "120", "d_ff": "96"},
        ),
        ("/Depth", "Width (d_model)", 7, {"d_model": "120"}),
        ("/Training", "Heads (n_heads)", 2, {"n_heads": "16"}),
    ],
    ids=lambda value: str(value) if not isinstance(value, dict) else "",
)
def test_keys_in_quick_succession_change_one_setting(open_page, path, label, times, expected, gap):
    page = open_page(path)
    press(page, label, "ArrowRight", times, gap)
    assert params(page) == expected


@pytest.mark.parametrize("gap", [60])
def test_keys_beyond_first_slider_end_are_kept(open_page, gap):
    """The slider ends at 32 at first, and has this end again on the way back."""
    page = open_page("/Depth")
    for key, times in (("ArrowRight", 30), ("ArrowLeft", 20), ("ArrowRight", 17)):
        press(page, "Passes", key, times, gap)
    assert params(page) == {"passes": "37"}


def test_long_text_is_cut_in_the_field(open_page):
    page = open_page("/One_block?weights=random")
    field = page.get_by_role("textbox", name="Sentence")
    field.evaluate(
        "(field, text) => { field.focus(); field.select(); document.execCommand('insertText',"
        " false, text) }",
        "dog " * 280_000,
    )
    field.press("Enter")
    expect(page.get_by_text("only the first 10,000 are used")).to_be_visible(timeout=30_000)
    press(page, "Width (d_model)", "ArrowRight", 1, 60)
    assert params(page)["d_model"] == "72"


@pytest.mark.parametrize("gap", [60])
def test_clicks_in_quick_succession_change_one_setting(open_page, gap):
    page = open_page("/One_block?weights=random")
    box = page.get_by_role("slider", name="Width (d_model)").bounding_box()
    for share in (0.3, 0.4, 0.5, 0.55, 0.6, 0.65):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        page.wait_for_timeout(gap)
    assert list(params(page)) == ["d_model"]


@pytest.mark.parametrize("gap", [60])
def test_task_sets_its_defaults_despite_quick_keys(open_page, gap):
    page = open_page("/Training")
    page.locator("[data-name=task] select").select_option(label="Associative recall")
    press(page, "Random seed", "ArrowRight", 3, gap)
    assert params(page) == {"task": "recall", "seed": "3"}


@pytest.mark.parametrize("gap", [60])
def test_typed_sentence_survives_quick_keys(open_page, gap):
    page = open_page("/One_block?weights=random")
    field = page.get_by_role("textbox", name="Sentence")
    field.fill("my own words")
    field.press("Enter")
    press(page, "Width (d_model)", "ArrowRight", 4, gap)
    assert params(page) == {"text": "my own words", "d_model": "96"}
    expect(field).to_have_value("my own words")


@pytest.mark.parametrize("gap", [60])
def test_example_and_pill_survive_quick_keys(open_page, gap):
    page = open_page("/Depth")
    page.get_by_text("Compare with", exact=True).click()
    page.get_by_role("checkbox", name="1 head", exact=True).click()
    page.wait_for_timeout(gap)
    page.locator("[data-name=example_of_text] select").select_option(label="Dog bites man")
    press(page, "Width (d_model)", "ArrowRight", 4, gap)
    assert params(page) == {
        "text": "The dog bites the man",
        "variants": "n_heads-1",
        "d_model": "96",
    }


def test_back_undoes_the_last_move_however_quickly_it_comes(open_page):
    page = open_page("/One_block?weights=random")
    press(page, "Width (d_model)", "ArrowRight", 1, 0)
    page.wait_for_function("location.search == '?d_model=72&weights=random'")
    page.go_back()
    assert params(page) == {}
    expect(page.locator("[data-testid=stMain]")).to_contain_text("49,984 parameters")
    page.go_forward()
    assert params(page) == {"d_model": "72"}


@pytest.mark.parametrize("gap", [60])
def test_forth_and_back_leaves_matching_address(open_page, gap):
    page = open_page("/One_block?weights=random")
    for times, back in ((4, 2), (3, 1), (3, 2)):
        press(page, "Width (d_model)", "ArrowRight", times, gap)
        press(page, "Width (d_model)", "ArrowLeft", back, gap)
        settle(page)
        value = page.get_by_role("slider", name="Width (d_model)").first.input_value()
        assert params(page)["d_model"] == value


def test_back_returns_to_page_of_experiment(open_page):
    page = open_page("/")
    page.locator(".st-key-home_matrix svg a").first.click()
    page.wait_for_function("location.pathname.endsWith('/Training')")
    settle(page)
    page.go_back()
    page.wait_for_function("!location.pathname.endsWith('/Training')")
    expect(page.get_by_text("What does each component contribute?")).to_be_visible()


def test_quick_clicks_on_replaced_picture_are_harmless(open_page):
    page = open_page("/Trained_model?taken=sweep")
    canvas, layout = canvas_of(page, "sweep_map")
    box = canvas.bounding_box()
    for column in (0, 1, 2):
        x, y = centre(layout, 0, 0, column)
        page.mouse.click(box["x"] + x, box["y"] + y)
        page.wait_for_timeout(140)
    settle(page)
    expect(page.get_by_text("This app has encountered an error")).to_have_count(0)
    expect(page.get_by_text("Effect of removing")).to_be_visible()


def turn_to(page, name):
    page.get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True).click()
    page.wait_for_function("path => location.pathname == path", arg="/" + name.replace(" ", "_"))


@pytest.mark.parametrize("gap", [60])
def test_quick_backs_step_page_by_page(open_page, gap):
    page = open_page("/One_block?weights=random")
    for name in ("Depth", "Training", "One block"):
        turn_to(page, name)
        settle(page)
    press(page, "Width (d_model)", "ArrowRight", 2, 300)
    visited = []
    for name in ("Depth", "Training", "One block", "Depth"):
        page.wait_for_timeout(2500)  # messages about links have come
        turn_to(page, name)
        visited.append((name, params(page)))
    assert [settings for _, settings in visited] == [
        {"d_model": "80"},
        {},
        {"d_model": "80"},
        {"d_model": "80"},
    ]
    page.wait_for_timeout(2500)
    for _ in range(3):
        page.evaluate("history.back()")
        page.wait_for_timeout(gap)
    for name, settings in visited:
        assert params(page) == settings
        assert page.locator("h1").inner_text() == name
        page.evaluate("history.forward()")


@pytest.mark.parametrize("pause", [0, 60])
def test_change_just_before_page_switch_is_kept(open_page, pause):
    page = open_page("/One_block?weights=random")
    page.get_by_test_id("stSidebar").get_by_role("link", name="Depth", exact=True).hover()
    press(page, "Width (d_model)", "ArrowRight", 3, 20)
    page.wait_for_timeout(pause)
    turn_to(page, "Depth")
    assert params(page) == {"d_model": "88"}


LATE = """
const listen = WebSocket.prototype.addEventListener
WebSocket.prototype.addEventListener = function (type, call, ...more) {
  const late = (event) => setTimeout(() => call(event), 400)
  return listen.call(this, type, type === "message" ? late : call, ...more)
}
"""


@pytest.mark.parametrize("pause", [150, 450])
def test_late_link_does_not_apply_to_next_page(chromium, address, pause):
    """A link of One block, 400 ms late, arrives after the click on Training."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.add_init_script(LATE)
    page.goto(f"{address}/One_block?weights=random")
    settle(page)
    page.wait_for_timeout(1500)
    press(page, "Width (d_model)", "ArrowRight", 2, 20)
    page.wait_for_timeout(pause)
    turn_to(page, "Training")
    page.wait_for_timeout(2000)
    assert params(page) == {}
    entries = page.evaluate(
        "navigation.entries().map((each) => new URL(each.url).pathname + new URL(each.url).search)"
    )
    assert [entry for entry in entries if entry.startswith("/Training")] == ["/Training"], entries
    context.close()


@pytest.mark.parametrize("slowed", [4])
def test_tap_on_menu_keeps_typed_sentence(open_page, slowed):
    """A tap blurs the field and requests the page; Streamlit sends the text after the page."""
    page = open_page("/One_block?weights=random", has_touch=True)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    for words, name in (("my own words", "Depth"), ("and some others", "One block")):
        page.get_by_role("textbox", name="Sentence").fill(words)
        page.get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True).tap()
        expect(page.locator("h1")).to_have_text(name)
        page.wait_for_function(
            "words => new URLSearchParams(location.search).get('text') == words", arg=words
        )
        assert params(page) == {"text": words}
        expect(page.get_by_role("textbox", name="Sentence")).to_have_value(words)
        assert urllib.parse.urlsplit(page.url).path == "/" + name.replace(" ", "_")


@pytest.mark.parametrize("view", ["attention", pytest.param("steps", marks=pytest.mark.slow)])
@pytest.mark.parametrize("gap", [60, pytest.param(90, marks=pytest.mark.slow)])
def test_quick_diagram_clicks_are_kept(open_page, view, gap):
    """A second click undoes the first, so a lost click would invert the rest."""
    page = open_page(f"/Trained_model?taken={view}&out=1.1")
    out = {"1.1"}
    drawn = page.locator(".part[data-part='2.2']")
    drawn.wait_for()
    for clicked in (
        ["2.2", "2.2", "2.2", "2.1", "2.4", "2.4"],
        ["2.3", "2.1", "2.3", "2.4"],
        ["2.2", "2.3", "2.3", "2.1"],
    ):
        for head in clicked:
            page.locator(f".part[data-part='{head}']").dispatch_event("click")
            out ^= {head}
            page.wait_for_timeout(gap)
        assert set(params(page).get("out", "").split("~")) - {""} == out


def test_unheard_click_is_resent_once(open_page):
    page = open_page("/Trained_model?taken=attention&out=1.1")
    part = page.locator(".part[data-part='2.2']")
    part.wait_for()
    page.evaluate("window.plain = WebSocket.prototype.send; WebSocket.prototype.send = () => {}; 0")
    part.dispatch_event("click")
    page.wait_for_timeout(5500)
    page.evaluate("WebSocket.prototype.send = window.plain; 0")
    page.locator(".part[data-part='2.4']").dispatch_event("click")
    page.wait_for_function(
        "new URLSearchParams(location.search).get('out')?.split('~').length == 3"
    )
    assert set(params(page)["out"].split("~")) == {"1.1", "2.2", "2.4"}
    page.locator(".part[data-part='2.2']").dispatch_event("click")
    page.wait_for_function(
        "new URLSearchParams(location.search).get('out')?.split('~').length == 2"
    )
    assert set(params(page)["out"].split("~")) == {"1.1", "2.4"}


def drawn_by_a_finger(page, x, y, across, up):
    touch = page.context.new_cdp_session(page)
    moves = [(x + across * n / 10, y - up * n / 10) for n in range(1, 11)]
    for kind, index in (
        ("touchStart", (x, y)),
        *(("touchMove", position) for position in moves),
        ("touchEnd", None),
    ):
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": index[0], "y": index[1]}] if index else []},
        )
        page.wait_for_timeout(16)


@pytest.mark.parametrize(
    "path, name",
    [("/Depth", "passes"), ("/One_block?weights=random", "d_model")],
)
def test_scrolling_finger_moves_no_slider(chromium, address, path, name):
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(address + path)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.wait_for_timeout(600)  # the sheet slides in
    slider = page.locator(f"[data-name={name}] input[type=range]")
    slider.scroll_into_view_if_needed()
    settle(page)
    first = slider.input_value()
    box = slider.bounding_box()
    drawn_by_a_finger(
        page, box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2, 0.6 * box["width"], 3
    )
    page.wait_for_url(lambda url: f"{name}=" in url)
    settle(page)
    value = slider.input_value()
    link = page.url
    assert value != first and f"{name}={value}" in link
    for share in (0.15, 0.9):
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        drawn_by_a_finger(
            page, box["x"] + share * box["width"], box["y"] + box["height"] / 2, 3, 130
        )
        page.wait_for_timeout(1200)
        assert slider.bounding_box()["y"] < box["y"] - 60  # the page has gone up
        assert (slider.input_value(), page.url) == (value, link)
    slider.evaluate(
        "e => e.scrollIntoView({ block: 'center' })"
    )  # from under the heading that stays
    box = slider.bounding_box()
    page.touchscreen.tap(
        box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2
    )  # a tap moves it, too
    page.wait_for_url(lambda url: f"{name}={value}" not in url)
    context.close()
