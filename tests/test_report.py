"""The lab report: numbers, verdicts, links, escaped text, its view, the file in a browser."""

import csv
import io
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.settings.process import versions
from core.settings.setting import ConfigError
from core.teaching import report
from core.teaching.lessons.language import language, phrases
from core.teaching.lessons.prediction import SURE, Entry, measure_outcome, verdict
from core.teaching.lessons.reader import read_lesson
from core.teaching.lessons.wording import describe_outcome
from core.teaching.report import Report, write_report
from tests.pages import download, move, widget
from tests.test_lessons import WITH_PREDICTION, answers, of_each
from tests.test_lessons_page import answer, store
from tests.test_page import fine, opened, said_on
from ui.kit.pages import DEPTH, LESSONS
from ui.lessons.views import FILE

ROOT = Path(__file__).parent.parent
MADE = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
QUICK = ("heads", "cost")  # exact, and computed at once
SETTINGS = {
    "Depth": "http://lab/Depth?passes=30&norm=none",
    "One block": "http://lab/One_block?d_head=32",
}
HARM = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "\"'><img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp;",
    "{name} $x %s {{ 0 }} {% x %}",
    "é 漢 🙂",
    "\ud800\x00\x1b",
    "javascript:alert(1)",
    "https://example.org/url(x)",
]
texts = some.one_of(
    some.sampled_from(HARM), some.text(max_size=400), some.text("<>!-/&'\"\\ script\n", max_size=80)
)


class ReportParser(HTMLParser):
    """Parser that collects tags with their attributes' names, text and links."""

    def __init__(self, text: str):
        super().__init__()
        self.tags = []
        self.texts = []
        self.links = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.texts.append(data)


def entry(name: str, index: int = 0, because: str = "", carried: int | None = 0) -> Entry:
    return Entry(answers(read_lesson(name))[index], index % len(SURE), because, carried)


def write(report: Report, spoken: str = "en") -> str:
    return write_report(
        report, spoken, MADE, lambda page, params: f"http://lab/{page}?{len(params)}"
    )


def everything() -> Report:
    entries = {name: entry(name, index % 3, "why") for index, name in enumerate(WITH_PREDICTION)}
    return Report(entries, "Ada", "It\n\nfollows.", SETTINGS)


def plain(text: str) -> str:
    return " ".join("".join(ReportParser(text).texts).split())


def numbers_in(text: str) -> list[list[str]]:
    return [
        re.findall(r'<td class="number"[^>]*>([^<]*)', row)
        for row in re.findall(r"<tr>\s*<td>.*?</tr>", text, re.S)
    ]


@settings(max_examples=60)
@given(texts, texts, texts)
def test_typed_text_stays_text(name, conclusion, because):
    because = because.replace("\n", " ").encode("utf-8", "ignore").decode()
    text = write(
        Report({item: entry(item, 1, because) for item in QUICK}, name, conclusion, SETTINGS)
    )
    harmless = Report({item: entry(item, 1, because and "x") for item in QUICK}, "x", "x", SETTINGS)
    tags = [
        tag for tag in ReportParser(text).tags if tag[0] not in ("bdi", "p", "h2", "section")
    ]  # empty text has none
    assert tags == [
        tag
        for tag in ReportParser(write(harmless)).tags
        if tag[0] not in ("bdi", "p", "h2", "section")
    ]
    assert " ".join(because.split()) in plain(text)
    text.encode("utf-8")


@pytest.mark.parametrize("spoken", language)
def test_report_has_parts_in_order_without_server(spoken):
    text = write(everything(), spoken)
    words = phrases(spoken)
    visible_text = plain(text)
    places = [
        f"{read_lesson(name, spoken).number} · {read_lesson(name, spoken).title}"
        for name in WITH_PREDICTION
    ]
    places += [
        words[f"report_{part}"]
        for part in ("conclusion", "settings", "measured", "made_with", "script")
    ]
    index = [visible_text.index(place) for place in places]
    assert (
        index == sorted(index) and "2026-03-01 12:30 UTC" in visible_text and "Ada" in visible_text
    )
    assert all(kind_name in visible_text for kind_name in versions().values())
    for tag, names in ReportParser(text).tags:
        assert tag not in ("link", "img", "iframe", "script", "form") and not {
            "src",
            "style",
        } & set(names) - {"style"}
        assert not any(name.startswith("on") for name in names)
    assert "default-src 'none'" in text


