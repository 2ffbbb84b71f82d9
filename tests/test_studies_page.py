"""The page "Studies": every view of every kind of study, without a traceback.

Invalid links and databases that cannot be opened are included.
"""

import json
import math
import re
import time
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update
from streamlit.testing.v1 import AppTest

from core.settings.device import Machine
from core.study.conditions import CONDITIONS, conditions_of
from core.study.database import connection as databases
from core.study.database import schema
from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING, STATES, STOPPED
from core.study.database.store import Store, progress_of
from core.study.report import report_html, shipped_report
from core.study.shipped import name_in_links
from core.study.tables import summary_with_guards
from core.study.verdict import shipped_document, study_document
from tests import pages
from tests.pages import download, legend, link, move_control, setting, tables, texts, widget
from tests.studies import TEXT, fill, study
from tests.test_page import fine, told
from tests.verdict_documents import check_document
from ui.studies import chooser, server
from ui.studies import view as views
from ui.studies.chooser import _study_label
from ui.studies.context import NAMES
from ui.studies.new_study import TEMPLATE

PAGE = "pages/4_Studies.py"
opened = partial(pages.opened, PAGE)
TINY = (
    TEXT.replace('"copy", ', "")
    .replace("seeds = 3", "seeds = 2")
    .replace('"1 head" = {n_heads = 1}', "")
)
LONG = TINY.replace("steps = 40", "steps = 20_000").replace("made up", "long")
STRANGE = [
    "<b>&\"<img src=x> **bold** _it_ `x` $y$ :red[z] [a](b) ~c~ a'b\\\\n",
    "x" * 200,
    "漢字 🦊 \u05d0\u05d1 ß",
]


def forget():
    for item in (server._store, server.service, server.summary):
        item.clear()


@pytest.fixture(autouse=True)
def url(tmp_path, monkeypatch):
    """Yield the address of the page's store, which does not exist yet."""
    monkeypatch.setenv("ABLATION_READ_ONLY", "0")
    monkeypatch.setenv(databases.VARIABLE, f"sqlite:///{tmp_path}/studies.sqlite")
    forget()
    yield f"sqlite:///{tmp_path}/studies.sqlite"
    forget()


@pytest.fixture
def store(url):
    opened_store = Store(url)
    yield opened_store
    opened_store.close()


def score(run) -> float:
    return round(0.5 + 0.3 * math.sin(len(run.variant) * 7 + run.seed), 3)


def half(run):
    if run.seed == 0:
        return score(run)
    return QUEUED if run.seed == 2 or run.task == "reverse" else STOPPED


KINDS = {
    "complete": score,
    "diverged": lambda run: math.nan if run.variant != "1 head" else score(run),
    "half": half,
    "failed": lambda run: FAILED if run.variant == "baseline" else score(run),
    "all failed": lambda run: FAILED,
    "not begun": lambda run: QUEUED,
    "elsewhere": lambda run: RUNNING if run.seed else score(run),
}


def filled(store, *kinds):
    for kind in kinds:
        fill(store, study(kind), KINDS[kind])


def good(app) -> AppTest:
    """Assert that the page shows no error."""
    assert not fine(app).error, told(app)
    return app


def button(app, label):
    return next(button for button in app.button if button.label == label)


def labels(app) -> list[str]:
    return [button.label for button in app.button]


def press(app, label) -> AppTest:
    return fine(button(app, label).click().run())


def until(app, come, seconds=90) -> AppTest:
    end = time.monotonic() + seconds
    while not come(app):
        assert time.monotonic() < end, f"it did not come: {texts(app)}"
        time.sleep(0.2)
        app = fine(app.run())
    return app


# What there is to see


def test_empty_page_explains_start_and_creates_no_store(tmp_path):
    app = good(opened())
    assert "This one is built in" in texts(app)
    assert "New study" in labels(app) and not {"Delete study", "Stop", "Resume"} & set(labels(app))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("view", views)
@pytest.mark.parametrize("kind", KINDS)
def test_views_of_all_studies_open(store, kind, view):
    filled(store, "complete", kind)
    app = good(opened(study=kind, shown=view))
    assert not app.warning and setting(app, "study") == kind and setting(app, "shown") == view
    assert {"study", "shown"} >= set(link(app))
    for element in [*app.markdown, *app.caption]:
        assert not re.search(r"\b(nan|inf|NaT)\b|\bNone\b(?! of)", element.value), element.value
    for make in tables(app).values():
        assert len(make().columns)


