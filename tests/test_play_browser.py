"""The animation of passes in a browser: frames equal the computed passes.

It is driven by button, keys and pointer.
"""

import io
import json
import re

import pytest
from PIL import Image
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.experiments.depth.depth import Depth, travel
from core.model.config import Config
from core.model.text import DEFAULT_TEXT, split_words

pytestmark = pytest.mark.browser
LINK = "/Depth?show=play&variants=norm-none&passes=6"


def cell(page, panel: int, row: int, column: int) -> str:
    """Return the text that is shown when the pointer is on a cell."""
    canvas = page.locator(".st-key-played canvas")
    a = json.loads(canvas.get_attribute("data-layout"))
    box = canvas.bounding_box()
    x = box["x"] + (panel % a["across"]) * a["stepX"] + a["left"] + (column + 0.5) * a["cellW"]
    y = (
        box["y"]
        + a["head"]
        + panel // a["across"] * a["stepY"]
        + a["top"]
        + (row + 0.5) * a["cellH"]
    )
    page.mouse.move(x, y)
    page.mouse.move(x + 1, y + 1)
    return page.locator(".st-key-played .tip").inner_text()


def scrubber(page):
    return page.get_by_role("slider", name="Pass", exact=True)


@pytest.mark.parametrize("matrix", ["pattern", "alike"])
def test_played_pass_shows_numbers_and_marks_curves(open_page, matrix):
    page = open_page(f"{LINK}&matrix={matrix}")
    journeys = [
        travel(Config(**changes), split_words(DEFAULT_TEXT), None, Depth(6), cells_to_play=1)
        for changes in ({}, {"norm": "none"})
    ]
    scrubber(page).focus()
    for index in range(1, 7):
        expect(page.locator(".st-key-played output")).to_have_text(f"pass {index} of 6")
        for panel, journey in enumerate(journeys):
            value = (
                journey.alike[index][3, 5]
                if matrix == "alike"
                else journey.patterns[index].mean(0)[3, 5]
            )
            assert f"{value:.3f}".replace("-", "−") in cell(page, panel, 3, 5)
            assert (
                f"RMS {journey.values_of('rms')[index]:.3g}"[:7]
                in page.locator(".st-key-played p").inner_text()
            )
        marked = page.locator(".st-key-played_curves .here").first
        assert marked.evaluate("e => e.style.display") == "block"
        page.keyboard.press("ArrowRight")


def test_play_runs_to_end_and_restarts(open_page):
    page = open_page(LINK)
    page.get_by_role("combobox", name="Speed").select_option("8")
    button = page.locator(".st-key-played .player button").first
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_text("❚❚ Pause")
    expect(page.locator(".st-key-played output")).to_have_text("pass 6 of 6")
    expect(button).to_have_text("▶ Play")
    button.click()
    expect(page.locator(".st-key-played output")).not_to_have_text("pass 6 of 6")
    button.click()  # where it is stopped it stays, and a setting that is changed leaves it there
    index = page.locator(".st-key-played output").inner_text()
    page.locator("[data-name=seed] input").press("ArrowRight")
    page.wait_for_timeout(1200)
    expect(page.locator(".st-key-played output")).to_have_text(index)


def frames(download) -> list[bytes]:
    """Return the frames of an animated image, each with its time."""
    picture = Image.open(io.BytesIO(download.value.path().read_bytes()))
    images = []
    for index in range(picture.n_frames):
        picture.seek(index)
        images.append(picture.convert("RGB").tobytes() + b"%d ms" % picture.info["duration"])
    return images


def test_animation_has_all_passes(open_page):
    page = open_page(LINK)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export animation").click()
    assert download.value.suggested_filename == "pass_after_pass_animated.png"
    images = frames(download)
    assert len(images) == 6 == len(set(images))


MANY = LINK.replace("passes=6", "passes=100")


def seed_changed(page):
    page.locator("[data-name=seed] input").press("ArrowRight")


def other_view(page):
    page.get_by_role("radio", name="Gradients", exact=True).check()


@pytest.mark.parametrize("done", [seed_changed, other_view])
def test_animation_is_unaffected_by_actions_during_export(open_page, done):
    """The export uses the state at the click; the page stays usable meanwhile."""
    page = open_page(MANY, width=1300)
    take = page.get_by_role("button", name="Export animation")
    with page.expect_download() as alone:
        take.click()
    expect(take).to_be_enabled()
    scrubber(page).press("End")
    with page.expect_download() as meanwhile:
        take.click()
        page.get_by_role("button", name=re.compile(r"\d+ of 100")).wait_for()
        done(page)
    assert frames(meanwhile) == frames(alone) and len(frames(alone)) == 100
    settle(page)
    if done is other_view:
        return
    expect(page.locator(".st-key-played output")).to_have_text("pass 100 of 100")
    text = page.locator(".st-key-played p").inner_text()
    cell_text = cell(page, 0, 3, 5)
    page.goto(page.url)
    settle(page)
    scrubber(page).press("End")
    expect(page.locator(".st-key-played p")).to_have_text(text)
    assert cell(page, 0, 3, 5) == cell_text
