"""The page Training shows known results at once: shipped ones and others' on this server."""

import math
import re

import pytest
from streamlit.testing.v1 import AppTest

from core.settings.cache import LRUCache
from core.study.curves import MADE, write_curves
from core.study.database.store import Store
from core.study.plan import Run
from core.study.tables import summary_table
from core.study.training_link import format_address, read_query
from core.train import train
from tests.pages import components, move, offered, trigger
from tests.pages import tables as tables_of
from tests.studies import fill, study
from tests.test_page import fine
from tests.test_training_page import (
    TINY,
    button,
    finish,
    opened,
    running,
    start_line,
    texts,
    trained,
)
from ui.kit import jobs
from ui.kit.jobs import RUNNING
from ui.kit.store import SESSION
from ui.shared import trainings as known
from ui.studies import server
from ui.training import finished
from ui.training.controls import ANEW

SHIPS = "Precomputed"
HERE = "Cached on this server"
CPU = {"device": "cpu"}
MADE_BY = {name: (f"{name}_of_1980",) for name in MADE} | {"code": ("0123456789abcdef",)}


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch, tmp_path):
    """Forget all trainings and hide the shipped results."""
    forget_trainings()
    monkeypatch.setattr(jobs.workers(), "rows", LRUCache(16))
    monkeypatch.setattr(finished, "FILES", [tmp_path / "curves.npz"])


def forget_trainings():
    jobs.workers().kept.clear()
    jobs.workers().trainings.clear()


def plan_of(app):
    """Return the plan that the page would train."""
    app = fine(button(app, "start").click().run())
    running(app).job.stop()
    return running(app).plan


def ship(**params):
    """Ship the curves that a link requests. Return its plan."""
    plan = plan_of(opened(**params))
    rows = {}
    for arm in plan.arms:
        for seed in plan.seeds:
            run = Run("", "", arm.config.replace(seed=seed), plan.training, plan.machine)
            rows[run.hash] = list(train(run.config, run.training, seed, run.machine))
    write_curves(finished.FILES[0], rows, MADE_BY)
    forget_trainings()
    jobs.workers().rows.clear()
    return plan


def list_rows(app) -> list:
    """Return every row of the page's exportable table."""
    return [tuple(row)[1:] for row in tables_of(app)["all logged steps"]().itertuples()]


def rows_of(plan) -> list:
    """Return the plan's rows, trained by the plain loop."""
    return [
        (arm.name, seed, *row)
        for arm in plan.arms
        for seed in plan.seeds
        for row in train(arm.config, plan.training, seed, plan.machine)
    ]


def untrained(app) -> bool:
    return RUNNING not in app.session_state[SESSION].kept


def test_shipped_results_show_at_once_with_provenance():
    plan = ship(**TINY, **CPU)
    app = fine(opened(**TINY, **CPU))
    assert untrained(app) and sorted(list_rows(app)) == sorted(rows_of(plan))
    text = texts(app).replace("\\", "")
    assert (
        f"{SHIPS}: 4 runs, seeds 0 to 1. Trained on device_of_1980 with PyTorch torch_of_1980"
        in text
    )
    assert "NumPy numpy_of_1980, Python python_of_1980, commit 0123456." in text
    assert (
        "Precomputed results, seeds 0 to 1. All variants share" in text
        and "Press Start" not in text
    )
    assert button(app, "start").label == ANEW and not button(app, "start").disabled
    assert re.search(r"^4 runs × 6 steps, about .* on \d worker", start_line(app))


def test_empty_views_have_no_tab_unless_linked():
    """Shipped curves have no weights, and one variant has no interactions."""
    ship(**TINY, **CPU)
    assert offered(fine(opened(**TINY, **CPU)), "trained") == ["learning", "play", "steps"]
    app = fine(opened(trained="answers", **TINY, **CPU))
    assert "answers" in offered(app, "trained") and "Retrain" in app.info[0].value
    app = finish(fine(button(app, "start").click().run()))
    assert {"answers", "attention"} <= set(offered(app, "trained"))


def test_click_retrains_shipped_result():
    plan = ship(**TINY, **CPU)
    app = finish(fine(button(fine(opened(**TINY, **CPU)), "start").click().run()))
    assert running(app).plan == plan and running(app).job.known == 0 and SHIPS not in texts(app)
    assert "Done: 4 runs" in start_line(app) and "Trained here, seeds 0 to 1" in texts(app)


@pytest.mark.parametrize(
    "changed", [{"seed": "1"}, {"steps": "7"}, {"device": "auto"}, {"variants": "n_heads-1"}]
)
def test_changed_setting_is_not_shipped_result(changed):
    ship(**TINY, **CPU)
    app = fine(opened(**(TINY | CPU | changed)))
    assert SHIPS not in texts(app) and "Press Start" in texts(app)
    assert start_line(app).startswith("4 runs ×")


@pytest.mark.parametrize(
    "data", [None, b"", b"PK\x03\x04 and no more"], ids=["missing", "empty", "cut"]
)
def test_damaged_curves_are_reported_and_alone_lost(data):
    if data is not None:
        finished.FILES[0].write_bytes(data)
    app = fine(opened(**TINY, **CPU))
    assert finished.DAMAGED in texts(app) and "Press Start" in texts(app)
    app = finish(fine(button(app, "start").click().run()))
    assert finished.DAMAGED not in texts(app)


def test_training_of_another_session_shows_at_once():
    plan = running(trained(**TINY)).plan
    app = fine(opened(**TINY))
    assert untrained(app) and sorted(list_rows(app)) == sorted(rows_of(plan))
    text = texts(app)
    assert f"{HERE}: 4 runs, seeds 0 to 1." in text
    assert "Previously trained here, seeds 0 to 1" in text and "Already trained" in start_line(app)
    app = fine(opened(trained="answers", **TINY))
    assert "seed 0 at the latest checkpoint" in texts(app)


