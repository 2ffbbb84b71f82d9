"""Report of a study as one HTML page: its numbers are those of the summary, and it stands alone."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from core.experiments.training.plan import BASELINE
from core.measure.verdicts import DIFFERENCE, EQUIVALENT, UNDECIDED
from core.study import __main__ as command
from core.study.database.schema import QUEUED
from core.study.database.store import Store
from core.study.file import parse
from core.study.picture import shown_name
from core.study.plan import NULL, NULL_ARMS, NULL_SEEDS, REWRITTEN, StudyError
from core.study.report import BADGES, find_reach, report_html, shipped_report
from core.study.shipped import table_of
from core.study.summary import lines, read_summary
from core.study.tables import list_seed_differences, summary_with_guards
from tests.studies import TEXT, fill

WITH_NULL = TEXT.replace("seeds = 3", "seeds = 5\nnull = true\nmargin = 3")
HOSTILE = 'made <b>up</b> & "so"'
VOID = {"meta", "br", "hr", "img", "link", "input"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """Parsed report: checks that tags are nested, and collects what the tests ask for."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.tables: list[list[list[str]]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    def words(self, tag: str = "main") -> str:
        """Return the text inside a tag, in one line."""
        inside = "".join(text for tags, text in self.texts if tag in tags and "svg" not in tags)
        return " ".join(inside.split())


@pytest.fixture
def store(tmp_path):
    with_results = Store(str(tmp_path / "studies.sqlite"))
    yield with_results
    with_results.close()


def noisy(run) -> float:
    """Return an accuracy below the threshold of a task, different for each run."""
    generator = np.random.default_rng([run.seed, len(run.task), len(run.variant)])
    effect = {"− norm": -0.2, "1 head": 0.0}.get(run.variant, 0.0)
    return round(0.5 + effect + generator.normal(0, 0.02), 6)


def read_number(text: str) -> float:
    return float(text.replace("−", "-"))


def pictures_of(html: str) -> list[ElementTree.Element]:
    """Return the pictures of tasks as XML."""
    found = re.findall(r"<svg [^>]*xmlns.*?</svg>", html, re.DOTALL)
    return [ElementTree.fromstring(svg) for svg in found]


def rows_of_picture(svg: ElementTree.Element) -> list[dict]:
    """Return what each row of a picture draws: x of its seeds, interval and mean, and its texts."""
    edges = [float(line.get("y1")) for line in svg if line.get("class") == "rule"]
    rows = [{"seeds": [], "titles": [], "interval": None, "mean": None, "texts": []} for _ in edges]

    def find_row(y: float) -> dict | None:
        above = [number for number, edge in enumerate(edges) if edge < y]
        return rows[above[-1]] if above else None

    for shape in svg:
        kind = (shape.get("class") or "").split(" ")
        if kind[0] == "seed":
            row = find_row(float(shape.get("cy")))
            row["seeds"].append(float(shape.get("cx")))
            row["titles"].append(shape[0].text)
        elif kind[0] == "mean":
            find_row(float(shape.get("cy")))["mean"] = float(shape.get("cx"))
        elif kind[0] == "interval":
            ends = float(shape.get("x1")), float(shape.get("x2"))
            find_row(float(shape.get("y1")))["interval"] = ends
        elif shape.tag == f"{SVG}text":
            row = find_row(float(shape.get("y")))
            if row:
                row["texts"].append(shape.text)
    return rows


def scale_of(svg: ElementTree.Element) -> tuple[float, float, list[str]]:
    """Return x of zero, pixels of one point, and the labels of a picture's scale."""
    zero = next(float(line.get("x1")) for line in svg if line.get("class") == "zero")
    labels = [shape for shape in svg if shape.get("class") == "small middle"]
    last = labels[-1]
    pixels = (float(last.get("x")) - zero) / read_number(last.text)
    return zero, pixels, [label.text for label in labels]


