"""The page "Studies" in a browser on a filled store: drawing, clicks, themes, widths."""

import math
import re

import pytest
from playwright.sync_api import expect

from benchmarks.serving import server, settle
from core.study.database import connection as databases
from core.study.database.store import Store
from tests.studies import fill, study
from ui.studies import view as views

pytestmark = pytest.mark.browser

STRANGE = '<img src=x onerror=alert(1)> & "quotes"'
TEXT = study(old='"1 head"', new=f"'{STRANGE}' = {{scale = false}}\n\"1 head\"").source
CONTRAST = 4.5  # WCAG 2.2, 1.4.3


def score(run) -> float:
    """Return a synthetic accuracy: losses, gains, and a variant that diverges."""
    lost = {"− norm": 0.95, "1 head": 0.5, STRANGE: -0.02}.get(run.variant, 0.0)
    if (run.task, run.variant) == ("copy", "1 head"):
        return math.nan
    return 0.97 - lost + 0.004 * math.sin(run.seed + len(run.variant))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Fill a store with two studies."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/studies.sqlite"
    store = Store(url)
    fill(store, study("other"), lambda run: 0.5)
    fill(store, study("first", text=TEXT), score)
    yield store
    store.close()


@pytest.fixture(scope="module")
def where(filled):
    with server(**{databases.VARIABLE: str(filled.url)}) as (address, _):
        yield address


@pytest.fixture
def opened(open_page, where):
    return lambda query="", **extra: open_page(f"/Studies{query}", server_address=where, **extra)


def cells(page) -> list[dict]:
    """Return every drawn cell of the matrix: title, words, address."""
    page.locator(".st-key-study_matrix svg a").first.wait_for()
    return page.locator(".st-key-study_matrix svg a").evaluate_all(
        """all => all.map(a => ({
          title: a.querySelector('title').textContent,
          href: a.getAttribute('href'),
          words: [...a.querySelectorAll('text')].map(t => t.textContent),
        }))"""
    )


@pytest.mark.parametrize("is_submitted", [True, False], ids=["said", "just typed"])
def test_escape_keeps_text_of_new_study(opened, is_submitted):
    page = opened()
    page.get_by_role("button", name="New study").click()
    page.get_by_text("Edit as TOML").click()
    page.get_by_label("Study file (TOML)").fill('name = "half written"')
    if is_submitted:
        page.keyboard.press("Control+Enter")
        settle(page)
    page.keyboard.press("Escape")
    page.get_by_label("Study file (TOML)").wait_for(state="hidden")
    settle(page)
    page.get_by_role("button", name="New study").click()
    expect(page.get_by_label("Study file (TOML)")).to_have_value(
        'name = "half written"'
    )  # it is filled once it is there


