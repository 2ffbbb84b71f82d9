"""The lab report without a page: what is written is read again, typed text stays text, and every number in it is right."""

import csv
import io
import json
import os
import platform
import re
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.settings.process import versions
from core.teaching.lessons.entry import Entry
from core.teaching.lessons.language import language, phrases
from core.teaching.lessons.lessons import read_lesson
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.prediction import SURE, VERDICTS, verdict
from core.teaching.lessons.report import Report, ReportError, part, read, write
from core.teaching.lessons.report.report import BEGIN, CONCLUSION, END, LARGEST, LONGEST, NAME, clean_lines
from core.teaching.lessons.report.rows import rows_of
from core.teaching.lessons.told import measured_in_words
from tests.test_lessons import WITH_PREDICTION, answers, of_each

ROOT = Path(__file__).parent.parent
MADE = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
QUICK = ("heads", "cost")  # exact, and computed at once
LINKS = {"Depth": "passes=30&norm=none", "One_block": "weights=random&d_head=32"}
HARM = [
    "</script><script>alert(1)</script>", "<!-- <script>", "]]>", "\"'><img src=x onerror=alert(1)>", "&lt;b&gt; &amp;", "{name} $x %s {0}",
    "\u202eright to left\u202c \u200f", "é 漢 🙂", "\ud800\x00\x1b", f"{BEGIN}{{}}{END}", "javascript:alert(1)", "a\u2028b", "https://example.org/url(x)",
]  # fmt: skip
texts = some.one_of(some.sampled_from(HARM), some.text(max_size=400), some.text("<>!-/&'\"\\ script\n", max_size=80))


