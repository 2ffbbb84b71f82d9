"""The page "Trained model" in a real browser: the head, the knife, what it cost; the text that goes on; two visitors at once."""

import re

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.checkpoints import files
from core.experiments.trained import knockout, prompt, tables
from core.experiments.trained.contributions import takeover
from core.model.generate import Sampling
from core.model.knockout import read_cuts
from core.tasks import task
from tests.test_browser import canvas_of, centre

pytestmark = pytest.mark.browser
SHIPPED = files.from_folder(files.ROOT / files.SHIPPED)
READER = ".".join(map(str, SHIPPED.about["reader"]))
PAGE = "/Trained_model"


def accuracy(out: str, mode: str = "zero") -> str:
    """What the page says about a knock-out."""
    bench = knockout.bench(SHIPPED)
    made, _ = read_cuts(out, SHIPPED.config)
    row = tables.told(bench.effect(made, mode), bench.baseline).set_index("effect").loc["accuracy"]
    return f"{100 * row.without:.1f} %"


def told(page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def test_the_verb_reaches_back_the_head_is_removed_and_the_page_says_by_how_much(open_page):
    """What the page is for, as a visitor does it."""
    page = open_page(PAGE)
    said = told(page)
    assert f"Head {READER}" in said and "“was” puts" in said and "“defendant”" in said
    assert "This model does not know" not in said
    page.locator(".st-key-remove_head button").click()
    settle(page)
    said = told(page)
    assert "What does it cost to take out head" in said and accuracy(READER) in said
    assert re.search(r"95 % interval −?[\d.]+ to −?[\d.]+, 256 texts", said)
    nobody = not (takeover(knockout.bench(SHIPPED), read_cuts(READER, SHIPPED.config)[0], "zero").low > 0).any()
    assert ("No part that comes after the cut is shown to add more" in said) == nobody
    assert "before W_O" in page.locator(".st-key-knife svg").text_content()
    assert f"out={READER}" in page.evaluate("location.href")
    page.get_by_role("button", name="Put everything back").click()
    settle(page)
    assert "Nothing is knocked out yet" in told(page)


def test_a_click_on_the_map_of_every_part_knocks_it_out(open_page):
    page = open_page(f"{PAGE}?taken=sweep")
    canvas, layout = canvas_of(page, "sweep_map")
    canvas.click(position=dict(zip("xy", centre(layout, 0, 1, 5))))
    settle(page)
    assert "What does it cost to take out FFN 2?" in told(page) and accuracy("2.ffn") in told(page)


def test_every_word_that_was_written_can_be_opened(open_page):
    page = open_page(f"{PAGE}?taken=words&temperature=0")
    bench = knockout.bench(SHIPPED)
    read = prompt.read(SHIPPED, task["sentences"].texts[0][1])
    steps = list(prompt.continuation(bench, read, prompt.verb_of(read) - 1, Sampling(temperature=0.0)))
    made = page.locator(".st-key-text_whole .made")
    assert [re.sub(r"[\d.]+$", "", text) if len(text) > 1 else text for text in made.all_inner_texts()] == [
        SHIPPED.tokens.label(s.token) for s in steps
    ]
    layer, head = (n - 1 for n in SHIPPED.about["reader"])
    for n in range(min(3, len(steps))):
        made.nth(n).click()
        settle(page)
        expect(made.nth(n)).to_have_attribute("aria-pressed", "true")
        weights = steps[n].patterns[layer][head]
        best = int(weights.argmax())
        shown = page.locator(".st-key-text_whole .chip").nth(best).locator("small").inner_text()
        assert shown == f"{weights[best].item():.2f}"


def test_a_picture_of_the_lens_shows_words_and_names_them(open_page):
    page = open_page(f"{PAGE}?taken=layers")
    canvas, layout = canvas_of(page, "lens")
    words = task["sentences"].texts[0][1].split()
    canvas.hover(position=dict(zip("xy", centre(layout, 0, 2, words.index("liable") - 1))))
    assert "“liable”" in page.locator(".st-key-lens .tip").inner_text()


def test_a_trained_model_is_taken_apart_from_the_training_page(open_page):
    page = open_page("/Training?task=copy&steps=30&seeds=1&d_model=16&n_heads=2&begin=on")
    page.get_by_text("Done:").wait_for(timeout=60_000)
    settle(page)
    page.get_by_role("button", name="Take one apart").click()
    page.get_by_text("baseline, seed 0").last.click()
    page.get_by_role("heading", name="Trained model").wait_for(timeout=20_000)
    settle(page)
    assert "copy: baseline, seed 0, step 30" in page.evaluate("document.body.innerText") or "copy" in told(page)
    page.get_by_role("radio", name="Every part").click()
    settle(page)
    assert "Of the heads" in told(page)


def test_a_sentence_is_written_by_clicks_and_by_keys(open_page):
    """Quick hands lose no word; what can come next is what stands first; the focus stays in the list."""
    page = open_page(f"{PAGE}?taken=words&prompt=the")
    field = page.get_by_label("Prompt", exact=True)
    page.get_by_text("Words it knows").click()
    kinds = page.locator(".lexicon .kind")
    expect(kinds.first).to_have_attribute("aria-label", "People (can come next)")
    for word in ("lawyer", "held", "that", "the"):  # faster than the page answers
        page.locator(".lexicon").get_by_role("button", name=word, exact=True).click()
    expect(field).to_have_value("the lawyer held that the")
    settle(page)
    expect(field).to_have_value("the lawyer held that the")
    assert page.evaluate("new URL(location).searchParams.get('prompt')") == "the lawyer held that the"
    expect(kinds.first).to_have_attribute("aria-label", "People (can come next)")
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
    assert "What comes after “courts”?" in told(page)
    page.get_by_role("button", name="Complete it").click()
    settle(page)
    assert field.input_value().startswith("the lawyer held that the courts ") and field.input_value().endswith(" .")
    page.keyboard.press("Tab")  # the name of the fold
    page.keyboard.press("Tab")  # one stop for all the words
    expect(kinds.first.locator("button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".lexicon")).not_to_have_attribute("open", "")
