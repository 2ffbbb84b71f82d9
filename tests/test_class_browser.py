"""A class in browsers, from joining to the report: a teacher, a projector, three phones."""

import re

import pytest
from playwright.sync_api import expect

from benchmarks.serving import settle
from core.teaching.lessons.language import ENGLISH, phrases
from tests.test_accessible_browser import look

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}
WORDS = phrases(ENGLISH)
RECORDED = WORDS["class_in"].partition("{")[0]


def send(page):
    page.locator("[class*=st-key-store_], [class*=st-key-send_]").locator(
        "button:visible"
    ).last.click()
    expect(page.get_by_text(RECORDED)).to_be_visible()


def started(open_page):
    """Return the teacher's page and the class code."""
    teacher = open_page("/Class")
    teacher.get_by_role("button", name=WORDS["class_start"]).click()
    expect(teacher.get_by_text(WORDS["class_projector"])).to_be_visible()
    return teacher, teacher.locator("h2").first.inner_text().strip()


def join(open_page, code: str, nickname: str = ""):
    page = open_page(f"/Class?code={code}", **PHONE)
    page.get_by_role("textbox", name="Nickname").fill(nickname)
    page.get_by_role("button", name="Join").click()
    return page


OPEN = "[class*=st-key-open_] button"  # the teacher's


def ask(teacher):
    teacher.locator(OPEN).click()


def choose(page, option: str):
    page.locator("[data-testid=stRadio]").get_by_text(option).click()
    page.get_by_role("radio", name=WORDS["sure_2"]).click()


def test_teacher_runs_lesson_with_three_students(open_page):
    teacher, code = started(open_page)
    assert re.fullmatch("[A-Z]{5}", code)
    projector = open_page(f"/Class?shown=projector&code={code}", width=1280, height=720)
    expect(projector.get_by_text(code)).to_be_visible()
    # No other computer reaches this server: a QR code would lead nobody here.
    expect(projector.locator(".door .qr svg")).to_have_count(0)
    expect(projector.get_by_text("Students cannot connect yet")).to_be_visible()
    students = [join(open_page, code, f"Student {n}") for n in range(3)]
    for page in students:
        expect(page.get_by_text(WORDS["class_wait"])).to_be_visible()
    expect(projector.get_by_text("3 students")).to_be_visible()
    ask(teacher)
    for n, page in enumerate(students):
        choose(
            page,
            (
                "about eight times as many parameters",
                "exactly the same number of parameters",
                "exactly the same number of parameters",
            )[n],
        )
        send(page)
    expect(projector.get_by_text("3 of 3")).to_be_visible()
    assert "Student" not in projector.inner_text("body")
    look(students[0])
    teacher.get_by_role("button", name=WORDS["class_close"]).click()
    teacher.get_by_role("button", name=WORDS["class_reveal"]).click()
    for page, verdict in zip(students, ("not_as_predicted", "as_predicted", "as_predicted")):
        expect(page.get_by_role("heading").filter(has_text=WORDS[verdict])).to_be_visible()
    expect(projector.locator(".bar.right")).to_have_count(1)
    for page in (teacher, projector, students[1]):
        look(page)
    students[2].reload()
    expect(students[2].get_by_text(RECORDED)).to_be_visible()
    for page in students:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    teacher.get_by_text(WORDS["class_home"]).click()
    with teacher.expect_download() as download:
        teacher.get_by_role("link", name=WORDS["class_csv"]).click()
    assert len(download.value.path().read_text().splitlines()) == 4
    settle(teacher)
    teacher.get_by_text(WORDS["class_end_sure"]).click()
    expect(teacher.get_by_role("checkbox", name=WORDS["class_end_sure"])).to_be_checked()
    teacher.get_by_role("button", name=WORDS["class_end"]).click()
    expect(students[0].get_by_text(WORDS["class_join_title"])).to_be_visible()


def test_teacher_key_leaves_the_address(open_page, address):
    teacher, code = started(open_page)
    expect(teacher).to_have_url(re.compile(f"code={code}"))
    teacher.get_by_role("button", name=WORDS["class_key"]).click()
    key = teacher.locator("[data-testid=stPopoverBody] code").inner_text().strip()
    assert len(key) > 20 and key not in teacher.url
    teacher.reload()  # the browser has kept the key
    expect(teacher.get_by_text(WORDS["class_projector"])).to_be_visible()
    copied = teacher.url
    stranger = open_page(copied.removeprefix(address))
    expect(stranger.get_by_text(WORDS["class_no_key"])).to_be_visible()
    assert stranger.get_by_text(WORDS["class_end"]).count() == 0
    elsewhere = open_page(f"/Class?shown=teacher&teacher={key}")  # a link of an earlier version
    expect(elsewhere.get_by_text(WORDS["class_projector"])).to_be_visible()
    expect(elsewhere).to_have_url(re.compile(f"code={code}"))
    assert key not in elsewhere.url
    elsewhere.go_back()
    assert key not in elsewhere.url


def test_server_key_leaves_address_and_history(open_page):
    page = open_page("/Depth?key=wrong-key-1&passes=4")
    expect(page).not_to_have_url(re.compile("wrong-key-1"))
    assert "passes=4" in page.url
    page.go_back()
    page.wait_for_timeout(500)
    assert "wrong-key-1" not in page.url


def test_space_bar_takes_next_step_outside_fields(open_page):
    teacher, code = started(open_page)
    step = teacher.locator("[data-testid=stBaseButton-primary]:visible")
    expect(step).to_contain_text(WORDS["class_open"])
    teacher.locator("[data-testid=stMain] input").first.focus()
    teacher.keyboard.press("Space")
    teacher.keyboard.press("Escape")
    teacher.locator("[data-testid=stPopoverButton]").last.focus()
    teacher.keyboard.press("Space")
    expect(teacher.locator("[data-testid=stPopoverBody]")).to_be_visible()
    teacher.keyboard.press("Escape")
    expect(step).to_contain_text(WORDS["class_open"])
    expect(teacher.locator("[data-testid=stPopoverBody]")).to_have_count(0)
    settle(teacher)
    expect(
        teacher.locator("[data-testid=stPopoverButton]").last
    ).to_be_focused()  # to which the focus returns
    teacher.evaluate("document.activeElement.blur()")
    teacher.wait_for_timeout(1000)  # the pause between two steps (space.js)
    for name in ("class_close", "class_reveal", "class_open"):
        teacher.keyboard.press("Space")
        teacher.keyboard.press("Space")  # at once: it is one press
        expect(step.filter(has_text=WORDS[name])).to_be_visible()
        teacher.wait_for_timeout(1000)  # the pause between two steps (space.js)
        expect(step).to_have_count(1)
        expect(step).to_contain_text(WORDS[name])