class Seen(HTMLParser):
    """Tags with their attributes, text, and what is in the block of data."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.texts, self.inside = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.inside = tag

    def handle_comment(self, data):
        self.tags.append(("comment", ()))

    def handle_data(self, data):
        self.texts.append(data)


def entry(name: str, at: int = 0, because: str = "", carried: int | None = 0) -> Entry:
    return Entry(answers(read_lesson(name))[at], at % len(SURE), because, carried)


def everything() -> Report:
    entries = {name: entry(name, at % 3, "why") for at, name in enumerate(WITH_PREDICTION)}
    return Report(entries, "Ada", "It\n\nfollows.", LINKS)


def plain(text: str) -> str:
    return " ".join("".join(Seen(text).texts).split())


def numbers_in(text: str) -> list[list[str]]:
    return [re.findall(r'<td class="figure"[^>]*>([^<]*)', row) for row in re.findall(r"<tr><td>.*?</tr>", text)]


@settings(max_examples=60)
@given(texts, texts, texts, some.dictionaries(some.text(max_size=20), some.text(max_size=60), max_size=3))
def test_what_is_written_is_read_again_and_typed_text_stays_text(name, conclusion, because, links):
    made = Report({each: entry(each, 1, because) for each in QUICK}, name, conclusion, {**LINKS, **links})
    text = write(made, "en", MADE)
    assert read(text.encode()) == made and set(made.entries) == set(QUICK) and set(LINKS) <= set(made.links)
    filled_in = Report({each: entry(each, 1, "x" * bool(made.entries[each].because)) for each in QUICK}, "x" * bool(made.name), "x" * bool(made.conclusion), {page: "x=1" for page in made.links})  # fmt: skip
    assert Seen(text).tags == Seen(write(filled_in, "en", MADE)).tags
    shown = plain(text)
    for typed in (made.name, made.conclusion, made.entries["heads"].because):
        assert " ".join(typed.split()) in shown


@given(texts)
def test_typed_text_is_short_and_cleaned_once_and_for_all(text):
    made = Report({}, text * 9, text * 9)
    assert len(made.name) <= NAME and len(made.conclusion) <= CONCLUSION
    assert clean_lines(made.conclusion) == made.conclusion and all(
        c.isprintable() or c == "\n" for c in made.conclusion
    )
    assert "\n" not in made.name and made.name.isprintable()


@pytest.mark.parametrize("spoken", language)
def test_it_asks_nothing_of_anybody_and_names_no_place(spoken):
    text = write(everything(), spoken, MADE)
    for tag, names in Seen(text).tags:
        assert tag not in ("link", "img", "iframe", "object", "a", "form", "base") and not {
            "src",
            "href",
            "style",
        } & set(names)
        assert not any(name.startswith("on") or name == "id" and tag != "script" for name in names)
    assert [names for tag, names in Seen(text).tags if tag == "script"] == [("type", "id")]
    without = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|url\(|@import|//\w+\.", without)
    for place in (str(ROOT), str(Path.home()), sys.prefix, platform.node(), os.environ.get("USER", "")):
        assert len(place) < 3 or place not in text
    assert "default-src 'none'" in text and text.index("Content-Security-Policy") < text.index("<style>")
    assert text.count("<style>") == 1


def test_predictions_and_explanations_come_first():
    text, words = plain(write(everything(), "en", MADE)), phrases("en")
    places = [f"{read_lesson(name).number} · {read_lesson(name).title}" for name in WITH_PREDICTION]
    places += [words[f"report_{each}"] for each in ("conclusion", "settings", "measured", "made_with", "script")]
    at = [text.index(place) for place in places]
    assert at == sorted(at)
    for page, link in LINKS.items():
        assert f"{page}?{link}" in text
    for what in versions().values():
        assert what in text
    assert "2026-03-01 12:30 UTC" in text and "Ada" in text


@of_each
def test_every_verdict_and_every_number_stands_in_it(name):
    of = read_lesson(name)
    out = outcome(of)
    for answer in answers(of)[:6]:
        text = write(Report({name: Entry(answer, 2)}), "en", MADE)
        found = verdict(of.prediction, answer, out)
        assert re.findall(r'<p class="verdict (\w+)">', text) == [found]
        assert measured_in_words(of, out, phrases("en")) in plain(text) and text.count("<svg") == 1
        drawn = re.search(r"<svg.*?</svg>", text)[0]
        assert ('class="mark"' in drawn) == (of.prediction.kind != "rank" and of.prediction.number.of[0] == of.shown[0])
        expected = [[f"{each:.6g}" for each in row.measured.found[:3]] for row in rows_of(of, out)]
        assert numbers_in(text) == expected and len(expected) >= len(of.values)
        held = json.loads(text.partition(BEGIN)[2].partition(END)[0])
        assert held["verdicts"] == {name: found}
        assert [each["mean"] for each in held["measured"]] == [row.measured.found.mean for row in rows_of(of, out)]


@of_each
def test_the_last_answer_is_right_or_not(name):
    of = read_lesson(name).transfer
    for at in range(len(of.options)):
        text = plain(write(Report({name: entry(name, 0, "", at)}), "en", MADE))
        assert ("Right. " in text) == (at == of.right) and of.because in text
    assert "Not answered." in plain(write(Report({name: entry(name, 0, "", None)}), "en", MADE))


@pytest.mark.slow
def test_its_script_prints_its_numbers(tmp_path):
    text = write(everything(), "en", MADE)
    (script,) = re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.DOTALL)
    file = tmp_path / "script.py"
    file.write_text("".join(Seen(script).texts), encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, str(file)], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(printed.removeprefix("# values\n"))))
    assert [[row[each] for each in ("mean", "low", "high")] for row in rows] == numbers_in(text)
    assert {row["lesson"] for row in rows} == set(WITH_PREDICTION)


def test_what_cannot_be_measured_costs_its_own_numbers_alone(monkeypatch):
    def missing(of):
        raise ReportError("/home/somebody/study.npz is missing")

    monkeypatch.setattr(part, "outcome", missing)
    text = write(Report({name: entry(name) for name in WITH_PREDICTION}), "en", MADE)
    assert phrases("en")["report_not_measured"] in text and "somebody" not in text and "<svg" not in text
    assert set(read(text.encode()).entries) == set(WITH_PREDICTION)


def changed(**parts) -> bytes:
    held = {"format": "ablation-lab-report", "version": 1, "entries": {}, "links": {}} | parts
    return f"<p>{BEGIN}{json.dumps(held)}{END}".encode()


WHOLE = changed(entries={"heads": {"answer": 1, "sure": 1}})


@pytest.mark.parametrize("file, said", [
    (b"", "holds no lab report"), (b"<html></html>", "holds no lab report"), (b"\xff\xfe\x00", "is no text"),
    (b"x" * (LARGEST + 1), "has 5,242,881 bytes; a lab report has at most 5,242,880 (5 MB)"), (WHOLE[:-20], "ends too early"), (WHOLE.replace(b'"sure"', b"sure"), "cannot be read"),
    (f"{BEGIN}{'[' * 100_000}{END}".encode(), "cannot be read"), (f"{BEGIN}{'9' * 10_000}{END}".encode(), "cannot be read"),
    (f"{BEGIN}[]{END}".encode(), "not those of a lab report"), (changed(format="other"), "not those of a lab report"),
    (changed(version=2), "of version 2; this app reads version 1"), (changed(version=True), "of version True"), (changed(version="<b>" * 90), "of version “<b>"),
    (f"{BEGIN}[{'{},' * LONGEST}{END}".encode(), "letters; a lab report has at most 1,000,000"),
])  # fmt: skip
def test_a_file_that_is_none_is_refused_in_words(file, said):
    tracemalloc.start()
    with pytest.raises(ReportError, match=re.escape(said)):
        read(file)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 3 * LARGEST + (1 << 20)


def test_the_largest_data_that_are_looked_at_take_little_memory():
    file = f"{BEGIN}[{'{},' * (LONGEST // 3 - 2)}{{}}]{END}".encode()
    tracemalloc.start()
    with pytest.raises(ReportError):
        read(file)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 64 << 20


@pytest.mark.parametrize("entries, left_out", [
    ({"heads": {"answer": 1, "sure": 1}, "moon": {"answer": 1, "sure": 1}}, 1), ({"heads": {"answer": 1, "sure": 1}, "cost": {"answer": 99, "sure": 1}}, 1),
    ({"heads": {"answer": 1, "sure": 1}, "scaling": {"answer": [10**400, 0.05], "sure": 1}}, 1), ({"heads": {"answer": 1, "sure": 1}, "free_play": None}, 1),
])  # fmt: skip
def test_predictions_that_cannot_be_are_left_out_and_counted(entries, left_out):
    found = read(changed(entries=entries))
    assert set(found.entries) == {"heads"} and found.left_out == left_out


@pytest.mark.parametrize("parts", [{"entries": 3}, {"entries": []}, {"name": 3, "conclusion": []}, {"links": []}, {"links": {"Depth": 3, "../x": "a=1", "One block": "a=1", "Depth?": "a", "Claims": "a b", "Studies": "é=1", "Training": "a&" * 300}}])  # fmt: skip
def test_what_is_of_another_kind_is_left_out(parts):
    assert read(changed(**parts)) == Report({})


@given(some.binary(max_size=200))
def test_any_file_is_read_or_refused(data):
    for file in (data, BEGIN.encode() + data + END.encode()):
        try:
            read(file)
        except ReportError as error:
            assert str(error).isprintable()


def test_all_verdicts_have_a_place_in_its_style():
    text = write(everything(), "en", MADE)
    assert all(f".{each}{{" in text.replace(" ", "") for each in VERDICTS)
