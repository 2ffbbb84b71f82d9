"""Lessons in a browser: predict, then see the verdict and picture; a reload keeps both."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.teaching.lessons.language import ENGLISH, phrases
from core.teaching.lessons.prediction import measure_outcome, verdict
from core.teaching.lessons.reader import lesson, read_lesson
from core.teaching.lessons.readings import reading
from core.teaching.lessons.wording import fill_in, format_number
from tests.conftest import console_errors
from tests.test_lessons import of_each

pytestmark = pytest.mark.browser
PLACE = "ablation-lab-lessons"  # as in ui/lessons/progress.js


def address(name: str, spoken: str = ENGLISH) -> str:
    language = "" if spoken == ENGLISH else f"&language={spoken}"
    return f"/Lessons?shown=one&lesson={name}{language}"


def answered(page, name: str):
    """Choose an answer and "fairly sure" by the controls. Return the answer."""
    chosen = _chosen(page, name)
    settle(page)
    page.locator(f".st-key-sure_{name} button").nth(2).click()
    return chosen


def _chosen(page, name: str):
    prediction = read_lesson(name).prediction
    if prediction.options:
        page.locator(f".st-key-answer_{name} label:has(input)").first.click()
        return 0
    if prediction.ranked:
        for place in range(len(prediction.ranked) - 1):
            page.get_by_test_id("stMain").get_by_test_id("stSelectbox").nth(place).locator(
                "input"
            ).click()
            page.get_by_role("option").first.click()
            settle(page)
        return list(prediction.ranked)
    thumb = page.get_by_test_id("stMain").get_by_role("slider")
    thumb.focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    page.locator(f".st-key-within_{name} button").first.click()
    return [
        round((prediction.scale.low + prediction.scale.high) / 2 + prediction.scale.step, 9),
        prediction.scale.within[0],
    ]


def kept(page, name: str):
    """Store an earlier answer of this lesson in the browser."""
    prediction = read_lesson(name).prediction
    answer = (
        0
        if prediction.options
        else list(prediction.ranked) or [prediction.scale.low, prediction.scale.within[0]]
    )
    entry = {name: {"answer": answer, "sure": 3, "because": "a reason", "carried": 0}}
    page.evaluate(
        "([place, kept]) => localStorage.setItem(place, kept)", [PLACE, json.dumps(entry)]
    )
    page.reload()
    settle(page)
    expect(page.locator(".st-key-next a")).to_be_visible()


@of_each
def test_lesson_runs_to_its_end(open_page, name):
    lesson_read = read_lesson(name)
    words = phrases(ENGLISH)
    out = measure_outcome(read_lesson(name))
    page = open_page(address(name), width=1280, height=720)
    errors = console_errors(page)
    main = page.get_by_test_id("stMain")
    picture = page.locator(".st-key-lesson svg")
    expect(page.get_by_role("heading", name=lesson_read.title)).to_be_visible()
    assert picture.locator(".bar, .curve, .figure").count() == 0
    result = format_number(out.number.found.mean, out.unit)
    check_phone(page)
    before = page.content()
    message = any(
        result in option.text for option in lesson_read.prediction.options
    )  # one of the answers on offer says it
    assert len(result) < 3 or message or result not in before
    assert (
        fill_in(lesson_read.means, lesson_read, out)[:60] not in before
        and lesson_read.transfer.because not in before
    )
    answer = answered(page, name)
    settle(page)
    page.get_by_role("button", name=words["store"]).click()
    settle(page)

    def is_there():
        actual = verdict(lesson_read.prediction, answer, out)
        expect(page.get_by_role("heading", name=words[actual], exact=False)).to_be_visible()
        expect(main).to_contain_text(fill_in(lesson_read.explanation[actual], lesson_read, out))
        assert picture.locator(".bar, .curve").count() >= len(lesson_read.shown)
        marks = (
            picture.locator(".mark")
            if not lesson_read.prediction.ranked
            else picture.get_by_text(re.compile("^" + words["your_order"].partition("{")[0]))
        )
        expect(marks).to_have_count(len(lesson_read.prediction.ranked) or 1)

    is_there()
    choices = page.locator(f".st-key-carried_{name} label:has(input)")
    choices.nth(lesson_read.transfer.right).click()
    settle(page)
    expect(main).to_contain_text(lesson_read.transfer.because)
    page.reload()
    settle(page)
    is_there()
    expect(choices.nth(lesson_read.transfer.right).locator("input")).to_be_checked()
    check_phone(page)
    names = list(lesson)
    following = names[(names.index(name) + 1) % len(names)]
    page.get_by_role(
        "link", name=words["next_lesson"].format(title=read_lesson(following).title)
    ).click()
    expect(page.get_by_role("heading", name=read_lesson(following).title)).to_be_visible()
    if following != names[0]:  # a link says what is not as it is at first
        page.wait_for_function("name => location.search.includes(`lesson=${name}`)", arg=following)
    assert not errors


def tab_to(page, target):
    """Move the focus to an element with the Tab key."""
    for _ in range(60):
        if target.evaluate("each => each.contains(document.activeElement)"):
            return
        page.keyboard.press("Tab")
    pytest.fail("it cannot be reached")


def test_lesson_works_by_keyboard(open_page):
    page = open_page(address("heads"))
    words = phrases(ENGLISH)
    tab_to(page, page.locator(".st-key-answer_heads [role=radiogroup]"))
    page.keyboard.press("Space")
    settle(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    settle(page)
    expect(page.locator(".st-key-answer_heads input").nth(2)).to_be_checked()
    tab_to(page, page.locator(".st-key-sure_heads [role=radiogroup]"))
    page.keyboard.press("Space")
    settle(page)
    tab_to(page, page.get_by_label(words["because"]))
    page.keyboard.type("they share the width")
    tab_to(page, page.locator(".st-key-store_heads button"))
    page.keyboard.press("Enter")
    settle(page)
    expect(page.get_by_role("heading", name=words["as_predicted"])).to_be_visible()
    expect(page.get_by_test_id("stMain")).to_contain_text("they share the width")
    tab_to(page, page.locator(".st-key-carried_heads [role=radiogroup]"))
    page.keyboard.press("Space")
    settle(page)
    page.keyboard.press("ArrowDown")
    settle(page)
    expect(page.get_by_test_id("stMain")).to_contain_text("512 divided by 128")


OUTSIDE = """() => {
  const kinds = ":is(h1, h2, h3, p, label, button, a, input, svg, figure)"
  const wide = [...document.querySelectorAll(`[data-testid=stMain] ${kinds}`)]
    .filter(element => element.getClientRects().length && element.textContent.trim())
    .filter(element => { // tabs that scroll fade out at the edge
      const tabs = element.closest(".tabs")
      return !(tabs?.scrollWidth > tabs?.clientWidth)
    })
    .filter(element => {
      const box = element.getBoundingClientRect()
      return box.right > innerWidth + 1 || box.left < -1
    })
  const cut = [...document.querySelectorAll(".st-key-lesson svg text")].filter(text => {
    const own = text.getBoundingClientRect()
    const box = text.closest("svg").getBoundingClientRect()
    const isCutSideways = own.left < box.left - 1 || own.right > box.right + 1
    const isCutVertically = own.top < box.top - 1 || own.bottom > box.bottom + 1
    return own.width && (isCutSideways || isCutVertically)
  })
  return [...wide, ...cut].map(element => element.textContent.slice(0, 60))
}"""
OVERLAPPING = """() => {
  const texts = [...document.querySelectorAll(".st-key-lesson svg text")]
    .filter(text => text.textContent.trim())
  const boxes = texts.map(text => text.getBoundingClientRect())
  const overlap = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4
  const name = box => texts[boxes.indexOf(box)].textContent
  return boxes.flatMap((a, i) =>
    boxes.slice(i + 1).filter(b => overlap(a, b)).map(b => name(a) + " / " + name(b)))
}"""


def fits(page):
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('[data-testid=stMain]'))"
    )
    assert page.evaluate(OUTSIDE) == [] and page.evaluate(OVERLAPPING) == []


def check_phone(page):
    """Fail if anything of the open lesson is cut, overlaps or is tiny on a phone."""
    before = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(500)  # the picture follows the width
    settle(page)
    fits(page)
    sizes = page.locator(".st-key-lesson svg text").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize) * e.getCTM().a)"
    )
    assert min(sizes, default=12) >= 11.9
    page.set_viewport_size(before)
    settle(page)


@pytest.mark.parametrize("name", ["heads", "layer_norm", "placement", "knowledge", "attention"])
def test_results_are_accessible(open_page, name):
    page = open_page(address(name), theme="light")
    kept(page, name)
    check_results(page, name, "light")
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(500)
    settle(page)
    check_results(page, name, "dark")


def check_results(page, name, theme):
    actual = Axe().run(page).response["violations"]
    assert not [
        (violation["id"], violation["nodes"][0]["html"][:200])
        for violation in actual
        if violation["impact"] != "minor"
    ]
    colours = page.locator(".st-key-lesson svg text").evaluate_all(
        "all => all.map(e => getComputedStyle(e).fill)"
    )
    light = sum(map(int, re.findall(r"\d+", colours[0])[:3])) > 384
    assert light == (theme == "dark") and len(set(colours)) == 1
    (text,) = page.locator(".st-key-lesson svg").evaluate_all(
        "all => all.map(e => e.getAttribute('aria-label'))"
    )
    lesson_read = read_lesson(name)
    out = measure_outcome(read_lesson(name))
    assert all(lesson_read.values[item].label in text for item in lesson_read.shown)
    first = lesson_read.shown[0]
    assert (
        format_number(out.values[first].found.mean, reading[lesson_read.values[first].reading].unit)
        in text
    )


def test_language_stays_across_lessons(open_page):
    page = open_page("/Lessons?language=de")
    words = phrases("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator(".ablation-menu")).to_have_attribute("lang", "en")  # its words are English
    page.get_by_role("link", name=read_lesson("scaling", "de").title).click()
    settle(page)
    expect(page.get_by_role("heading", name=read_lesson("scaling", "de").title)).to_be_visible()
    expect(page).to_have_url(re.compile("lesson=scaling"))
    assert "language=de" in page.url
    answered(page, "scaling")
    settle(page)
    page.get_by_role("button", name=words["store"]).click()
    settle(page)
    expect(page.get_by_test_id("stMain")).to_contain_text("99,6 %")
    page.get_by_role(
        "link", name=words["next_lesson"].format(title=read_lesson("heads", "de").title)
    ).click()
    expect(page.get_by_role("heading", name=read_lesson("heads", "de").title)).to_be_visible()
    assert "language=de" in page.url
    page.get_by_role("link", name=words["view_every"]).click()
    page.get_by_label(words["language"], exact=True).select_option(label="English")
    expect(page.get_by_role("link", name=read_lesson("heads").title)).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.get_by_role("link", name="Depth", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("Depth")
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_another_tab_undoes_nothing(open_page):
    """A stale tab does not restore a prediction that another tab changed or dropped."""
    words = phrases(ENGLISH)

    def predict(page, name, index):
        page.locator(f".st-key-answer_{name} label:has(input)").nth(index).click()
        page.locator(f".st-key-sure_{name} button").nth(2).click()
        page.get_by_role("button", name=words["store"]).and_(page.locator(":enabled")).click()
        expect(page.get_by_role("button", name=words["again"]).first).to_be_visible()
        settle(page)

    def there(page):
        return {
            name: entry["answer"]
            for name, entry in json.loads(page.evaluate(f"localStorage['{PLACE}']")).items()
        }

    first = open_page(address("heads"))
    predict(first, "heads", 0)
    two = first.context.new_page()
    two.goto(first.url.replace("heads", "mask"))
    settle(two)
    first.get_by_role("button", name=words["again"]).first.click()
    predict(first, "heads", 2)
    predict(two, "mask", 1)
    assert there(two) == {"heads": 2, "mask": 1}
    first.get_by_role("button", name=words["again"]).first.click()
    settle(first)
    two.get_by_role("button", name=words["again"]).first.click()
    predict(two, "mask", 0)
    assert there(two) == {"mask": 0}
