"""A class in browsers: a teacher, a projector and three students on phones, from the code to what is taken home."""

import re

import pytest
from playwright.sync_api import expect

from tests.test_accessible_browser import look

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}


def send(page):
    page.locator("[class*=st-key-store_], [class*=st-key-send_]").locator("button:visible").last.click()
    expect(page.get_by_text("Your vote is in")).to_be_visible()


def started(open_page):
    """-> (the teacher's page, the code)"""
    teacher = open_page("/Class")
    teacher.get_by_role("button", name="Start a class").click()
    expect(teacher.get_by_text("Open the projector view")).to_be_visible()
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
    page.locator("[data-testid=stRadio]").get_by_text(option, exact=True).click()
    page.get_by_role("radio", name="fairly").click()


def test_a_teacher_runs_a_lesson_with_three_students(open_page):
    teacher, code = started(open_page)
    assert re.fullmatch("[A-Z]{5}", code)
    projector = open_page(f"/Class?shown=projector&code={code}", width=1280, height=720)
    expect(projector.get_by_text(code)).to_be_visible()
    expect(projector.locator(".st-key-qr svg")).to_be_visible()
    students = [join(open_page, code, f"Student {n}") for n in range(3)]
    for page in students:
        expect(page.get_by_text("You are in")).to_be_visible()
    expect(projector.get_by_text("3 students")).to_be_visible()
    ask(teacher)
    for n, page in enumerate(students):
        choose(
            page,
            ("about eight times as many parameters", "exactly as many parameters", "exactly as many parameters")[n],
        )
        send(page)
    expect(projector.get_by_text("3 of 3 have answered")).to_be_visible()
    assert "Student" not in projector.inner_text("body")
    look(students[0])
    teacher.get_by_role("button", name="Close voting").click()
    teacher.get_by_role("button", name="Reveal the result").click()
    for page, verdict in zip(students, ("Not as predicted", "As predicted", "As predicted")):
        expect(page.get_by_role("heading").filter(has_text=verdict)).to_be_visible()
    expect(projector.get_by_text("What it means")).to_be_visible()
    for page in (teacher, projector, students[1]):
        look(page)
    students[2].reload()
    expect(students[2].get_by_text("Your vote is in")).to_be_visible()
    for page in students:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    teacher.get_by_text("Take home, and end").click()
    with teacher.expect_download() as taken:
        teacher.get_by_role("link", name="All answers as CSV").click()
    assert len(taken.value.path().read_text().splitlines()) == 4
    teacher.get_by_text("I have what I need.").click()
    teacher.get_by_role("button", name="End the class").click()
    expect(students[0].get_by_text("Join a class")).to_be_visible()


@pytest.mark.parametrize("gap", [0, 300])
def test_a_press_twice_opens_one_question_and_takes_one_seat(open_page, gap):
    teacher, code = started(open_page)
    student = open_page(f"/Class?code={code}", **PHONE)
    for page, button in ((student, ".st-key-join button"), (teacher, OPEN)):
        box = page.locator(button).bounding_box()
        for _ in range(2):
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.wait_for_timeout(gap)
    expect(student.get_by_text("exactly as many parameters", exact=True)).to_be_visible()
    teacher.wait_for_timeout(1500)
    expect(teacher.get_by_role("heading", name="Do more heads")).to_be_visible()
    expect(teacher.get_by_text("0 of 1 have answered")).to_be_visible()


def test_a_second_tab_of_one_student_says_what_was_voted(open_page):
    teacher, code = started(open_page)
    one = join(open_page, code)
    expect(one.get_by_text("You are in")).to_be_visible()
    two = one.context.new_page()
    two.goto(one.url)
    ask(teacher)
    for page, option in ((one, "exactly as many parameters"), (two, "fewer parameters")):
        choose(page, option)
        send(page)
        expect(page.get_by_text("Your vote is in: exactly as many parameters")).to_be_visible()
    expect(two.get_by_text("Your vote is already in. It cannot be changed.")).to_be_visible()


def test_the_teacher_key_never_stays_in_the_address(open_page, address):
    teacher, code = started(open_page)
    expect(teacher).to_have_url(re.compile(f"code={code}"))
    teacher.get_by_role("button", name="Teacher's key").click()
    key = teacher.locator("[data-testid=stPopoverBody] code").inner_text().strip()
    assert len(key) > 20 and key not in teacher.url
    teacher.reload()  # the browser has kept the key
    expect(teacher.get_by_text("Open the projector view")).to_be_visible()
    copied = teacher.url
    stranger = open_page(copied.removeprefix(address))
    expect(stranger.get_by_text("does not have the teacher's key")).to_be_visible()
    assert stranger.get_by_text("End the class").count() == 0
    elsewhere = open_page(f"/Class?shown=teacher&teacher={key}")  # a link of an earlier version
    expect(elsewhere.get_by_text("Open the projector view")).to_be_visible()
    expect(elsewhere).to_have_url(re.compile(f"code={code}"))
    assert key not in elsewhere.url
    elsewhere.go_back()
    assert key not in elsewhere.url


@pytest.mark.parametrize("page_name", ["", "One_block", "Depth", "Studies", "Class"])
def test_the_server_key_leaves_the_address_and_the_history(open_page, page_name):
    page = open_page(f"/{page_name}?key=wrong-key-1")
    expect(page).not_to_have_url(re.compile("wrong-key-1"))
    page.go_back()
    page.wait_for_timeout(500)
    assert "wrong-key-1" not in page.url