def test_model_trained_by_another_session_opens():
    trained(**TINY)
    app = fine(opened(**TINY))
    assert untrained(app)
    (menu,) = [element for element in app.get("menu_button") if "take_apart" in element.proto.id]
    assert "baseline, seed 0" in menu.proto.options


def test_partial_results_are_reported_but_not_shown():
    trained(**TINY)
    app = fine(opened(**(TINY | {"variants": "n_heads-1"})))
    assert "Press Start" in texts(app) and "(2 cached)" in start_line(app)


def test_shipped_and_own_results_switch_with_settings():
    ship(**TINY, **CPU)
    app = trained(**(TINY | {"seed": "5"}), **CPU)
    move(app, seed=0).run()
    assert SHIPS in texts(fine(app)) and button(app, "start").label == ANEW
    move(app, seed=5).run()
    assert SHIPS not in texts(fine(app)) and "Done: 4 runs" in start_line(app)
    move(app, seed=9).run()
    assert "The results below are for earlier settings. 4 runs" in start_line(fine(app))


def test_shipped_results_show_during_other_training():
    ship(**(TINY | {"steps": "50"}), **CPU)
    app = fine(opened(**(TINY | {"steps": "3000"}), **CPU))
    app = fine(button(app, "start").click().run())
    job = running(app).job
    move(app, steps=50).run()
    assert SHIPS in texts(fine(app)) and running(app).job is job and not job.stopped
    assert "Settings have changed since" in start_line(app)
    assert button(app, "stop") and button(app, "anew")
    job.stop()


@pytest.fixture
def store(monkeypatch, tmp_path):
    """Return a store with a study's results that nobody has opened."""
    monkeypatch.setattr(known, "_kept", LRUCache(8))
    filled_store = Store(f"sqlite:///{tmp_path}/store.sqlite")
    fill(
        filled_store,
        study(),
        lambda run: math.nan if (run.variant, run.seed) == ("1 head", 0) else 0.25,
    )
    yield filled_store
    filled_store.close()


def link_of(store, task="copy", variant="1 head", **extra) -> dict:
    table = summary_table(store, store.find("made up"))
    return read_query(table[(table.task == task) & (table.variant == variant)].link.item()) | extra


def test_study_results_show_at_once(store):
    link = link_of(store)
    assert "Press Start" in texts(opened(**link))
    known.cache_rows(store, store.find("made up"), "made *up*", "copy", "1 head")
    app = fine(opened(**link))
    text = texts(app).replace("\\", "")
    assert (
        untrained(app)
        and "From the study “made *up*”: 6 runs, seeds 0 to 2. Trained on CPU (made up) with"
        in text
    )
    assert "Results of a study, seeds 0 to 2" in text and "diverged at step 21, seed 0" in text
    assert button(app, "start").label == ANEW
    number = store.find("made up")
    stored = {}
    for run, *row in store.rows(number):
        stored.setdefault(run, []).append(tuple(row))
    runs = [
        run
        for run in store.runs(number)
        if run.task == "copy" and run.variant in ("baseline", "1 head")
    ]
    expected = [(run.variant, run.seed, *row) for run in runs for row in stored[run.id]]
    assert sorted(map(repr, list_rows(app))) == sorted(map(repr, expected))
    assert "Press Start" in texts(opened(**link_of(store, variant="− norm")))


def test_study_results_of_two_devices_are_named(store):
    link = link_of(store)
    known.cache_rows(store, store.find("made up"), "made up", "copy", "1 head")
    assert "mix conditions" not in texts(opened(**link))
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET device = 'GPU' WHERE variant = '1 head'")
    known.cache_rows(store, store.find("made up"), "made up", "copy", "1 head")
    text = texts(fine(opened(**link))).replace("\\", "")
    assert "These runs mix conditions: device CPU (made up) and GPU." in text


def test_shipped_results_of_one_file_with_two_devices_are_not_called_mixed():
    plan = ship(**TINY, **CPU)
    file = finished._read_file(finished.FILES[0])
    run_rows = {run.hash: file.rows(run) for _, run in finished._runs(plan)}
    devices = {"device": ("A", "B")}
    write_curves(finished.FILES[0], run_rows, MADE_BY | devices)
    text = texts(fine(opened(**TINY, **CPU)))
    assert "Trained on A and B with" in text and "mix conditions" not in text
    half = len(run_rows) // 2
    for path, names, device in (
        (finished.FILES[0], list(run_rows)[:half], "A"),
        (finished.FILES[0].with_name("second.npz"), list(run_rows)[half:], "B"),
    ):
        write_curves(
            path, {name: run_rows[name] for name in names}, MADE_BY | {"device": (device,)}
        )
    finished.FILES.append(finished.FILES[0].with_name("second.npz"))
    text = texts(fine(opened(**TINY, **CPU)))
    assert "These runs mix conditions: device A and B." in text


def test_click_in_studies_opens_its_cell(store, monkeypatch):
    monkeypatch.setattr(server, "store", lambda: store)
    app = AppTest.from_file("../app.py", default_timeout=60).switch_page("pages/4_Studies.py")
    app.query_params["study"] = "made up"
    app = fine(app.run())
    (picture,) = components(app, "ablation_matrix")
    href = format_address(link_of(store))
    app = fine(trigger(app, picture, "open", href))
    assert (
        known.find_cached_rows(next(run for run in study().runs if run.variant == "1 head")).study
        == "made up"
    )
    assert "From the study" in texts(fine(opened(**read_query(href))))