def luminance(colour) -> float:
    parts = [value / 255 for value in colour]
    parts = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in parts
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(first, other) -> float:
    light, dark = sorted((luminance(first), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def blend(front, share, back) -> list[float]:
    return [share * f + (1 - share) * b for f, b in zip(front, back)]


def rgb(text: str) -> list[float]:
    return [float(part) for part in re.findall(r"[\d.]+", text)[:3]]


PAINT = """all => {
  const paint = rect => [getComputedStyle(rect).fill, +getComputedStyle(rect).fillOpacity]
  const ink = text => [getComputedStyle(text).fill, +getComputedStyle(text).opacity]
  return all.map(a => ({
    title: a.querySelector('title').textContent,
    rects: [...a.querySelectorAll('rect:not(.edge)')].map(paint),
    texts: [...a.querySelectorAll('text')].map(text => [text.textContent, ...ink(text)]),
  }))
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_are_readable_on_matrix_colours(opened, theme):
    page = opened(theme=theme)
    cells(page)
    for item in page.locator(".st-key-study_matrix svg a").evaluate_all(PAINT):
        ground = [255, 255, 255]
        for fill_, opacity in item["rects"]:
            ground = blend(rgb(fill_), opacity, ground)
        dark = luminance(rgb(item["rects"][0][0])) < 0.5
        assert dark == (theme == "dark")
        for word, colour, opacity in item["texts"]:
            actual = contrast(blend(rgb(colour), opacity, ground), ground)
            assert actual >= (CONTRAST if opacity > 0.6 else 3), (item["title"], word, actual)


OVERLAP = """() => {
  const kinds = ':is(button, [data-testid=stSelectbox], .st-key-study_matrix)'
  const all = [...document.querySelectorAll(`[data-testid=stMain] ${kinds}`)]
    .filter(e => e.offsetParent && getComputedStyle(e).opacity > 0)
    .filter(e => !e.closest('[data-testid=stElementToolbar]'))
  return all.flatMap((a, i) => all.slice(i + 1).filter(b => {
    if (a.contains(b) || b.contains(a)) return false
    // Selected items are scrolled and clipped next to the list's own buttons.
    const list = '[data-testid=stMultiSelect]'
    if (a.closest(list) && a.closest(list) === b.closest(list)) return false
    const r = a.getBoundingClientRect(), s = b.getBoundingClientRect()
    const width = Math.min(r.right, s.right) - Math.max(r.left, s.left)
    const height = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top)
    return width > 2 && height > 2
  }).map(b => [a.outerHTML.slice(0, 200), b.outerHTML.slice(0, 200)]))
}"""


@pytest.mark.parametrize("width", [420, 1400])
def test_matrix_has_no_overlaps_and_escapes_names(opened, width):
    """A pop-up from a name would fail in open_page."""
    page = opened("?study=first", width=width)
    # A study at one size and one learning rate has no tabs for them.
    for name in [name for name in views if name not in ("sizes", "rates")]:
        page.get_by_role("radio", name=views.label(name), exact=True).click()
        settle(page)
        expect(page.locator("[data-testid=stException], [data-testid=stAlert]")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
        assert page.evaluate(OVERLAP) == []
        expect(page.locator("[data-testid=stMain] img[src=x]")).to_have_count(0)
        assert name == "matrix" or f"shown={name}" in page.url


def test_new_study_button_is_in_sight(open_page):
    page = open_page("/Studies", width=1280, height=720)
    page.get_by_role("button", name="New study").click()
    page.get_by_role("textbox", name="Question").wait_for()
    settle(page)
    box = page.get_by_role("dialog").get_by_role("button", name="Start").bounding_box()
    assert box["y"] + box["height"] <= 720


WITH_LOOKS = """name = "looks"
tasks = ["copy"]
seeds = "5, 10, 20"
margin = 0.1
device = "cpu"
[base]
d_model = 16
n_heads = 2
n_layers = 1
[training]
steps = 3
batch = 4
[variants]
"− norm" = { norm = "none" }
"""


def test_study_with_looks_stops_by_itself(open_page, tmp_path):
    """Start it on the page. After so few steps the models are undecided until the last look."""
    url = f"sqlite:///{tmp_path}/studies.sqlite"
    with server(**{databases.VARIABLE: url}) as (address, _):
        page = open_page("/Studies", server_address=address)
        page.get_by_role("button", name="New study").click()
        page.get_by_text("Edit as TOML").click()
        page.get_by_label("Study file (TOML)").fill(WITH_LOOKS)
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("undecided after 5 seeds").first).to_be_visible()
        page.get_by_role("dialog").get_by_role("button", name="Start").click()
        end = page.get_by_text(re.compile("this is the last look|no more seeds are needed"))
        expect(end.first).to_be_visible(timeout=120_000)
        stop = page.get_by_role("button", name="Stop", exact=True)
        expect(stop).to_have_count(0, timeout=120_000)
        store = Store(url)
        runs = store.runs(store.find("looks"), spec=False)
        store.close()
    assert {run.state for run in runs} == {"done"}
    seeds = {
        variant: {run.seed for run in runs if run.variant == variant}
        for variant in ("baseline", "− norm")
    }
    assert seeds["baseline"] == seeds["− norm"]
    assert len(seeds["baseline"]) in (5, 10, 20)