@pytest.mark.parametrize("kind", KINDS)
def test_study_shows_progress_and_possible_actions(store, kind):
    filled(store, kind)
    app = good(opened())
    now = progress_of(store, 1)
    assert now.describe() in texts(app)
    assert ("Resume" in labels(app)) == (kind in ("half", "failed", "all failed", "not begun"))
    assert ("Stop" in labels(app)) == (kind == "elsewhere") and "Delete study" in labels(app)


def table(app):
    return next(table.value for table in app.dataframe)


def test_matrix_table_and_export_have_the_numbers(store):
    filled(store, "diverged")
    app = good(opened())
    table_ = tables(app)["Accuracy, difference and cost of each cell"]()
    for line in table_.itertuples():
        assert line.diverged == (0 if line.variant == "1 head" else 3)
        assert line.variant != "1 head" or line.accuracy == pytest.approx(
            sum(map(score, cell(line))) / 3
        )
    assert "3 of 3 seeds diverged" in texts(app)
    widget(app.multiselect, "only_tasks_list").set_value(["copy"]).run()
    widget(app.multiselect, "only_variants_list").set_value(["1 head"]).run()
    assert list(zip(table(good(app)).task, table(app).variant)) == [("copy", "1 head")]


STRANGELY = (  # a name that holds what names are held apart by, and what that is written as
    "100%~50%25 %7E"
)


@pytest.mark.parametrize("view", views)
def test_table_selection_is_in_link_and_returns(store, view):
    fill(store, study(old='"1 head"', new=quoted(STRANGELY)), score)
    filled(store, "complete")
    app = good(opened(study="made up", against="complete", shown="matrix"))
    widget(app.multiselect, "only_variants_list").set_value(["baseline", STRANGELY]).run()
    widget(good(app).multiselect, "only_tasks_list").set_value(["copy"]).run()
    address = link(good(app))
    cells_shown = [(line.task, line.variant) for line in table(app).itertuples()]
    assert {task for task, _ in cells_shown} == {"copy"} and {
        variant for _, variant in cells_shown
    } <= {
        "baseline",
        STRANGELY,
    }
    move_control(app, "shown", view)
    back = good(move_control(good(app), "shown", "matrix"))
    for item in (back, good(opened(**address))):
        assert [(line.task, line.variant) for line in table(item).itertuples()] == cells_shown
        assert list(widget(item.multiselect, "only_variants_list").value) == ["baseline", STRANGELY]
    widget(back.multiselect, "only_variants_list").set_value([]).run()
    assert "only_variants" not in link(good(back)) and len(table(back)) > len(cells_shown)


def cell(line):
    return [run for run in study().runs if (run.task, run.variant) == (line.task, line.variant)]


def test_runs_are_counted_by_state_and_can_be_chosen(store):
    parsed = study("mixed")
    inputs = {
        run.hash: [0.5, *STATES[2:], QUEUED, RUNNING][n % 7] for n, run in enumerate(parsed.runs)
    }
    inputs = {key: {DONE: 0.25, DIVERGED: math.nan}.get(end, end) for key, end in inputs.items()}
    fill(store, parsed, lambda run: inputs[run.hash])
    app = good(opened(shown="runs"))
    counts = progress_of(store, 1).counts
    pills = next(
        group
        for group in app.get("button_group")
        if group.proto.id and "only_states_list" in group.key
    )
    assert len(table(app)) == 18 and list(pills.options) == [
        f"{counts[state]:,} {state}" for state in STATES
    ]
    for state in STATES:
        next(
            group for group in app.get("button_group") if "only_states_list" in str(group.key)
        ).set_value([state]).run()
        assert set(table(good(app)).state) == {state} and len(table(app)) == counts[state]
    assert f"{counts[STOPPED]} of 18 runs" in texts(app)


def test_selected_run_has_link(store):
    filled(store, "complete")
    app = good(opened(shown="runs"))
    app.session_state["run_picked_1_0"] = {"selection": {"rows": [16], "columns": [], "cells": []}}
    app.run()
    link = [
        page_link.proto
        for page_link in good(app).get("page_link")
        if "seed 2" in page_link.proto.label
    ]
    assert [item.label.replace("\\", "") for item in link] == [
        "Open reverse, − norm, seed 2 in Training"
    ]
    assert "variants=norm-none" in link[0].query_string and "seed=2" in link[0].query_string