@of_each
def test_report_has_all_verdicts_and_numbers(name):
    lesson_read = read_lesson(name)
    out = measure_outcome(lesson_read)
    for chosen in answers(lesson_read)[:6]:
        text = write(Report({name: Entry(chosen, 2)}))
        assert re.findall(r'<p class="verdict (\w+)">', text) == [
            verdict(lesson_read.prediction, chosen, out)
        ]
        assert (
            describe_outcome(lesson_read, out, phrases("en")) in plain(text)
            and text.count("<svg") == 1
        )
        drawn = re.search(r"<svg.*?</svg>", text)[0]
        assert ('class="mark"' in drawn) == (
            lesson_read.prediction.kind != "rank"
            and lesson_read.prediction.number.of[0] == lesson_read.shown[0]
        )
        expected = [[f"{item:.6g}" for item in value.found[:3]] for value in out.values.values()]
        if lesson_read.prediction.number.kind != "value":
            expected.append([f"{item:.6g}" for item in out.number.found[:3]])
        assert numbers_in(text) == expected
        assert (
            f"http://lab/{lesson_read.experiment.page}?{len(lesson_read.experiment.params)}"
            in ReportParser(text).links
        )


@pytest.mark.slow
def test_its_script_prints_its_numbers(tmp_path):
    text = write(everything())
    (script,) = re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.DOTALL)
    file = tmp_path / "script.py"
    file.write_text("".join(ReportParser(script).texts), encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = list(csv.DictReader(io.StringIO(printed.removeprefix("# values\n"))))
    assert [[row[item] for item in ("mean", "low", "high")] for row in rows] == numbers_in(text)
    assert {row["lesson"] for row in rows} == set(WITH_PREDICTION)


def test_unmeasurable_value_loses_only_its_numbers(monkeypatch):
    def missing(value):
        raise ConfigError("study", "/home/somebody/study.npz is missing")

    monkeypatch.setattr(report, "measure_outcome", missing)
    text = write(everything())
    assert (
        phrases("en")["report_not_measured"] in text
        and "somebody" not in text
        and "<svg" not in text
    )


def test_report_download_has_typed_texts_and_settings():
    app = fine(opened(DEPTH.path, passes="30"))
    app = app.switch_page(LESSONS.path)
    app.query_params.clear()
    app = fine(move(app.run(), shown="one", lesson="heads").run())
    app = fine(move(store(answer(app, "heads", 2), "heads"), shown="report").run())
    text = " ".join(said_on(app))
    assert "1 of 13" in text and read_lesson("heads").title in text and "As predicted" in text
    app = fine(widget(app.text_input, "report_name").set_value("Ada <b>").run())
    app = fine(widget(app.text_area, "report_conclusion").set_value("It costs\nnothing.").run())
    parser = ReportParser(download(app, phrases("en")["report_download"]))
    assert {"Ada <b>", "It costs\nnothing."} <= set(parser.texts)
    links = {urlsplit(link).path: dict(parse_qsl(urlsplit(link).query)) for link in parser.links}
    assert (
        links["/Depth"] == {"passes": "30"}
        and links["/One_block"] == read_lesson("heads").experiment.params
    )


# In a browser

PAPER = 680  # pixels of an A4 page between its margins
OUTSIDE = """() => [...document.querySelectorAll("svg text")].filter(each => {
  const at = each.getBoundingClientRect(), box = each.ownerSVGElement.getBoundingClientRect()
  return at.width && (at.left < box.left - 1 || at.right > box.right + 1)
}).map(each => each.textContent)"""


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1280, "dark")])
def test_report_file_needs_no_network_and_prints(chromium, tmp_path, width, theme):
    file = tmp_path / FILE
    report = Report(everything().entries, HARM[0] + "x" * 60, HARM[2] * 20, SETTINGS)
    file.write_text(write(report), encoding="utf-8")
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    requests = []
    errors = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.goto(file.as_uri())
    assert requests == [file.as_uri()] and not errors
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OUTSIDE) == []
    ink = "getComputedStyle(document.body).color"
    assert (page.evaluate(ink) == "rgb(0, 0, 0)") == (theme == "light")
    page.emulate_media(media="print")
    assert page.evaluate(ink) == "rgb(0, 0, 0)"
    page.set_viewport_size({"width": PAPER, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER
    context.close()
