"""What is on the screen can be read: contrast of small print, plain numbers on axes, nothing cut off at 1280 pixels."""

import re

import pytest

from benchmarks.serving import settle
from tests.test_studies_browser import CONTRAST, contrast, over

pytestmark = pytest.mark.browser

# Of each piece of small print that is seen: its words, its colour (with its share, and that of all that it stands in), and the
# backgrounds that it stands on, innermost first.
SMALL_PRINT = """() => {
  const parts = colour => { const n = colour.match(/[\\d.]+/g).map(Number); return [n.slice(0, 3), n[3] ?? 1] }
  const all = document.querySelectorAll("[data-testid=stCaptionContainer] :is(p, li), [data-testid=stMarkdownContainer] .stMarkdownColoredText")
  return [...all].filter(each => each.getClientRects().length && each.textContent.trim()).map(each => {
    let [colour, share] = parts(getComputedStyle(each).color)
    const backs = []
    for (let at = each; at; at = at.parentElement) {
      share *= +getComputedStyle(at).opacity
      backs.push(parts(getComputedStyle(at).backgroundColor))
    }
    return {text: each.textContent.slice(0, 40), colour, share, backs}
  })
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/One_block?view=norm",
        "/Depth?show=gradients",
        "/Trained_model?taken=words",
        "/Lessons?shown=one&lesson=heads",
    ],
)
def test_small_print_has_contrast(open_page, path, theme):
    page = open_page(path, theme=theme)
    page.locator("[data-testid=stMain] :is([data-testid=stCaptionContainer], .stMarkdownColoredText)").first.wait_for()
    found = page.evaluate(SMALL_PRINT)
    assert found
    for each in found:
        back = [255, 255, 255]
        for colour, share in reversed(each["backs"]):
            back = over(colour, share, back)
        assert contrast(over(each["colour"], each["share"], back), back) >= CONTRAST, each


@pytest.mark.parametrize(
    "path, log",
    [
        ("/One_block?view=cost", ["tokens in the text", "floating point operations"]),
        ("/One_block?view=positions", []),
        ("/One_block?view=norm", []),
        ("/One_block?view=change&norm=none", []),
        ("/One_block?view=stages", []),
        ("/One_block?view=heads", []),
        ("/Trained_model?taken=sweep", []),
    ],
)
def test_axes_of_charts_are_plain_and_say_where_they_are_logarithmic(open_page, path, log):
    page = open_page(path, width=1280, height=1000)
    texts = page.locator("[data-testid=stVegaLiteChart] svg text")
    texts.first.wait_for()
    settle(page)
    words = texts.all_text_contents()
    assert len(words) > 5 and not [each for each in words if re.search(r"\de[+-]?\d", each)]
    for title in log:
        assert f"{title} (log scale)" in words
    if "cost" in path:
        assert {"10", "100"} <= {*words}


def cut_off(page) -> list[str]:
    """Words that are cut: on buttons and switches, and in charts."""
    return page.evaluate(
        """() => {
          const cut = []
          for (const each of document.querySelectorAll("[data-testid=stMain] :is(button p, label p)"))
            if (each.getClientRects().length && each.scrollWidth > each.clientWidth + 1) cut.push(each.textContent)
          for (const svg of document.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")) {
            const box = svg.getBoundingClientRect()
            for (const text of svg.querySelectorAll("text")) {
              const own = text.getBoundingClientRect()
              if (own.width && getComputedStyle(text).opacity > 0 && (own.left < box.left - 1.5 || own.right > box.right + 1.5)) cut.push(text.textContent)
            }
          }
          return cut
        }"""
    )


@pytest.mark.parametrize(
    "path",
    ["/One_block?view=heads", "/One_block?view=heads&compare=on", "/One_block?view=cost", "/One_block?view=stages"],
)
def test_nothing_is_cut_off_at_1280_pixels(open_page, path):
    page = open_page(path, width=1280, height=1000)
    assert cut_off(page) == []
