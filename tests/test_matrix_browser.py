"""The ablation matrix in a browser: one Tab stop, arrow keys, sticky row names on a phone."""

import pytest

from benchmarks.serving import settle
from core.study.picture import describe, describe_cell
from core.study.summary import lines, select_variants
from tests.test_shipped_results import TABLE as WITH_BASELINE

pytestmark = pytest.mark.browser
TABLE = select_variants(WITH_BASELINE)  # the start page shows the differences alone
CELLS = ".st-key-home_matrix svg a"
FOCUSED = """() => { let at = document.activeElement
  while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  return at.querySelector?.('title')?.textContent ?? '' }"""


@pytest.fixture
def matrix(open_page):
    def opened(**extra):
        page = open_page("/", **extra)
        page.locator(CELLS).first.wait_for()
        return page

    return opened


def test_matrix_cells_are_one_tab_stop_with_arrows(matrix):
    page = matrix()
    tasks, variants = (list(dict.fromkeys(TABLE[name])) for name in ("task", "variant"))
    text = {(line.variant, line.task): describe_cell(line) for line in lines(TABLE)}
    full = [
        variant for variant in variants if all((variant, task) in text for task in tasks)
    ]  # rows without a gap
    first, second = full[:2]
    assert [variants.index(item) for item in full[:2]] == [0, 1]
    assert page.locator(f"{CELLS}[tabindex='0']").count() == 1
    assert page.locator(CELLS).count() == page.locator(f"{CELLS}[tabindex]").count() == len(text)
    page.locator(CELLS).first.focus()
    focused_cell = lambda: page.evaluate(FOCUSED)  # noqa: E731
    assert focused_cell() == text[first, tasks[0]]
    for key, variant, task in [
        ("ArrowLeft", first, tasks[0]),
        ("ArrowUp", first, tasks[0]),
        ("ArrowRight", first, tasks[1]),
        ("ArrowDown", second, tasks[1]),
        ("End", second, tasks[-1]),
        ("ArrowRight", second, tasks[-1]),
        ("Home", second, tasks[0]),
        ("ArrowUp", first, tasks[0]),
    ]:
        page.keyboard.press(key)
        assert focused_cell() == text[variant, task], key
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert focused_cell() not in text.values()
    page.keyboard.press("Shift+Tab")
    assert focused_cell() == text[second, tasks[0]], "Tab comes back to where it was"
    page.keyboard.press("Enter")
    page.wait_for_url("**/Training?*")


def test_screen_readers_get_rows_columns_and_cells(matrix):
    page = matrix()
    tasks, variants = (list(dict.fromkeys(TABLE[name])) for name in ("task", "variant"))
    grid = page.get_by_role("grid", name=describe(TABLE))
    assert grid.get_by_role("columnheader").count() == len(tasks)
    rows = grid.get_by_role("rowheader").evaluate_all(
        "all => all.map(row => [...row.children].map(e => e.textContent).join(' '))"
    )
    assert rows == variants
    assert grid.get_by_role("row").count() == len(variants) + 1
    assert grid.get_by_role("gridcell").count() == len(variants) * len(tasks)
    for line in list(lines(TABLE))[:5]:
        assert grid.get_by_role("link", name=describe_cell(line), exact=True).count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_phone_keeps_row_names_while_scrolling(matrix, theme):
    page = matrix(width=390, height=844, theme=theme)
    names = page.locator(".st-key-home_matrix .names")
    before = names.bounding_box()
    cell = page.locator(CELLS).nth(2).bounding_box()
    page.locator(".st-key-home_matrix .root").evaluate("root => { root.scrollLeft = 200 }")
    after = names.bounding_box()
    cell_box = page.locator(CELLS).nth(2).bounding_box()
    assert after["x"] == pytest.approx(before["x"], abs=1) and cell_box["x"] == pytest.approx(
        cell["x"] - 200, abs=1
    )
    box = page.locator(".st-key-home_matrix .names svg").bounding_box()
    assert 80 < box["width"] < 200
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    row = page.locator(".st-key-home_matrix .names text").first
    row_name = page.locator(".st-key-home_matrix [role=rowheader] text").first
    assert row.inner_html() == row_name.inner_html() and row.bounding_box()["y"] == pytest.approx(
        row_name.bounding_box()["y"], abs=1
    )
    page.locator(CELLS).nth(3).focus()  # no cell with the focus lies below the names
    page.keyboard.press("Home")
    settle(page)
    assert page.locator(CELLS).first.bounding_box()["x"] >= box["x"] + box["width"] - 1


def test_back_from_cell_returns_to_its_study(open_page):
    """Streamlit's page switch wrote the cell's settings into the start page's address.

    Back led there, with a warning.
    """
    page = open_page("/?parts=positions")
    page.locator(CELLS).nth(3).click()
    page.wait_for_url("**/Training?*")
    settle(page)
    page.go_back()
    page.locator(CELLS).first.wait_for()
    settle(page)
    assert "parts=positions" in page.url and "steps" not in page.url
    assert "Unknown setting" not in page.locator("body").inner_text()
    page.go_forward()
    page.wait_for_url("**/Training?*")
    settle(page)
    assert "Unknown setting" not in page.locator("body").inner_text()