def test_curves_show_the_variants_that_lose_most(store):
    fill(
        store,
        study(),
        lambda run: {"baseline": 0.9, "− norm": 0.5, "1 head": 0.2}[run.variant] + run.seed / 100,
    )
    app = good(opened(shown="curves", of_task="reverse"))
    assert list(widget(app.multiselect, "curves_of_list").value) == ["1 head", "− norm"]
    assert re.findall(r"●</span> ([^<]*)", legend(app)) == ["baseline", "1 head", "− norm"]
    assert "seeds 0 to 2" in legend(app)
    widget(app.multiselect, "curves_of_list").set_value([]).run()
    assert re.findall(r"●</span> ([^<]*)", legend(good(app))) == ["baseline"]


# Mixed conditions


@pytest.fixture
def odd(store):
    """Return the ids of the two runs of a study that were trained with an old version of torch."""
    filled(store, "complete")
    here = conditions_of(server.workers(), Machine("cpu"))
    with store.writing() as connection:
        for name in CONDITIONS:
            connection.execute(update(schema.runs).values({name: here[name]}))
        old = "task = 'copy' AND variant = '1 head' AND seed > 0"
        connection.exec_driver_sql(f"UPDATE runs SET torch = '1.0' WHERE {old}")
    return [run.id for run in store.runs(1) if run.torch == "1.0"]


def test_mixed_comparisons_are_named_and_odd_runs_queued(store, odd, monkeypatch):
    assert len(odd) == 2
    started = []
    monkeypatch.setattr(server.service(), "start", started.append)
    app = good(opened())
    assert "1 of 4 comparisons mixes conditions: torch 1.0 and " in texts(app)
    before = {run.id: run for run in store.runs(1)}
    app = good(press(app, "Train 2 odd runs again"))
    assert [run.id for run in store.runs(1, QUEUED)] == odd and started == [1]
    assert all(run == before[run.id] for run in store.runs(1) if run.id not in odd)
    assert "mixes conditions" not in texts(app) and "2 queued" in texts(app)
    assert not any("odd run" in label for label in labels(app))


def test_mixed_curves_and_studies_are_named(store, odd):
    fill(store, study("other"), score)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET torch = '1.0' WHERE study = 2")
    known = "mix conditions: torch 1.0 and "
    app = good(opened(study="complete", shown="curves", of_task="copy"))
    assert f"These curves {known}" in texts(app)
    assert known not in texts(good(opened(study="complete", shown="curves", of_task="reverse")))
    app = good(opened(study="complete", shown="compare", against="other"))
    assert f"6 of 6 comparisons {known}" in texts(app)
    app = good(opened(study="other"))  # all of one version, though of another than here
    assert known not in texts(app) and not any("again" in label for label in labels(app))


def test_reader_sees_mixed_conditions_without_button(store, odd, monkeypatch):
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    app = good(opened())
    assert "mixes conditions: torch 1.0 and " in texts(app)
    assert not any("odd run" in label for label in labels(app))


# Links


@pytest.mark.parametrize("against", ["nonsense", "half"])
def test_missing_task_or_study_falls_back(store, against):
    filled(store, "half", "complete")
    app = good(opened(study="half", shown="compare", against=against))
    assert not app.warning and widget(app.selectbox, "against").value == "complete"
    app = good(opened(shown="curves", of_task="nonsense"))
    assert widget(app.selectbox, "of_task").value == "copy" and "class='legend'" in texts(app)


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("view", views)
def test_any_name_is_shown_as_it_is(store, name, view):
    text = TEXT.replace('"reverse"]', f"{quoted(name)}]").replace('"− norm"', quoted(name))
    text = (
        text.replace('"What would it cost?"', quoted(name))
        + f"[task.{quoted(name)}]\ntask = 'facts'\n"
    )
    parsed = study(text=text.replace('"made up"', quoted(name)))
    fill(store, parsed, lambda run: math.nan if run.variant == name else score(run))
    filled(store, "complete")
    app = good(opened(study=name, shown=view, of_task=name, against="complete"))
    assert setting(app, "study") == name and not app.warning
    for markdown in [*app.markdown, *app.caption]:  # nothing of a name is markup
        bare = re.sub(r"\\.", "·", markdown.value)
        assert not re.search(r"<b>|<img|\*\*bold|:red\[|\$y\$|\]\(b\)", bare), markdown.value
    for html in app.get("html"):
        assert "<b>&" not in html.proto.body and "<img" not in html.proto.body


