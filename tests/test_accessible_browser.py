"""axe-core finds nothing serious or moderate on any page, view, theme and width."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from benchmarks.serving import settle
from ui.block import view as block
from ui.depth import view as depth
from ui.kit.limits import Limits
from ui.kit.pages import PAGES
from ui.trained import view as trained

pytestmark = pytest.mark.browser
PLACES = (
    [
        "/",
        "/Training",
        "/Studies",
        "/Studies?study=own+learning+rates+(ships+with+the+lab)&shown=rates",
        "/Claims",
        "/Claims?shown=evidence",
        "/Class",
        "/Lessons",
        "/Lessons?shown=report",
        "/Lessons?shown=teacher_link",
        f"/One_block?only={Limits(pages=('block',), moved=('text',), locked=('norm',)).write()}",
        "/Lessons?shown=one&lesson=layer_norm&language=de",
        "/One_block?variants=norm-none~n_heads-1",
    ]
    + [f"/One_block?view={name}" for name in block]
    + [f"/Depth?variants=norm-none&show={name}" for name in depth]
    + [f"/Trained_model?taken={name}" for name in trained]
    + [
        "/Trained_model?taken=without&compared=distance",
        "/Trained_model?taken=words&prompt=the+banana",
    ]
)


@pytest.mark.parametrize("place", PLACES)
def test_views_are_accessible_and_fit_the_screen(open_page, place):
    page = open_page(place, theme="dark", width=1280)
    settle(page)
    check_view(page, "dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(500)  # pictures follow the width
    settle(page)
    check_view(page, "light")


def check_view(page, theme):
    """Fail if an open page shows an error, is wider than the screen or has a finding of axe."""
    expect(
        page.locator("[data-testid=stException], [data-testid=stAlertContentError]")
    ).to_have_count(0)
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    dark = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    assert (dark == "rgb(17, 21, 26)") == (theme == "dark")
    for fold in page.locator(".lexicon details:not([open]) > summary:visible").all():
        fold.click()
    look(page)


def look(page):
    """Fail on every finding of axe that is more than minor, once the page is complete.

    While a script runs, Streamlit fades what may be outdated: axe would report its contrast.
    A page of a class polls its server, so a script may start while axe reads: read it again.
    """
    for _ in range(3):
        settle(page)
        actual = Axe().run(page).response["violations"]
        message = [
            (violation["impact"], violation["id"], violation["nodes"][0]["html"][:200])
            for violation in actual
            if violation["impact"] != "minor"
        ]
        if not message:
            return
    raise AssertionError(message)


FORBIDDEN = """for (const name of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, name, {
    get() { throw new DOMException("Access is denied for this document.", "SecurityError") },
  })"""  # as in the frame of another site, where the browser keeps nothing for it


def test_menu_works_in_frame_without_storage(chromium, address):
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.add_init_script(FORBIDDEN)
    page.set_content(
        f'<iframe src="{address}/One_block" sandbox="allow-scripts allow-same-origin" width="1300"'
        ' height="800"></iframe>'
    )
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1")).to_have_text("One block")
    expect(frame.locator(".ablation-menu nav a")).to_have_count(len(PAGES))
    for name in ("Depth", "Lessons", "Class", "Claims"):
        frame.get_by_role("link", name=name, exact=True).first.click()
        expect(frame.locator("h1")).to_have_text(name)
    presenter = frame.get_by_role("button", name="Presentation mode")
    for pressed in ("true", "false"):
        presenter.click()
        expect(presenter).to_have_attribute("aria-pressed", pressed)
    page.close()
    assert wrong == []


SMALLEST = """() => {
  const elements = [...document.querySelectorAll("[data-testid=stMain] *, .st-key-panel *")]
  const hasText = (node) => node.nodeType === 3 && node.textContent.trim()
  return Math.min(...elements
    .filter((e) => e.checkVisibility() && [...e.childNodes].some(hasText))
    .map((e) => parseFloat(getComputedStyle(e).fontSize) * e.currentCSSZoom))
}"""


def test_presentation_mode_enlarges_and_is_in_the_link(open_page):
    page = open_page("/One_block", width=1280, height=720)
    before = page.locator(".st-key-drawing .block").bounding_box()
    page.keyboard.press("f")
    page.wait_for_url("**present=on**")
    settle(page)
    assert page.locator("[data-testid=stSidebar]").bounding_box()["width"] == pytest.approx(
        56, abs=1
    )
    assert page.evaluate(SMALLEST) >= 18
    assert page.locator(".st-key-drawing .block").bounding_box()["width"] > 1.3 * before["width"]
    canvas = page.locator(".st-key-all_heads canvas")
    pixels = canvas.evaluate("e => e.width")
    box = canvas.bounding_box()
    assert pixels == pytest.approx(box["width"], abs=2)
    assert box["y"] + box["height"] <= 720 and page.evaluate(
        "document.documentElement.scrollWidth <= innerWidth"
    )
    layout = json.loads(canvas.get_attribute("data-layout"))
    assert layout["hasColWords"] and layout["hasRowWords"]
    larger = box["width"] / canvas.evaluate("e => e.clientWidth")
    x = layout["left"] + 5.5 * layout["cellW"]
    y = layout["head"] + layout["top"] + 3.5 * layout["cellH"]
    page.mouse.move(box["x"] + larger * x, box["y"] + larger * y)
    expect(page.locator(".st-key-all_heads .tip")).to_contain_text("L2H1: who → signed")
    page.keyboard.press("3")
    page.wait_for_url("**view=stages**")
    page.get_by_role("link", name="Depth", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("Depth")
    page.wait_for_url("**/Depth?present=on")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "present" not in url)
    assert page.locator("[data-testid=stSidebar]").bounding_box()["width"] > 150


def test_presentation_mode_shows_all_statistics_and_settings(open_page):
    page = open_page("/Depth?present=on", width=1280, height=720)
    strip = page.locator(".st-key-panel .ablation-panel")
    plots = page.locator(".st-key-statistics .panel svg")
    expect(plots).to_have_count(7)
    foot = strip.bounding_box()["y"]
    boxes = [plot.bounding_box() for plot in plots.all()]
    assert max(box["y"] + box["height"] for box in boxes) <= foot
    groups = strip.get_by_role("combobox", name="Group of settings")
    for name in groups.locator("option").all_inner_texts():
        groups.select_option(name)
        controls = strip.locator(".control:visible")
        assert controls.count(), name
        for control in controls.all():
            box = control.bounding_box()
            assert (
                box["x"] + box["width"] <= 1280
                and foot - 300 <= box["y"]
                and box["y"] + box["height"] <= 720
            ), name


def test_link_opens_presentation_mode_and_fields_accept_f(open_page):
    page = open_page("/One_block?present=on", width=1280, height=720)
    expect(page.locator("html")).to_have_attribute("data-present", "")
    assert not page.locator("[data-testid=stAlert]").count()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**layer=1**")
    page.keyboard.press("f")
    page.wait_for_url(lambda url: "present" not in url)
    field = page.get_by_role("textbox", name="Sentence")
    field.fill("")
    field.press("f")
    assert field.input_value() == "f" and "present" not in page.url


def test_lines_are_told_apart_without_colour(open_page):
    page = open_page("/Depth?variants=norm-none~n_heads-1~ffn-off~placement-post")
    lines = page.locator(".st-key-statistics .panel").first.locator("path[stroke-linejoin]")
    dashes = lines.evaluate_all("all => all.map((each) => each.getAttribute('stroke-dasharray'))")
    assert len(set(dashes)) == 5


@pytest.mark.parametrize(
    "place, picture",
    [
        ("/One_block", ".st-key-all_heads canvas"),
        ("/One_block?view=change", "[aria-label^='Distance from input']"),
        ("/Depth?show=play&variants=norm-none", ".st-key-played canvas"),
    ],
)
def test_text_alternative_states_the_finding(open_page, place, picture):
    page = open_page(place)
    lines = (
        page.locator("[data-testid=stMain] [data-testid=stMarkdown] p")
        .first.inner_text()
        .split("\n")
    )
    sentence = (
        lines[0 if place == "/One_block" else 1]  # the finding on attention stands below the maps
        .split("Random weights")[0]
        .split("Trained with")[0]
        .strip()
    )
    assert len(sentence) > 20
    labels = page.locator(picture).evaluate_all(
        "all => all.map((each) => each.getAttribute('aria-label') ?? '')"
    )
    assert any(sentence[:40] in label for label in labels), (sentence, labels)
