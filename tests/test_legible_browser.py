"""Legibility: contrast of small print, plain numbers on axes, no clipping at 1280 pixels."""

import re

import pytest

from benchmarks.serving import settle

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    "path, log",
    [
        ("/One_block?view=cost", ["tokens in the text", "FLOPs"]),
        ("/One_block?view=positions", []),
        ("/One_block?view=norm", []),
        ("/One_block?view=change&norm=none", []),
        ("/One_block?view=stages", []),
        ("/One_block?view=heads", []),
        ("/Trained_model?taken=sweep", []),
    ],
)
def test_chart_axes_are_plain_and_name_log_scales(open_page, path, log):
    page = open_page(path, width=1280, height=1000)
    texts = page.locator("[data-testid=stVegaLiteChart] svg text")
    texts.first.wait_for()
    settle(page)
    words = texts.all_text_contents()
    assert len(words) > 5 and not [word for word in words if re.search(r"\de[+-]?\d", word)]
    for title in log:
        assert f"{title} (log scale)" in words
    if "cost" in path:
        assert {"10", "100"} <= {*words}


def cut_off(page) -> list[str]:
    """Return clipped text on buttons and switches, and in charts."""
    return page.evaluate("""() => {
          const cut = []
          const labels = "[data-testid=stMain] :is(button p, label p)"
          for (const label of document.querySelectorAll(labels)) {
            const isCut = label.scrollWidth > label.clientWidth + 1
            if (label.getClientRects().length && isCut) cut.push(label.textContent)
          }
          for (const svg of document.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")) {
            const box = svg.getBoundingClientRect()
            for (const text of svg.querySelectorAll("text")) {
              const own = text.getBoundingClientRect()
              const isVisible = own.width && getComputedStyle(text).opacity > 0
              const isCut = own.left < box.left - 1.5 || own.right > box.right + 1.5
              if (isVisible && isCut) cut.push(text.textContent)
            }
          }
          return cut
        }""")


@pytest.mark.parametrize(
    "path",
    [
        "/One_block?view=heads",
        "/One_block?view=heads&compare=on",
        "/One_block?view=cost",
        "/One_block?view=stages",
    ],
)
def test_charts_fit_1280_pixels(open_page, path):
    page = open_page(path, width=1280, height=1000)
    assert cut_off(page) == []
