"""Training in a browser: live curves, effects, stop, leaving, closing, two sessions."""

import re

import pytest
from playwright.sync_api import expect

from benchmarks.serving import server, settle
from core.measure.intervals import interval
from core.tasks import task
from core.train import Training, train

pytestmark = pytest.mark.browser

BASELINE = "#0072B2"
VARIANT = "#D55E00"
SMALL = "d_model=16&n_heads=2&n_layers=1&batch=8&warmup=0"
LONG = f"{SMALL}&steps=20000&seeds=2"


def start(page):
    page.get_by_role("button", name="Start", exact=True).click()


def done(page, seconds=120):
    page.get_by_text(re.compile("^Done:")).wait_for(timeout=1000 * seconds)
    settle(page)


def curves(page, key="learning"):
    return page.locator(f".st-key-{key} .panel")


def means(panel, colour) -> list[tuple[float, float]]:
    """Return the points of the line of a model's mean, in pixels."""
    path = panel.locator(f"path[stroke='{colour}']:not(.ended):not(.seed)").get_attribute("d")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_training_curves_show_numbers(open_page, theme):
    page = open_page(f"/Training?{SMALL}&steps=60&seeds=3&variants=position-none", theme=theme)
    start(page)
    done(page)
    panel = curves(page).first
    ticks = panel.locator("text.tick[text-anchor=end]").evaluate_all(
        "all => all.map(t => [t.textContent, +t.getAttribute('y')])"
    )
    (low, bottom), *_, (high, top) = [
        (float(text), y) for text, y in ticks if re.fullmatch(r"[\d.]+", text)
    ]
    training = Training(task="reverse", steps=60, batch=8, warmup=0)
    for colour, changes in ((BASELINE, {}), (VARIANT, {"position": "none"})):
        config = task["reverse"].config(d_model=16, n_heads=2, n_layers=1, **changes)
        rows = [list(train(config, training, seed)) for seed in range(3)]
        drawn = means(panel, colour)
        assert len(drawn) == len(rows[0])
        for index, (_, y) in enumerate(drawn):
            mean = interval([row[index].accuracy for row in rows]).mean
            assert abs(y - (bottom + (mean - low) / (high - low) * (top - bottom))) < 0.6
    assert panel.locator("path.seed").count() == 6 and panel.locator("path.band").count() == 2


def test_closed_tab_frees_workers(open_page, chromium):
    with server() as (address, _):
        page = chromium.new_page()
        page.goto(f"{address}/Training?{LONG}")
        settle(page)
        start(page)
        two = open_page(f"/Training?{LONG}&task=copy", server_address=address)
        start(two)
        three = open_page(f"/Training?{LONG}&task=recall", server_address=address)
        start(three)
        three.get_by_text("sharing the workers with 2 other").wait_for(timeout=30_000)
        page.close()
        expect(three.get_by_text("sharing the workers")).to_have_count(0, timeout=60_000)
        expect(two.get_by_role("button", name="Stop", exact=True)).to_have_count(1)


def test_chips_have_the_order_of_the_legend(open_page):
    page = open_page("/Training?variants=ffn-off~norm-none~residual_attention-off")
    chips = page.locator(".st-key-head .chip:visible")
    expect(chips).to_have_text(["− FFN", "− norm", "− residual (attention)"])


NAMES_UNDER_CARDS = """cards => cards.map(card => {
  const box = card.parentElement.getBoundingClientRect()
  const pressed = document.elementFromPoint(box.right - 12, box.bottom - 8)
  const name = element =>
    element.closest("[class*=st-key-card_]")?.className.match(/st-key-(card_\\w+)/)[1]
  return [card, pressed].map(name)
})"""


def test_card_is_clickable_everywhere_and_only_there(open_page):
    page = open_page("/Training")
    cards = page.locator("[class*=st-key-card_]")
    names = cards.evaluate_all(NAMES_UNDER_CARDS)
    assert len(names) >= 6 and all(card == pressed for card, pressed in names)
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("button", name="Stop").wait_for()
    assert "n_layers" not in page.url  # which presets change
