"""Training in a browser: live curves against numbers, the experiments' effects, stop, leaving, closing, two visitors."""

import re
import time

import pytest
from playwright.sync_api import expect

from benchmarks.serving import server, settle
from core.experiments.training.plan import showcase
from core.measure.intervals import interval
from core.tasks import task
from core.train import Training, train
from ui.training import view as views

pytestmark = pytest.mark.browser

BASELINE, VARIANT = "#0072B2", "#D55E00"
SMALL = "d_model=16&n_heads=2&n_layers=1&batch=8&warmup=0"
LONG = f"{SMALL}&steps=20000&seeds=2"  # on a slow machine more would be refused: at most ten minutes are allowed


def start(page):
    page.get_by_role("button", name="Start", exact=True).click()


def done(page, seconds=120):
    page.get_by_text(re.compile("^Done:")).wait_for(timeout=1000 * seconds)
    settle(page)


def curves(page, key="learning"):
    return page.locator(f".st-key-{key} .panel")


def means(panel, colour) -> list[tuple[float, float]]:
    """Where the line of a model's mean goes through, in pixels."""
    path = panel.locator(f"path[stroke='{colour}']:not(.ended):not(.seed)").get_attribute("d")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)]


def grown(page) -> int:
    """How many points the baseline's curve has."""
    return len(means(curves(page).first, BASELINE)) if curves(page).count() else 0


def wait(until, seconds=90, page=None):
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, page and page.get_by_test_id("stMain").inner_text()
        time.sleep(0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_curves_show_the_numbers(open_page, theme):
    page = open_page(f"/Training?{SMALL}&steps=60&seeds=3&variants=position-none", theme=theme)
    start(page)
    done(page)
    panel = curves(page).first
    ticks = panel.locator("text.tick[text-anchor=end]").evaluate_all(
        "all => all.map(t => [t.textContent, +t.getAttribute('y')])"
    )
    (low, bottom), *_, (high, top) = [(float(text), y) for text, y in ticks if re.fullmatch(r"[\d.]+", text)]
    training = Training(task="reverse", steps=60, batch=8, warmup=0)
    for colour, changes in ((BASELINE, {}), (VARIANT, {"position": "none"})):
        config = task["reverse"].config(d_model=16, n_heads=2, n_layers=1, **changes)
        rows = [list(train(config, training, seed)) for seed in range(3)]
        drawn = means(panel, colour)
        assert len(drawn) == len(rows[0])
        for at, (_, y) in enumerate(drawn):
            mean = interval([each[at].accuracy for each in rows]).mean
            assert abs(y - (bottom + (mean - low) / (high - low) * (top - bottom))) < 0.6
    assert panel.locator("path.seed").count() == 6 and panel.locator("path.band").count() == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", list(showcase)[:2])
def test_an_experiment_shows_its_effect(open_page, name):
    page = open_page("/Training")
    page.locator(f".st-key-card_{name} button").click()
    done(page, 300)
    assert "Something went wrong" not in page.content()
    sentence = curves(page).first.locator(".sentence").inner_text()
    full = page.locator(".legend").inner_text()
    if "diverged" in sentence:
        assert re.search(r"− norm diverged at step \d+, seed \d", sentence) and "diverged" in full
        assert "baseline" not in re.findall(r"(\S+) diverged", sentence)
    else:
        lower = float(re.search(r"That is ([\d.]+) points lower", sentence)[1])
        assert lower > 15 and "paired t-test" in sentence
        best = float(re.search(r"against ([\d.]+) %", sentence)[1])
        assert best > 90


@pytest.mark.parametrize(
    "view, label, name", [("attention", "Layer", "trained_layer"), ("answers", "Sequence", "sequence")]
)
def test_what_is_picked_in_a_view_is_shown_and_linked(open_page, view, label, name):
    page = open_page(f"/Training?{SMALL.replace('n_layers=1', 'n_layers=2')}&steps=20&seeds=1&trained={view}")
    start(page)
    done(page)
    shown = page.get_by_test_id("stMain")
    before = shown.inner_text()
    page.get_by_role("combobox", name=label).last.click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"{name}=[12]"))
    settle(page)
    assert (
        shown.inner_text() != before
    )  # sequence 1 has other tokens, layer 2 another entropy (a list's own text is not in it)


def test_a_closed_tab_frees_its_workers(open_page, chromium):
    with server() as (address, _):
        one = chromium.new_page()
        one.goto(f"{address}/Training?{LONG}")
        settle(one)
        start(one)
        two = open_page(f"/Training?{LONG}&task=copy", at=address)
        start(two)
        three = open_page(f"/Training?{LONG}&task=recall", at=address)
        start(three)
        three.get_by_text("in turn with 2 others").wait_for(timeout=30_000)
        one.close()
        expect(three.get_by_text("in turn with")).to_have_count(0, timeout=60_000)
        expect(two.get_by_role("button", name="Stop", exact=True)).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [420, 1400])
def test_nothing_sticks_out(open_page, theme, width):
    page = open_page(f"/Training?{SMALL}&steps=20&seeds=2&begin=on", theme=theme, width=width)
    done(page)
    for name in views:
        page.get_by_role("radio", name=views.label(name), exact=True).click()
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        expect(page.get_by_text("Something went wrong")).to_have_count(0)
