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


def choose(page, option: str):
    page.locator("[data-testid=stRadio]").get_by_text(option, exact=True).click()


def test_a_teacher_runs_a_lesson_with_three_students(open_page):
    teacher = open_page("/Class")
    teacher.get_by_role("button", name="Start a class").click()
    expect(teacher.get_by_text("Open the projector view")).to_be_visible()
    code = teacher.locator("h2").first.inner_text().strip()
    assert re.fullmatch("[A-Z]{5}", code)
    projector = open_page(f"/Class?shown=projector&code={code}", width=1280, height=720)
    expect(projector.get_by_text(code)).to_be_visible()
    expect(projector.locator(".st-key-qr svg")).to_be_visible()
    students = [open_page(f"/Class?code={code}", **PHONE) for _ in range(3)]
    for n, page in enumerate(students):
        page.get_by_role("textbox", name="Nickname").fill(f"Student {n}")
        page.get_by_role("button", name="Join").click()
        expect(page.get_by_text("You are in")).to_be_visible()
    expect(projector.get_by_text("3 students")).to_be_visible()
    teacher.locator(".st-key-open_question button").click()
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
        teacher.get_by_role("button", name="All answers as CSV").click()
    assert len(taken.value.path().read_text().splitlines()) == 4
    teacher.get_by_text("I have what I need.").click()
    teacher.get_by_role("button", name="End the class").click()
    expect(students[0].get_by_text("Join a class")).to_be_visible()
