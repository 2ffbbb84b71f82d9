"""Links to results in a browser: a matrix cell or a finished training opens its curves."""

from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.experiments.training.sentences import format_percent
from core.study.training_link import read_query
from tests.test_training_browser import BASELINE, VARIANT, curves, means

pytestmark = pytest.mark.browser

TABLE = pd.read_csv(Path(__file__).parent.parent / "results" / "ablation_matrix.csv")
SHIPS = "Precomputed: "
LOST = TABLE[(TABLE.task == "reverse") & (TABLE.variant == "− positions")].iloc[0]


@pytest.mark.parametrize("theme, width", [("light", 1400), ("dark", 390)])
def test_click_on_cell_shows_curves_without_training(open_page, theme, width):
    page = open_page("/", theme=theme, width=width)
    page.locator(f".st-key-home_matrix svg a[href='{LOST.link}']").first.click()
    page.wait_for_url("**/Training?*")
    panel = curves(page).first
    panel.locator("path").first.wait_for()
    settle(page)
    assert dict(part.split("=", 1) for part in page.url.partition("?")[2].split("&")) == read_query(
        LOST.link
    )
    expect(page.get_by_text(SHIPS)).to_be_visible()
    assert len(means(panel, BASELINE)) == len(means(panel, VARIANT)) == 51
    expect(panel.locator(".sentence")).to_contain_text(format_percent(LOST.accuracy))
    assert "Precomputed results, seeds 0 to 4" in page.locator(".legend").inner_text()
    expect(page.get_by_role("button", name="Retrain here")).to_be_enabled()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.go_back()
    expect(page.get_by_text("What does each component contribute?")).to_be_visible()