def check_report(html: str, table, gaps) -> Page:
    """Check that a report is one file that stands alone, and has the numbers of a summary."""
    page = Page(html)
    assert page.tags[0] == ("html", {"lang": "en"})
    assert not {"script", "img", "link", "iframe", "object"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not {"src", "style", "onload", "onclick"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in html and "@import" not in html
    compared = table[~table.variant.isin([BASELINE, *NULL_ARMS])]
    totals = compared.verdict.value_counts()
    differ = totals.get(DIFFERENCE, 0)
    assert f"{differ} {'differs' if differ == 1 else 'differ'}" in page.words("dl")
    assert f"{totals.get(EQUIVALENT, 0)} equivalent" in page.words("dl")
    assert f"{totals.get(UNDECIDED, 0)} undecided" in page.words("dl")
    pictures = pictures_of(html)
    tasks = [name for name in dict.fromkeys(table.task) if (compared.task == name).any()]
    assert len(pictures) == len(tasks)
    assert len({tuple(scale_of(svg)[2]) for svg in pictures}) == 1
    for name, svg, (head, *rows) in zip(tasks, pictures, page.tables[1:]):
        assert svg.get("role") == "img"
        zero, pixels, _ = scale_of(svg)
        of_task = table[table.task == name]
        order = [line for line in lines(of_task) if line.variant != BASELINE]
        order.sort(key=lambda line: line.variant in NULL_ARMS)
        assert len(rows) == len(order) + 1 and head[0] == "Variant"
        for line, row, drawn in zip(order, rows[1:], rows_of_picture(svg), strict=True):
            check_row(line, row, drawn, gaps.get((name, line.variant), {}), zero, pixels)
            assert f"{line.task}, {shown_name(line.variant)}:" in svg.get("aria-label")
    return page


def check_row(line, row: list[str], drawn: dict, gaps, zero: float, pixels: float) -> None:
    """Check a row of a table, and the same row of the picture, against a line of a summary."""
    name, accuracy, difference, p, p_exact, n, verdict, *_ = row
    assert name.startswith(shown_name(line.variant)) and int(n) == line.pairs
    word = " ".join(BADGES[line.verdict])
    assert verdict == word and word in drawn["texts"]
    assert difference in drawn["texts"]
    for text, values in (
        (accuracy, (line.accuracy, line.low, line.high)),
        (difference, (line.difference, line.difference_low, line.difference_high)),
    ):
        numbers = [read_number(part) for part in re.findall(r"[−\d.]+", text)]
        finite = [100 * value for value in values if not math.isnan(value)]
        assert numbers == pytest.approx(finite, abs=0.051)
    if p == "–":
        assert math.isnan(line.p)
    else:
        assert line.p < 0.001 if p == "< 0.001" else read_number(p) == pytest.approx(line.p, 0.06)
    if not math.isnan(line.p_exact):
        least = re.search(r"\((.*)\)", p_exact)[1]
        assert read_number(least.removeprefix("< ")) == pytest.approx(line.p_exact_least, 0.06)
    places = [(x - zero) / pixels for x in drawn["seeds"]]
    assert places == pytest.approx([100 * gap for gap in gaps.values()], abs=0.01)
    assert len(gaps) == line.pairs
    if math.isnan(line.difference):
        assert drawn["mean"] is None
    else:
        assert (drawn["mean"] - zero) / pixels == pytest.approx(100 * line.difference, abs=0.01)
    if math.isnan(line.difference_low):
        assert drawn["interval"] is None
    else:
        ends = [(x - zero) / pixels for x in drawn["interval"]]
        expected = [100 * line.difference_low, 100 * line.difference_high]
        assert ends == pytest.approx(expected, abs=0.01)


def check_stored(store, number: int) -> Page:
    """Check the report of a stored study against its summary."""
    table = summary_with_guards(store, number)
    return check_report(report_html(store, number), table, list_seed_differences(store, number))


def test_seeds_and_means_are_differences_of_raw_rows(store):
    study = parse(WITH_NULL)
    number = fill(store, study, noisy)
    page = check_stored(store, number)
    assert page.words("h1") == "made up" and "What would it cost?" in page.words("header")
    raw = {(run.task, run.variant, run.seed): noisy(run) for run in study.runs}
    gaps = list_seed_differences(store, number)
    variants = ("− norm", "1 head", *NULL_ARMS)
    assert set(gaps) == {(name, variant) for name in study_tasks(study) for variant in variants}
    for (name, variant), by_seed in gaps.items():
        shift = NULL_SEEDS if variant == NULL else 0
        expected = [
            raw[name, variant, shift + seed] - raw[name, BASELINE, seed] for seed in range(5)
        ]
        assert list(by_seed) == [0, 1, 2, 3, 4]
        assert list(by_seed.values()) == pytest.approx(expected, abs=1e-6)
    html = report_html(store, number)
    gap = gaps["copy", "− norm"]
    lowest = min(gap, key=gap.get)
    words = f"Seed {lowest}: {100 * gap[lowest]:.1f}".replace("-", "−")
    assert words in rows_of_picture(pictures_of(html)[0])[0]["titles"]
    # One variant of a task is certain: its own p is below 0.05 by SciPy, too.
    assert stats.ttest_1samp(list(gap.values()), 0).pvalue < 1e-3
    assert "≠ differs" in rows_of_picture(pictures_of(html)[0])[0]["texts"]


def study_tasks(study) -> list[str]:
    return list(dict.fromkeys(run.task for run in study.runs))


def test_null_arm_is_last_and_its_floor_is_drawn(store):
    number = fill(store, parse(WITH_NULL), noisy)
    html = report_html(store, number)
    floors = summary_with_guards(store, number).groupby("task", sort=False).noise_floor.first()
    for svg, floor in zip(pictures_of(html), floors, strict=True):
        last_rows = rows_of_picture(svg)[-2:]
        assert all(arm in " ".join(row["texts"]) for arm, row in zip((NULL, REWRITTEN), last_rows))
        _, pixels, _ = scale_of(svg)
        widths = {
            shape.get("class"): float(shape.get("width")) / pixels / 2
            for shape in svg
            if shape.get("class") in ("margin", "floor")
        }
        assert widths == pytest.approx({"margin": 3.0, "floor": 100 * floor}, abs=0.02)
    assert "4 comparisons:" in Page(html).words("dl")  # null arms are none
    plain = fill(store, parse(TEXT.replace('"made up"', '"plain"')), noisy)
    assert 'class="floor"' not in report_html(store, plain)


@pytest.mark.parametrize("arm", NULL_ARMS)
def test_null_arm_that_differs_is_warned_of(arm, store):
    study = parse(WITH_NULL)
    number = fill(store, study, lambda run: noisy(run) + 0.3 * (run.variant == arm))
    assert "Do not trust the differences" in check_stored(store, number).words()
    fill(store, study, noisy)
    assert "Do not trust" not in Page(report_html(store, number)).words()


@pytest.mark.parametrize(("effect", "end"), [(0.0, 10), (-0.234, 30), (0.47, 50)])
def test_one_scale_covers_the_farthest_number(store, effect, end):
    study = parse(TEXT)

    def outcome(run) -> float:
        shift = effect if (run.task, run.variant) == ("reverse", "1 head") else 0.0
        return 0.4 + shift + 0.001 * run.seed

    number = fill(store, study, outcome)
    table = summary_with_guards(store, number)
    assert find_reach(table, list_seed_differences(store, number)) == pytest.approx(end / 100)
    for svg in pictures_of(report_html(store, number)):
        labels = scale_of(svg)[2]
        assert [read_number(label) for label in labels] == [-end, -end / 2, 0, end / 2, end]


def test_names_are_escaped(store):
    text = WITH_NULL.replace('"made up"', repr(HOSTILE)).replace('"− norm"', '"<i>x</i> & \'y"')
    text = text.replace("What would it cost?", "</script><script>alert(1)</script>")
    page = check_stored(store, fill(store, parse(text), noisy))
    assert page.words("h1") == HOSTILE and page.words("title") == f"Study: {HOSTILE}"
    assert "<script>alert(1)</script>" in page.words("header")
    assert any(row[0] == "<i>x</i> & 'y" for row in page.tables[1])
    assert text.strip() in "".join(t for tags, t in page.texts if "pre" in tags)


def test_study_in_progress_says_so(store):
    study = parse(TEXT)

    def outcome(run):
        if run.task == "reverse" or (run.variant == "1 head" and run.seed > 1):
            return QUEUED
        return noisy(run)

    page = check_stored(store, fill(store, study, outcome))
    words = page.words("dl")
    assert "In progress" in words and "10 queued" in words
    assert "4 comparisons:" in words and "3 of the undecided have too few seeds" in words
    assert "no result of the baseline" in page.words("h2")
    one_head = next(row for row in page.tables[1] if row[0] == "1 head")
    assert one_head[5] == "2" and "1 not trained yet; too few seeds" in one_head[7]
    fill(store, study, noisy)
    assert "In progress" not in Page(report_html(store, store.find("made up"))).words()


def test_diverged_seeds_are_named_and_not_drawn(store):
    study = parse(TEXT.replace("seeds = 3", "seeds = 5"))
    number = fill(
        store,
        study,
        lambda run: math.nan if run.variant == "1 head" and run.seed in (0, 3) else noisy(run),
    )
    check_stored(store, number)
    row = rows_of_picture(pictures_of(report_html(store, number))[0])[1]
    assert len(row["seeds"]) == 3 and [title[:7] for title in row["titles"]] == [
        "Seed 1:",
        "Seed 2:",
        "Seed 4:",
    ]
    assert "2 of 5 diverged" in row["texts"]


def test_all_diverged_has_no_number(store):
    study = parse(TEXT)
    number = fill(store, study, lambda run: math.nan if run.variant == "1 head" else noisy(run))
    check_stored(store, number)
    row = rows_of_picture(pictures_of(report_html(store, number))[0])[1]
    assert row["seeds"] == [] and row["mean"] is None and "–" in row["texts"]


def test_runs_in_two_groups_have_counts_and_no_interval(store):
    study = parse(TEXT.replace("seeds = 3", "seeds = 6"))

    def outcome(run) -> float:
        if run.variant == "− norm":
            return 0.99 if run.seed < 2 else 0.1
        return 0.99 - 0.001 * run.seed

    number = fill(store, study, outcome)
    page = check_stored(store, number)
    row = rows_of_picture(pictures_of(report_html(store, number))[0])[0]
    assert row["interval"] is None and row["mean"] is not None
    assert any(text.startswith("2 of 6 learnt (") for text in row["texts"])
    assert "without an interval" in page.words("ul")


def test_looks_count_the_seeds_of_the_look_that_decided(store):
    study = parse(TEXT.replace("seeds = 3", 'seeds = "3, 6"'))
    every_run = replace(study, runs=(*study.runs, *study.later))
    number = fill(store, every_run, noisy)
    assert "in 2 looks (3, 6)" in check_stored(store, number).words("header")
    # All runs have six seeds, but a comparison that the first look decided counts three.
    table = summary_with_guards(store, number).set_index(["task", "variant"])
    gaps = list_seed_differences(store, number)
    assert table.verdict["copy", "− norm"] == DIFFERENCE
    assert list(gaps["copy", "− norm"]) == [0, 1, 2]
    assert list(gaps["copy", "1 head"]) == [0, 1, 2, 3, 4, 5]
    mean = np.mean(list(gaps["copy", "− norm"].values()))
    assert mean == pytest.approx(table.difference["copy", "− norm"])


def test_margins_of_tasks_are_named_first(store):
    text = TEXT.replace("seeds = 3", "seeds = 3\nmargin = 4") + "[task.reverse]\nmargin = 7\n"
    page = check_stored(store, fill(store, parse(text), noisy))
    assert "(margin of equivalence)±4 points (±7 points in reverse)" in page.words("dl")
    assert "Margin ±7 points." in page.words()


def test_mixed_conditions_are_named(store):
    number = fill(store, parse(TEXT), noisy)
    assert "Mixed conditions" not in Page(report_html(store, number)).words()
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET torch = 'old' WHERE variant = 'baseline'")
    page = check_stored(store, number)
    assert "4 of 4 comparisons mix conditions: torch" in page.words("dl")


def test_report_of_deleted_study_is_an_error(store):
    number = fill(store, parse(TEXT), noisy)
    store.delete(number)
    with pytest.raises(StudyError, match="deleted"):
        report_html(store, number)


def test_built_in_report_has_the_numbers_of_its_summary(tmp_path, capsys):
    path = tmp_path / "report.html"
    url = str(tmp_path / "none.sqlite")
    arguments = ["export", "positions", "--report", str(path), "--database", url]
    assert command.main(arguments) == command.COMPLETE
    assert capsys.readouterr().out.split() == [str(path)]
    html = path.read_text(encoding="utf-8")
    assert html == shipped_report("positions")
    table = read_summary(table_of("positions"))
    page = Page(html)
    rows = [row for rows in page.tables[1:] for row in rows[1:]]
    # Null arms come last in the summary, and with their task in the report.
    order = [line for task in table.task.unique() for line in lines(table[table.task == task])]
    assert len(rows) == len(order)
    for line, row in zip(order, rows):
        ending = " (null arm)" if line.variant in NULL_ARMS else ""
        assert row[0] == shown_name(line.variant) + ending
        assert read_number(row[1].split(" ")[0]) == pytest.approx(100 * line.accuracy, abs=0.051)
        if line.variant != BASELINE:
            first = read_number(row[2].split(" ")[0])
            assert first == pytest.approx(100 * line.difference, abs=0.051)
            assert row[6] == " ".join(BADGES[line.verdict])
    assert "python -m core.study run studies/positions.toml" in page.words("pre")
    assert "http:" not in html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "https:" not in html


def test_command_writes_report_of_stored_study(store, tmp_path, capsys):
    number = fill(store, parse(WITH_NULL), noisy)
    path = tmp_path / "new" / "report.html"
    picture = tmp_path / "matrix.svg"
    url = str(tmp_path / "studies.sqlite")
    arguments = ["export", "made up", "--report", str(path), "--picture", str(picture)]
    assert command.main([*arguments, "--database", url]) == command.COMPLETE
    assert path.read_text(encoding="utf-8") == report_html(store, number)
    assert picture.exists()
    capsys.readouterr()
    assert command.main(["export", "no such", "--report", str(path), "--database", url]) == 2
    assert "no such" in capsys.readouterr().err
