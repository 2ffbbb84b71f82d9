"""Every picture exported as SVG or PNG has the page's colours and nothing else of the page."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from benchmarks.serving import settle
from tests.test_studies_browser import CONTRAST, contrast

pytestmark = pytest.mark.browser

SMALL = (
    "d_model=16&n_heads=2&n_layers=1&batch=8&warmup=0&steps=60&seeds=2"
    "&variants=position-none&begin=on"
)
PAGES = [  # every kind of picture, on every page that draws it
    *[f"/One_block?view={view}" for view in ("attention", "steps", "neurons", "positions", "text")],
    "/One_block?view=attention&maps=one&mask=causal",
    "/One_block?maps=lines",
    "/One_block?view=heads&compare=on",
    "/One_block?view=compare&variants=ffn-off&norm=RMSNorm",
    *[f"/Depth?show={view}&variants=ffn-off" for view in ("statistics", "play", "grid")],
    *[f"/Training?{SMALL}&trained={view}" for view in ("learning", "together")],
    *[f"/Trained_model?taken={view}&out=2.4" for view in ("steps", "words", "layers", "credit")],
    "/Trained_model?taken=without",
]
# As in ui/kit/pictures.js: what on the page is a picture, those that are visible.
FOUND = """() => {
  function* within(node) {
    for (const element of node.querySelectorAll("*")) {
      yield element
      if (element.shadowRoot) yield* within(element.shadowRoot)
    }
  }
  const own = "svg.picture, [data-testid=stVegaLiteChart] svg.marks, svg[viewBox][aria-label]"
  return [...within(document.querySelector("[data-testid=stMain]"))]
    .filter(each => (each.toSvg || each.matches(own)) && each.getBoundingClientRect().width > 40)
}"""
BLOCK = 12  # pixels; smaller than a legend


SAVED = """() => {
  HTMLAnchorElement.prototype.click = function () {
    const encode = buffer =>
      btoa([...new Uint8Array(buffer)].map(byte => String.fromCharCode(byte)).join(""))
    window.saved = fetch(this.href).then(response => response.arrayBuffer()).then(encode)
  }
}"""  # a browser lets no page save many files in a row


def save_picture(page, row, kind) -> bytes:
    page.evaluate("window.saved = null")
    row.get_by_text(kind, exact=True).click()
    page.wait_for_function("window.saved")
    return base64.b64decode(page.evaluate("window.saved"))


def photograph(chromium, svg: str) -> Image.Image:
    """Return the screenshot of the SVG, opened in a browser without network."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900}, offline=True)
    page.set_content(f"<body style='margin:0'>{svg}")
    image = Image.open(io.BytesIO(page.locator("svg").first.screenshot())).convert("RGB")
    page.close()
    return image


def colours(picture: Image.Image) -> np.ndarray:
    """Return how coloured each block of pixels is, (rows, columns, 2).

    Black, white and grey give 0, because fonts differ.
    """
    pixels = np.asarray(picture).astype(float)
    rows, columns = (size // BLOCK for size in pixels.shape[:2])
    means = (
        pixels[: rows * BLOCK, : columns * BLOCK]
        .reshape(rows, BLOCK, columns, BLOCK, 3)
        .mean((1, 3))
    )
    return np.stack([means[..., 0] - means[..., 1], means[..., 2] - means[..., 1]], -1)


def above(svg: str, of_a_canvas: bool, height: int) -> int:
    """Return the height in pixels of title and scale above the picture itself."""
    if of_a_canvas:
        return round(float(re.search(r'height="([\d.]+)"', svg).group(1))) - height
    return round(float(re.search(r'<svg [^>]*?\by="([\d.]+)"', svg[4:]).group(1)))


@pytest.mark.parametrize("path", PAGES)
def test_exported_picture_has_page_colours(open_page, chromium, address, path):
    page = open_page(path, width=1400, height=3000)
    if "begin=on" in path:
        page.get_by_text(re.compile("^Done:")).wait_for(timeout=120_000)
        settle(page)
    actual = page.evaluate_handle(FOUND)
    elements = [get_property.as_element() for get_property in actual.get_properties().values()]
    screenshots = [
        Image.open(io.BytesIO(element.screenshot())).convert("RGB") for element in elements
    ]
    page.locator(".st-key-take_away button").click()
    rows = page.locator(".st-key-pictures .list > div")
    if not elements:  # words and tables alone
        expect(page.locator(".st-key-pictures .root")).to_be_hidden()
        return
    page.locator(".st-key-pictures .root").hover()
    expect(rows).to_have_count(len(elements))
    page.evaluate(SAVED)
    for element, picture, row in zip(elements, screenshots, rows.all()):
        svg = save_picture(page, row, "SVG").decode()
        assert address not in svg and not re.search(r"url\((?!#)", svg)
        assert {*re.findall(r"url\(#([^)]+)\)", svg)} <= {*re.findall(r'\bid="([^"]+)"', svg)}
        down = above(svg, element.evaluate("each => Boolean(each.toSvg)"), picture.height)
        png = Image.open(io.BytesIO(save_picture(page, row, "PNG"))).convert("RGB")
        for exported in (
            photograph(chromium, svg),
            png.resize([size // 2 for size in png.size], Image.Resampling.BOX),
        ):
            exported = exported.crop((0, down, picture.width, down + picture.height))
            apart = np.abs(colours(exported) - colours(picture)).max(-1)
            assert apart.max(initial=0) < 40, (
                row.inner_text(),
                np.argwhere(apart >= 40)[:5] * BLOCK,
            )


def test_numbers_are_readable_on_all_cell_colours(chromium):
    source = "".join(
        Path(f"ui/pictures/canvas/{name}.js").read_text() for name in ("values", "grid")
    )
    ink_on = re.search(r"^function inkOn.*?^}", source, re.DOTALL | re.MULTILINE).group(0)
    assert "inkOn(pixel)" in source.replace(ink_on, "")  # it is what cells are written with
    page = chromium.new_page()
    colours_of_cells = [
        (r, g, b) for r in range(0, 256, 17) for g in range(0, 256, 17) for b in range(0, 256, 17)
    ]
    pixels = [255 << 24 | b << 16 | g << 8 | r for r, g, b in colours_of_cells]
    inks = page.evaluate(f"pixels => {{ {ink_on}; return pixels.map(inkOn) }}", pixels)
    for rgb, ink in zip(colours_of_cells, inks):
        assert contrast(rgb, {"#000": (0, 0, 0), "#fff": (255, 255, 255)}[ink]) >= CONTRAST, (
            rgb,
            ink,
        )
    page.close()
