"""The page "Training": every task, view, range end and invalid link, without a traceback."""

import json
import re
import time
import types
import weakref
from urllib.parse import parse_qsl

import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.experiments.training import results
from core.experiments.training.plan import Trial, showcase
from core.experiments.training.sentences import format_learnt
from core.settings.device import Machine
from core.study.shipped import table_of
from core.study.summary import read_summary
from core.study.verdict import shipped_document
from core.tasks import task
from core.train import Training, train
from core.train.match import match
from core.train.settings import Learner, Removed
from tests import pages
from tests.pages import button, legend, link, move, plain, press, setting, texts
from tests.pages import tables as tables_of
from tests.test_beside import grids
from tests.test_page import fine, moved, told
from tests.verdict_documents import check_document, find_problems
from ui.kit import jobs
from ui.kit import takeaway as takeaway_module
from ui.kit.jobs import REFUSED, RUNNING
from ui.kit.store import SESSION
from ui.training import view as views
from ui.training.context import TrainingLook

KINDS = (Training, Learner, Machine, Removed, Trial, TrainingLook)
TRAINING = "pages/3_Training.py"
BLOCK = "pages/1_One_block.py"
TINY = {
    "d_model": "8",
    "n_heads": "2",
    "n_layers": "1",
    "steps": "6",
    "batch": "4",
    "seeds": "2",
    "warmup": "0",
}


def opened(page=TRAINING, **params):
    return pages.opened(page, **params)


def running(app):
    return app.session_state[SESSION].kept[RUNNING]


def finish(app) -> AppTest:
    """Wait until the started training is done."""
    end = time.monotonic() + 120
    while not running(app).job.done:
        assert time.monotonic() < end, "the training did not end"
        time.sleep(0.05)
        running(app).job.poll()
    assert running(app).job.error is None
    return fine(app.run())


def trained(**params) -> AppTest:
    """Return the page with a finished training."""
    app = fine(opened(**params))
    return finish(fine(button(app, "start").click().run()))


def start_line(app) -> str:
    """Return the text next to the button, which may be in a progress bar."""
    messages = [markdown.value for markdown in app.markdown]
    messages += [bar.proto.text for bar in app.get("progress")]
    return plain(
        next(
            item
            for item in messages
            if re.search(
                r"\b\d+ runs?\b|This training|Stopped|earlier settings|Already trained", item
            )
        )
    )


def test_page_opens_on_reverse_with_and_without_positions():
    app = fine(opened())
    assert link(app) == {}
    assert setting(app, "task") == "reverse" and setting(app, "variants") == "position-none"
    assert not button(app, "start").disabled
    assert re.search(r"6 runs × 250 steps, about [\d.]+ (s|min|h)?.* on \d worker", start_line(app))


@pytest.mark.parametrize("name", task)
def test_tasks_bring_own_model_budget_and_example(name):
    app = fine(opened(task=name))
    full = task[name].config()
    budget = Training(task=name)
    for field in type(full).settings():
        if field != "padding":
            assert setting(app, field) == getattr(full, field), field
    assert setting(app, "steps") == budget.steps and setting(app, "batch") == budget.batch
    reads, answer = task[name].example().split(": ", 1)[1].split(" → ")
    assert reads in texts(app) and answer in texts(app)
    assert f"Chance {100 * task[name].chance:.3g} %" in texts(app)
    assert link(app) == ({} if name == "reverse" else {"task": name})


def test_unpinning_baseline_restores_following_settings():
    app = opened()
    for changes in ({}, {"d_model": 64}, {"n_heads": 2, "d_model": 16}):
        app = press(fine(app), "pin")
        move(app, **changes).run()
        app = press(fine(app), "pin")
        assert link(fine(app)) == {}
    app = press(moved(app, d_ff=96), "pin")  # what was chosen stays so
    app = press(moved(app, d_ff=64, d_model=24), "pin")
    assert link(app) == {"d_ff": "96"}
    move(app, task="subtraction").run()
    assert link(fine(app)) == {"task": "subtraction", "d_ff": "96"}
    assert (setting(app, "d_model"), setting(app, "n_layers")) == (64, 1)


@pytest.mark.slow
@pytest.mark.parametrize("view", views)
@pytest.mark.parametrize("name", task)
def test_views_open_during_and_after_training(name, view):
    app = fine(opened(task=name, trained=view, **TINY))
    app = fine(button(app, "start").click().run())
    app = finish(app)
    assert not app.error and not app.warning
    count = 2 * len(running(app).plan.arms)  # a model of one layer has no layer to lose
    assert count in (2, 4) and f"Done: {count} runs" in start_line(app)
    for element in [*app.markdown, *app.caption]:
        assert not re.search(r"\b(nan|inf|None)\b", element.value), element.value


def test_training_rows_match_plain_loop():
    app = trained(**TINY)
    for (name, seed), rows in running(app).runs.items():
        arm = next(arm for arm in running(app).plan.arms if arm.name == name)
        assert rows == list(train(arm.config, running(app).plan.training, seed))