def quoted(name: str) -> str:
    import json

    return json.dumps(name, ensure_ascii=False)


# A new study


def dialog(text=None, **params) -> AppTest:
    app = press(opened(**params), "New study")
    if text is not None:
        area(app).set_value(text).run()
    return fine(app)


def area(app):
    return app.text_area[0]


def test_dialog_offers_shipped_studies_and_example():
    app = good(dialog())
    shipped = sorted(path.stem.replace("_", " ") for path in Path("studies").glob("*.toml"))
    assert (
        widget(app.selectbox, "new_from").options == ["Small example", *shipped]
        and "ablation matrix" in shipped
    )
    assert (
        "my study: 6 runs, 3 seeds per model" in texts(app)
        and "About" in texts(app)
        and "Start" in labels(app)
    )
    widget(app.selectbox, "new_from").set_value("ablation matrix").run()
    assert re.search(r"ablation matrix: \d+ runs, 5 seeds", texts(good(app)))


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "name is missing"),
        ("\n".join(f"k{n} = 1" for n in range(50)), "is not a key of a study"),
    ],
)
def test_faulty_study_is_explained_and_cannot_start(text, words, url, tmp_path):
    app = dialog(text)
    assert words in told(app) and "Start" not in labels(app) and 0 < len(app.error) <= 10
    assert list(tmp_path.iterdir()) == []
    area(app).set_value(TINY).run()
    assert "Start" in labels(good(app))


def test_study_without_comparison_or_fitting_question_is_named():
    changed = TEMPLATE.replace('"− norm" = { norm = "none" }', '"− FFN" = { ffn = false }')
    without_variants = TEMPLATE.partition("[variants]")[0]
    nothing = "Only the baseline would be trained."
    question = "The research question is still the template's."
    for text, messages in (
        (TEMPLATE, []),
        (changed, [question]),
        (without_variants, [nothing, question]),
    ):
        warned = [warning.value for warning in good(dialog(text)).warning]
        assert len(warned) == len(messages) and all(map(str.startswith, warned, messages)), warned


def test_study_starts_stops_resumes_and_is_deleted(url, monkeypatch):
    monkeypatch.setattr(chooser, "TWICE", 0.0)  # a test is quicker than a hand
    app = good(press(dialog(LONG), "Start"))
    store = Store(url, create=False)
    assert setting(app, "study") == "long" and "4 runs" in texts(app) and "Stop" in labels(app)
    app = until(app, lambda _: store.rows(1))
    assert "About" in texts(app) and "left on" in texts(app) and "Resume" not in labels(app)
    app = good(press(app, "Stop"))
    assert progress_of(store, 1).counts == {STOPPED: 4} and "4 stopped" in texts(app)
    assert "Resume" in labels(app) and "Stop" not in labels(app)
    app = good(press(app, "Resume"))
    assert "Stop" in labels(app) and progress_of(store, 1).counts.keys() <= {QUEUED, RUNNING}
    app = until(app, lambda _: store.rows(1))
    app = good(press(app, "Delete study"))
    assert store.studies() == [] and "This one is built in" in texts(app)
    until(app, lambda _: not server.service().has(1))
    assert server.service().trouble == ""
    app = good(press(dialog(TINY), "Start"))
    number = store.find("made up")
    app = until(app, lambda app: progress_of(store, number).complete)
    app = until(app, lambda app: "4 runs: 4 done" in texts(app))
    good(app)
    assert number == 2 and "Resume" not in labels(app) and len(store.results(number)) == 4


# Databases that cannot be used


