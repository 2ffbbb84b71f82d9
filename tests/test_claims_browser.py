"""Claims in a browser: click or key shows how one was measured; a phone clips nothing."""

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.teaching.claims import claim

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("by", ["click", "key"])
def test_listed_claim_shows_its_measurement(open_page, by):
    page = open_page("/Claims")
    row = page.get_by_role("button", name=claim.label("rms_norm"))
    row.focus()
    row.click() if by == "click" else page.keyboard.press("Enter")
    settle(page)
    expect(page.get_by_text(claim["rms_norm"].here)).to_be_visible()
    assert "claim=rms_norm" in page.url and "shown=evidence" in page.url
    page.go_back()
    expect(page.get_by_role("button", name=claim.label("rms_norm"))).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_verdicts_are_in_sight_at_any_width(open_page, width, theme):
    page = open_page("/Claims", width=width, theme=theme)
    rows = page.locator(".st-key-claims .row")
    expect(rows).to_have_count(len(claim))
    for row in rows.all():
        box = row.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        for part in row.locator(":scope > div").all():
            assert part.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
