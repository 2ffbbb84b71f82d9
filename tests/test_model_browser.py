"""The page "Trained model" in a browser: ablation, effects, continuation, two sessions."""

import re

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.checkpoints import files
from core.experiments.trained import knockout, prompt, tables
from core.model.generate import Sampling
from core.model.knockout import read_cuts
from core.tasks import task
from tests.pages import plain
from tests.test_browser import canvas_of, centre

pytestmark = pytest.mark.browser
SHIPPED = files.from_folder(files.ROOT / files.SHIPPED)
PAGE = "/Trained_model"


def accuracy(out: str, mode: str = "zero") -> str:
    """Return the accuracy that the page shows for an ablation."""
    bench = knockout.bench(SHIPPED)
    read, _ = read_cuts(out, SHIPPED.config)
    row = (
        tables.tabulate_effects(bench.effect(read, mode), bench.baseline)
        .set_index("effect")
        .loc["accuracy"]
    )
    return f"{100 * row.without:.1f} %"


def main_text(page) -> str:
    return plain(page.locator("[data-testid=stMain]").inner_text())


def test_click_on_sweep_map_removes_part(open_page):
    page = open_page(f"{PAGE}?taken=sweep")
    canvas, layout = canvas_of(page, "sweep_map")
    canvas.click(position=dict(zip("xy", centre(layout, 0, 1, 5))))
    settle(page)
    assert "Effect of removing FFN 2" in main_text(page) and accuracy("2.ffn") in main_text(page)


def test_generated_words_can_be_opened(open_page):
    page = open_page(f"{PAGE}?taken=words&temperature=0")
    bench = knockout.bench(SHIPPED)
    read = prompt.read(SHIPPED, task["sentences"].texts[0][1])
    steps = list(
        prompt.continuation(bench, read, prompt.verb_of(read) - 1, Sampling(temperature=0.0))
    )
    generated = page.locator(".st-key-text_whole .made")
    assert [
        re.sub(r"[\d.]+$", "", text) if len(text) > 1 else text
        for text in generated.all_inner_texts()
    ] == [SHIPPED.tokens.label(s.token) for s in steps]
    layer, head = (n - 1 for n in SHIPPED.about["reader"])
    for n in range(min(3, len(steps))):
        generated.nth(n).click()
        settle(page)
        expect(generated.nth(n)).to_have_attribute("aria-pressed", "true")
        weights = steps[n].patterns[layer][head]
        best = int(weights.argmax())
        probability = (
            page.locator(".st-key-text_whole .chip").nth(best).locator("small").inner_text()
        )
        assert probability == f"{weights[best].item():.2f}"


def test_training_page_opens_trained_model(open_page):
    page = open_page("/Training?task=copy&steps=30&seeds=1&d_model=16&n_heads=2&begin=on")
    page.get_by_text("Done:").wait_for(timeout=60_000)
    settle(page)
    page.get_by_role("button", name="Inspect a trained model").click()
    page.get_by_text("baseline, seed 0").last.click()
    page.get_by_role("heading", name="Trained model").wait_for(timeout=20_000)
    settle(page)
    assert "copy: baseline, seed 0, step 30" in page.evaluate(
        "document.body.innerText"
    ) or "copy" in main_text(page)
    page.get_by_role("radio", name="Ablation").click()
    page.get_by_role("radio", name="All components").click()
    settle(page)
    assert "in logit difference" in main_text(page)


def test_sentence_is_written_by_clicks_and_keys(open_page):
    """Fast input loses no word, likely next words come first, and focus stays in the list."""
    page = open_page(f"{PAGE}?taken=words&prompt=the")
    field = page.get_by_label("Prompt", exact=True)
    page.get_by_text("Vocabulary").click()
    kinds = page.locator(".lexicon .kind")
    expect(kinds.first).to_have_attribute("aria-label", "People (likely next)")
    for word in ("lawyer", "held", "that", "the"):  # faster than the page answers
        page.locator(".lexicon").get_by_role("button", name=word, exact=True).click()
    expect(field).to_have_value("the lawyer held that the")
    settle(page)
    expect(field).to_have_value("the lawyer held that the")
    assert (
        page.evaluate("new URL(location).searchParams.get('prompt')") == "the lawyer held that the"
    )
    expect(kinds.first).to_have_attribute("aria-label", "People (likely next)")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "the"
    page.keyboard.press("Home")
    assert page.evaluate(focused) == kinds.first.locator("button").first.inner_text() == "court"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle(page)
    expect(field).to_have_value("the lawyer held that the courts")
    assert page.evaluate(focused) == "courts"
    assert page.locator(".lexicon button[tabindex='0']").count() == 1
    assert "Next token after “courts”" in main_text(page)
    page.get_by_role("button", name="Complete").click()
    settle(page)
    assert field.input_value().startswith(
        "the lawyer held that the courts "
    ) and field.input_value().endswith(" .")
    page.keyboard.press("Tab")  # the name of the fold
    page.keyboard.press("Tab")  # one stop for all the words
    expect(kinds.first.locator("button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".lexicon")).not_to_have_attribute("open", "")
