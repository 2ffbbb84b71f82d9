"""The view "My report": predict, download, open the file in another visit; and the file in a browser, from the disk."""

from urllib.parse import parse_qsl

import pytest

from core.teaching.lessons.entry import Entry
from core.teaching.lessons.lessons import read_lesson
from core.teaching.lessons.report import Report, read, write
from core.teaching.lessons.report.report import BEGIN, END, LARGEST
from tests.pages import download, downloads, move, widget
from tests.test_lessons_page import answer, kept, open_lesson, store
from tests.test_page import fine, opened, said_on
from tests.test_page import told as warned
from tests.test_report import HARM, LINKS, MADE, everything
from ui.kit.pages import DEPTH, LESSONS
from ui.lessons.views.report import FILE


def saved(app) -> bytes:
    """Return the file that the view offers."""
    return download(app, "Download the report")


def my_report(app=None):
    if app is None:
        return fine(opened(LESSONS.path, shown="report"))
    return fine(move(app, shown="report").run())


def upload(app, file: bytes):
    return fine(app.file_uploader[0].set_value([(FILE, file, "text/html")]).run())


def restore(app):
    return fine(next(each for each in app.button if each.key == "report_restore").click().run())


def test_without_a_prediction_it_says_what_to_do():
    app = my_report()
    assert "Predict in at least one lesson" in app.info[0].value.replace("\\", "") and not downloads(app)


def test_what_one_visit_saved_another_opens():
    app = store(answer(open_lesson("heads"), "heads", 2), "heads")
    app = my_report(app)
    said = " ".join(said_on(app))
    assert "Predictions in it so far: 1 of 13" in said and read_lesson("heads").title in said and "As predicted" in said
    app = fine(widget(app.text_input, "report_name").set_value("Ada <b>").run())
    app = fine(widget(app.text_area, "report_conclusion").set_value("It costs\nnothing.").run())
    found = read(saved(app))
    assert found.entries == kept(app) and (found.name, found.conclusion) == ("Ada <b>", "It costs\nnothing.")
    other = upload(my_report(), saved(app))
    assert "Predictions in the file: 1." in " ".join(said_on(other)) and not kept(other)
    other = restore(other)
    assert kept(other) == kept(app) and "Predictions taken over: 1." in other.success[0].value.replace("\\", "")
    assert widget(other.text_input, "report_name").value == "Ada <b>"
    assert read(saved(other)) == found


def test_what_the_file_says_goes_before_what_was_there():
    app = store(answer(open_lesson("heads"), "heads", 2), "heads")
    app = store(answer(_turn(app, "cost"), "cost", 0), "cost")
    file = write(Report({"heads": Entry(0, 3, "so", 1)}), "en", MADE).encode()
    app = restore(upload(my_report(app), file))
    assert kept(app)["heads"] == Entry(0, 3, "so", 1) and set(kept(app)) == {"heads", "cost"}


def _turn(app, name: str):
    return fine(move(app, shown="one", lesson=name).run())


@pytest.mark.parametrize("acts", ["", "&embed=true", "&EMBED=true", "&Embed_Options=dark_theme", "&ONLY=x&Menu=1"])
def test_it_leads_to_the_pages_as_they_were_set(acts):
    file = write(
        Report(
            {"heads": Entry(0, 1)}, "", "", LINKS | {"Moon": "a=1", "Class": "code=1", "Depth": LINKS["Depth"] + acts}
        ),
        "en",
        MADE,
    ).encode()
    app = upload(my_report(), file)
    links = {each.proto.label: dict(parse_qsl(each.proto.query_string)) for each in app.get("page_link")}
    assert links == {"Depth": dict(parse_qsl(LINKS["Depth"])), "One block": dict(parse_qsl(LINKS["One_block"]))}


def test_it_holds_the_settings_of_the_pages_as_they_are():
    app = fine(opened(DEPTH.path, passes="30"))
    app = app.switch_page(LESSONS.path)
    app.query_params.clear()
    app = store(answer(_turn(app.run(), "heads"), "heads", 2), "heads")
    app = my_report(app)
    assert read(saved(app)).links == {"Depth": "passes=30"} and b"Depth?passes=30" in saved(app)


@pytest.mark.parametrize("file", [b"", b"\xff", b"<p>", b"x" * (LARGEST + 1), f"{BEGIN}{{{END}".encode()])
def test_another_file_is_refused_in_words(file):
    app = upload(my_report(), file)
    assert "lab report" in warned(app) or "cannot be read" in warned(app)
    assert not any(each.key == "report_restore" for each in app.button)


@pytest.mark.parametrize("typed", [each for each in HARM if each.isprintable()])
def test_typed_marks_stay_text(typed):
    file = write(Report({"heads": Entry(0, 1, typed)}, typed, typed), "en", MADE).encode()
    app = restore(upload(my_report(), file))
    assert widget(app.text_input, "report_name").value == read(file).name
    assert read(saved(app)) == read(file)


# In a browser


WIDTHS, THEMES = (390, 1280), ("light", "dark")
PAPER = 680  # pixels of an A4 page between its margins
OUTSIDE = """() => [...document.querySelectorAll("svg text")].filter(each => {
  const at = each.getBoundingClientRect(), box = each.ownerSVGElement.getBoundingClientRect()
  return at.width && (at.left < box.left - 1 || at.right > box.right + 1)
}).map(each => each.textContent)"""


@pytest.mark.browser
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_from_the_disk_it_asks_for_nothing_and_fits(chromium, tmp_path, width, theme):
    made = everything()
    file = tmp_path / FILE
    file.write_text(
        write(Report(made.entries, HARM[0] + "x" * 60, HARM[3] * 20, made.links), "en", MADE), encoding="utf-8"
    )
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page, asked, errors = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.goto(file.as_uri())
    assert asked == [file.as_uri()] and not errors
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("(of => of.scrollWidth <= of.clientWidth)(document.querySelector('.table'))")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == ("rgb(255, 255, 255)" if theme == "light" else "rgb(17, 21, 26)")
    page.emulate_media(media="print")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    page.set_viewport_size({"width": PAPER, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER
    context.close()


@pytest.mark.browser
def test_what_is_typed_last_is_in_the_file(open_page, tmp_path):
    page = open_page("/Lessons?shown=one&lesson=heads", width=1280)
    page.get_by_text("exactly as many parameters").click()
    page.get_by_role("radio", name="fairly").click()
    page.get_by_role("button", name="Store my prediction").click()
    page.get_by_text("What it means").wait_for()
    page.get_by_role("radio", name="My report").check()
    page.get_by_label("What do you conclude?").fill("The last words.")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the report").click()
    assert download.value.suggested_filename == FILE
    found = read(download.value.path().read_bytes())
    assert found.conclusion == "The last words." and found.entries["heads"].answer == 2