def test_played_rows_match_plain_loop():
    app = trained(trained="play", **TINY)
    head, cells = grids(app)["played_training"]
    frames = head["frames"]
    plan = running(app).plan
    rows = {
        (arm.name, seed): list(train(arm.config, plan.training, seed))
        for arm in plan.arms
        for seed in plan.seeds
    }
    assert frames["numbers"] == [row.step for row in next(iter(rows.values()))]
    cells = cells.reshape(len(frames["numbers"]), len(plan.arms), len(plan.seeds))
    for index, step in enumerate(frames["numbers"]):
        assert frames["moments"][index] == f"step {step} of 6"
        means = []
        for row, arm in enumerate(plan.arms):
            right = [rows[arm.name, seed][index].accuracy for seed in plan.seeds]
            assert cells[index, row] == pytest.approx(right, abs=1e-6)
            means.append(f"{arm.name}: {100 * sum(right) / len(right):.1f} %")
        assert frames["words"][index] == f"Mean accuracy: {'; '.join(means)}."


def test_failed_start_explains_and_keeps_everything(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "1")
    app = fine(opened(steps="3000"))
    app = fine(button(app, "start").click().run())
    assert (
        "would take about" in told(app)
        and "at most 1 s" in told(app)
        and "ABLATION_MAX_SECONDS" in told(app)
    )
    assert RUNNING not in app.session_state[SESSION].kept
    move(app, steps=50).run()
    assert not fine(app).error  # it spoke of other settings
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "600")
    app = fine(opened(batch="4096", d_model="1024", n_layers="100"))
    app = fine(button(app, "start").click().run())
    assert "MB" in told(app) and "ABLATION_MAX_MB" in told(app)


def test_changed_settings_leave_the_curves_and_say_so():
    app = trained(**(TINY | {"steps": "50"}))
    before = running(app)
    move(app, steps=100).run()
    assert "The results below are for earlier settings" in start_line(fine(app))
    assert running(app) is before and "class='legend'" in texts(app)
    move(app, steps=50).run()
    assert "Done: 4 runs" in start_line(app)


def test_link_may_start_training():
    app = fine(opened(begin="on", **TINY))
    assert running(app).plan.trial.seeds == 2
    began = running(app)
    assert (
        "begin" in link(fine(app.run())) and running(app) is began
    )  # the address is left alone, and begins once
    assert "begin" not in link(fine(move(app, seeds=3).run()))
    finish(app)


@pytest.mark.parametrize(
    "bad", [{"seeds": "1000"}, {"variants": "nonsense-off"}, {"equal": "parameters"}]
)
def test_faulty_link_reports_instead_of_starting(bad):
    app = fine(opened(begin="on", **(TINY | bad)))
    assert len(app.warning) == 1 and next(iter(bad)) in told(app)
    assert RUNNING not in app.session_state[SESSION].kept and not button(app, "start").disabled


def test_new_settings_can_be_trained_while_others_are():
    app = fine(opened(**(TINY | {"steps": "3000"})))
    app = fine(button(app, "start").click().run())
    first = running(app).job
    move(app, seeds=1).run()
    app = fine(button(app, "anew").click().run())
    assert first.stopped and running(app).plan.trial.seeds == 1 and running(app).job is not first
    running(app).job.stop()


@pytest.mark.parametrize("name", showcase)
def test_preset_is_one_click(name):
    app = fine(opened(d_model="64", baseline="norm-none", seeds="2", match="flops"))
    app = fine(button(app, f"card_{name}").click().run())
    assert running(app).going or running(app).job.done
    expected = {kind: kind.read(showcase[name])[0] for kind in KINDS}
    assert [kind.read(showcase[name])[1] for kind in KINDS] == [[]] * len(KINDS)
    plan = running(app).plan
    assert plan.training == expected[Training] and plan.trial == expected[Trial]
    assert plan.arms[0].config == expected[Learner].plain() and len(plan.arms) == 2
    running(app).job.stop()


def test_stop_and_go_on():
    app = fine(opened(**(TINY | {"steps": "3000"})))
    app = fine(button(app, "start").click().run())
    begin = time.monotonic()
    app = fine(button(app, "stop").click().run())
    assert (
        time.monotonic() - begin < 5
        and running(app).job.stopped
        and "Stopped at" in start_line(app)
    )
    counts = {name: len(rows) for name, rows in running(app).runs.items()}
    app = fine(button(app, "resume").click().run())
    assert running(app).going
    assert all(len(running(app).runs[name]) >= n for name, n in counts.items())
    running(app).job.stop()


def test_leaving_the_page_loses_nothing_and_it_goes_on():
    app = fine(opened(**(TINY | {"steps": "100"}), trained="answers"))
    app = fine(button(app, "start").click().run())
    job = running(app).job
    app.query_params.clear()
    app.switch_page(BLOCK)
    app = fine(app.run())
    assert "Training" in texts(app) or "Trained" in texts(app)
    assert setting(app, "d_model") == 64  # One block has its own
    app = finish(app)
    app.switch_page(TRAINING)
    app = fine(app.run())
    assert running(app).job is job and "Done: 4 runs" in start_line(app)
    assert setting(app, "d_model") == 8 and setting(app, "trained") == "answers"


