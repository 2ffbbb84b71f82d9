"""Results in links in a browser: a click on a cell of the matrix shows its curves, and so does a link to what somebody has trained."""

import re
from pathlib import Path

import pandas as pd
import psutil
import pytest
from playwright.sync_api import expect

from benchmarks.serving import server, settle
from core.experiments.training.sentences import percent
from core.study.training_link import read_query
from tests.test_training_browser import BASELINE, SMALL, VARIANT, curves, done, means, start, wait

pytestmark = pytest.mark.browser

TABLE = pd.read_csv(Path(__file__).parent.parent / "results" / "ablation_matrix.csv")
SHIPS, HERE = "These results ship with the lab", "This server has done these before"
LOST = TABLE[(TABLE.task == "reverse") & (TABLE.variant == "− positions")].iloc[0]


def click_cell(page, line):
    page.locator(f".st-key-home_matrix svg a[href='{line.link.replace('&', '&amp;')}'], .st-key-home_matrix svg a[href='{line.link}']").first.click()  # fmt: skip
    page.wait_for_url("**/Training?*")


@pytest.mark.parametrize("theme, width", [("light", 1400), ("dark", 390)])
def test_a_click_on_a_cell_shows_its_curves_and_trains_nothing(open_page, theme, width):
    page = open_page("/", theme=theme, width=width)
    click_cell(page, LOST)
    panel = curves(page).first
    panel.locator("path").first.wait_for()
    settle(page)
    assert dict(part.split("=", 1) for part in page.url.partition("?")[2].split("&")) == read_query(LOST.link)
    expect(page.get_by_text(SHIPS)).to_be_visible()
    assert len(means(panel, BASELINE)) == len(means(panel, VARIANT)) == 51
    assert percent(LOST.accuracy) in panel.locator(".sentence").inner_text()
    assert "Shipped results, seeds 0 to 4" in page.locator(".legend").inner_text()
    expect(page.get_by_role("button", name="Train it anew, here")).to_be_enabled()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.go_back()
    expect(page.get_by_text("What each part is for, measured")).to_be_visible()


def test_it_is_trained_anew_by_one_click_whatever_becomes_of_a_worker_and_after_a_reload_it_is_there_again(open_page):
    with server() as (address, process):
        page = open_page("/", at=address)
        click_cell(page, LOST)
        again = page.get_by_role("button", name="Train it anew, here")
        again.wait_for()
        page.wait_for_timeout(600)  # what is pressed within half a second of a turn was meant for the page before
        again.click()
        page.get_by_role("button", name="Stop", exact=True).wait_for()
        expect(page.get_by_text(SHIPS)).to_have_count(0)
        wait(lambda: curves(page).count() and len(means(curves(page).first, BASELINE)) > 1)
        for child in psutil.Process(process.pid).children(recursive=True):
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_text("Stopped at").wait_for()
        page.reload()
        settle(page)
        expect(page.get_by_text(SHIPS)).to_be_visible()
        assert len(means(curves(page).first, BASELINE)) == 51


def test_a_link_to_what_another_visitor_has_trained_shows_it_at_once(open_page):
    one = open_page(f"/Training?{SMALL}&steps=40&seeds=2&seed=77")
    one.get_by_text(re.compile("Start begins 4 trainings of 40 steps: about")).wait_for()
    start(one)
    done(one)
    drawn = means(curves(one).first, BASELINE)
    two = open_page(one.url.replace(one.evaluate("location.origin"), ""))
    expect(two.get_by_text(HERE)).to_be_visible()
    assert means(curves(two).first, BASELINE) == drawn
    expect(two.get_by_text("Press Start, or begin with an experiment")).to_have_count(0)