def test_unavailable_database_is_named_in_words(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    text = tmp_path / "text.txt"
    missing = tmp_path / "nowhere" / "x.sqlite"
    folder.mkdir()
    text.write_text("This is a letter. " * 100)
    newer = Store(str(tmp_path / "newer.sqlite"))
    with newer.writing() as connection:
        connection.exec_driver_sql("UPDATE schema_version SET version = 9")
    newer.close()
    for given_, words in (
        (f"sqlite:///{folder}", "cannot be opened"),
        (f"sqlite:///{text}", "is not a SQLite database"),
        (f"sqlite:///{tmp_path}/newer.sqlite", "schema version 9"),
        ("nonsense://secret@x", "not the address of a supported database"),
    ):
        monkeypatch.setenv(databases.VARIABLE, given_)
        forget()
        app = fine(opened())
        assert words in told(app) and len(app.error) == 1 and "secret" not in told(app)
        assert "secret" not in texts(app)
        fine(app.run())
    monkeypatch.setenv(databases.VARIABLE, f"sqlite:///{missing}")
    forget()
    app = press(dialog(TINY), "Start")
    assert "does the folder exist" in told(app) and not missing.exists()


# Several visitors


def is_reported_deleted(app, name: str) -> bool:
    """Return whether the study is reported as deleted, with no button of another one."""
    buttons = {"Stop", "Resume", "Delete study"} & set(labels(app))
    return f"The study “{name}” was deleted, here or in another tab." in told(app) and not buttons


@pytest.mark.parametrize("view", views)
def test_study_deleted_elsewhere_is_reported(store, view):
    filled(store, "complete", "half")
    app = good(opened(study="half", shown=view))
    two = good(opened(study="half"))
    two = good(press(two, "Delete study"))
    assert setting(two, "study") == "complete" and not two.warning
    app = good(app.run())
    assert is_reported_deleted(app, "half")
    instead = next(box for box in app.selectbox if box.key == "study_instead")
    assert instead.options == ["complete", *map(_study_label, NAMES)]
    assert setting(
        good(instead.set_value("complete").run()), "study"
    ) == "complete" and "Delete study" in labels(app)
    two = good(press(two, "Delete study"))
    assert "This one is built in" in texts(two) and is_reported_deleted(good(app.run()), "complete")


def test_study_started_elsewhere_is_shown_and_can_stop(store):
    fill(store, study(text=LONG), lambda run: QUEUED)
    first = good(opened())
    two = good(opened())
    first = good(press(first, "Resume"))
    two = good(two.run())
    assert "Stop" in labels(two)
    two = good(press(two, "Stop"))
    assert "4 stopped" in texts(two) and "4 stopped" in texts(good(first.run()))
    until(two, lambda _: not server.service().has(1))


def test_damaged_store_is_one_error_without_path(store, tmp_path):
    fill(store, study(), lambda run: FAILED if run.variant == "1 head" else 0.5)
    with store.writing() as connection:
        connection.exec_driver_sql(
            f"UPDATE runs SET message = 'no room in ''{tmp_path}/a.bin''' WHERE state = 'failed'"
        )
    app = fine(opened(shown="runs"))
    table_shown = next(table.value for table in app.dataframe if "message" in table.value)
    assert (
        "no room in '…/a.bin'" in set(table_shown.message)
        and str(tmp_path) not in table_shown.to_csv()
    )
    with store.writing() as connection:
        connection.exec_driver_sql("DROP TABLE rows")
        connection.exec_driver_sql("DROP TABLE runs")
    app = fine(opened())
    assert "no such table" in told(app) and len(app.error) == 1
    assert str(tmp_path) not in texts(app) + told(app)


def test_export_offers_verdicts(store):
    number = fill(store, study("complete"), score)
    app = good(opened(study="complete"))
    app.session_state["take_away"] = True
    document = json.loads(download(good(app.run()), "Verdicts (JSON)"))
    check_document(document, summary_with_guards(store, number))
    assert document == study_document(store, number)
    app = good(opened(study=name_in_links("positions")))
    app.session_state["take_away"] = True
    built_in = json.loads(download(good(app.run()), "Verdicts (JSON)"))
    assert built_in == shipped_document("positions")


def test_export_offers_report(store):
    number = fill(store, study("complete"), score)
    app = good(opened(study="complete"))
    app.session_state["take_away"] = True
    assert download(good(app.run()), "Report (HTML)").decode() == report_html(store, number)
    app = good(opened(study=name_in_links("positions")))
    app.session_state["take_away"] = True
    assert download(good(app.run()), "Report (HTML)").decode() == shipped_report("positions")