@pytest.mark.parametrize("kind", [kind_name for kind_name in match if kind_name != "nothing"])
def test_models_can_be_held_equal(kind):
    app = trained(
        match=kind, variants="ffn-off~attention-off", **(TINY | {"d_model": "32", "n_heads": "4"})
    )
    text = legend(app)
    wide = "− FFN (d_" in text and "− attention (d_ff" in text
    assert wide or (
        kind == "time" and re.search(r"− FFN \(\d+ steps[,)]", text) and "− attention (" in text
    )
    words = {"parameters": "parameters", "flops": "FLOPs", "time": "estimated training time"}[kind]
    assert f"Same for every model: equal {words}." in texts(app)


def test_export_has_what_is_shown():
    app = trained(**TINY)
    app = fine(app.run())
    tables = tables_of(app)
    assert {"learning", "all logged steps", "Accuracy and cost of each model"} <= set(tables)
    assert not any("(2)" in name for name in tables)
    rows = tables["all logged steps"]()
    assert len(rows) == sum(map(len, running(app).runs.values())) and set(rows.seed) == {0, 1}
    summary = tables["Accuracy and cost of each model"]()
    for row in summary.itertuples():
        last = [running(app).runs[row.variant, seed][-1].accuracy for seed in (0, 1)]
        assert row.accuracy == pytest.approx(sum(last) / 2)


@pytest.fixture
def offered(monkeypatch):
    """Return the functions that make the files under "Export", by label."""
    built = {}
    monkeypatch.setattr(
        takeaway_module,
        "download_link",
        lambda label, file, write, mime: built.__setitem__(label, write),
    )
    return built


def test_script_matches_what_is_shown(offered):
    """Changed settings do not affect it, as with pictures, tables and models."""
    app = trained(**TINY)
    app.session_state["take_away"] = True
    app = fine(app.run())
    labels = ("Python script", "Jupyter notebook")
    before = [offered[label]() for label in labels]
    app = fine(move(app, steps=int(TINY["steps"]) + 7).run())
    assert "earlier settings" in start_line(app)
    assert [offered[label]() for label in labels] == before


def test_export_offers_verdicts(offered):
    """Of a training of this user, and of precomputed results."""
    app = trained(**(TINY | {"seeds": "3"}))
    app.session_state["take_away"] = True
    app = fine(app.run())
    document = json.loads(offered["Verdicts (JSON)"]())
    plan = running(app).plan
    table = results.summary(running(app).runs, plan)
    check_document(document, table.assign(task="reverse", missing=0, mixed=""))
    assert document["versions"]["torch"] == [torch.__version__]
    assert document["comparisons"][0]["n"] == 3
    app = opened(task="copy", device="cpu", seeds="5", variants="norm-none")
    app.session_state["take_away"] = True
    fine(app.run())
    shipped = json.loads(offered["Verdicts (JSON)"]())
    assert find_problems(shipped) == []
    (line,) = shipped["comparisons"]
    table = read_summary(table_of("ablation_matrix"))
    cell = table[(table.task == "copy") & (table.variant == "− norm")].iloc[0]
    assert line["effect"] == cell.difference and line["n"] == 5
    assert shipped["versions"] == shipped_document("ablation_matrix")["versions"]


def test_curves_say_how_many_runs_learnt_in_two_groups():
    summary = read_summary(table_of("ablation_matrix"))
    cell = next(line for line in summary.itertuples() if line.two_groups)
    params = dict(parse_qsl(cell.link.split("?")[1]))
    app = opened(**params)
    assert format_learnt(cell.learnt, cell.seeds) in legend(app)
    (curves,) = pages.components(app, "ablation_curves")
    assert re.search(r'name[\\": ]+learnt', str(curves))


def test_trainings_of_all_users_together_are_limited(monkeypatch):
    """Stopped trainings count while their users stay; duplicates count once."""
    monkeypatch.setattr(jobs, "_jobs", weakref.WeakSet())  # of no other test
    monkeypatch.setenv("ABLATION_MAX_MB", "140")
    large = dict(
        d_model="256",
        d_ff="1024",
        n_heads="1",
        n_layers="2",
        task="copy",
        steps="500",
        batch="1",
        seeds="4",
    )
    users = [
        fine(opened(begin="on", **large, seed=seed)).session_state[SESSION].kept
        for seed in ("0", "0", "4")
    ]
    started = [
        session_of_user[RUNNING].job for session_of_user in users if RUNNING in session_of_user
    ]
    try:
        assert len(started) == 2 and users[1][RUNNING].job.rows == users[0][RUNNING].job.rows
        assert "140 MB" in users[2][REFUSED][1]
    finally:
        for job in started:
            job.stop()


def test_before_the_first_step_no_time_is_estimated():
    workers = types.SimpleNamespace(sharing=1, count=2)
    job = types.SimpleNamespace(
        error=None, stopped=False, done=False, states={"a": 0}, progress=0.0, workers=workers
    )
    job.seconds_left = lambda: 7.0
    assert jobs.describe_status(job) == "Starting 1 run"
    job.progress = 0.5
    assert jobs.describe_status(job) == "50 % of 1 run, about 7 s left"
