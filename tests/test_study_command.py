"""python -m core.study: output, exit status, and no loss when killed, stopped or run twice."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from core.settings.device import Machine
from core.settings.process import device_name, new_owner
from core.study import __main__ as command
from core.study.database.schema import DONE, FAILED, RUNNING, STOPPED
from core.study.database.store import Report, Store
from core.study.file import parse
from core.train import Row, train
from tests.waiting import wait

ROOT = Path(__file__).parent.parent
TEXT = """
name = "small"
tasks = ["reverse"]
seeds = 4
device = "cpu"
[base]
d_model = 16
n_heads = 2
n_layers = 1
[training]
steps = 300
batch = 8
[variants]
"− attention" = {attention = false}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.toml").write_text(TEXT)
    return tmp_path


def start(folder, *args, **environment):
    """Start the command in its own process group, as a shell does."""
    call = [sys.executable, "-m", "core.study", *args]
    with_path = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    pipe = subprocess.PIPE
    return subprocess.Popen(
        call,
        cwd=folder,
        env=with_path,
        text=True,
        stdout=pipe,
        stderr=pipe,
        encoding="utf-8",
        start_new_session=True,
    )


def look(folder) -> Store | None:
    """Return the store as soon as it exists."""
    path = folder / "studies.sqlite"
    wait(path.exists)
    return Store(str(path))


def state_counts(store) -> dict:
    number = store.find("small")
    return (
        {state: count for state, (count, _, _) in store.counts([number]).items()} if number else {}
    )


def check_complete(store):
    study = parse(TEXT)
    actual = {}
    number = store.find("small")
    for run, *row in store.rows(number):
        actual.setdefault(run, []).append(Row(*row))
    stored = store.runs(number)
    assert [item.hash for item in stored] == [item.hash for item in study.runs]
    assert {item.state for item in stored} == {DONE}
    for entry, run in zip(stored, study.runs):
        assert repr(actual[entry.id]) == repr(
            list(train(run.config, run.training, run.seed, run.machine))
        )


@pytest.mark.slow
def test_killed_command_resumes_without_loss(folder):
    first = start(folder, "run", "small.toml", "--workers", "2")
    store = look(folder)
    wait(
        lambda: (
            state_counts(store).get(DONE, 0) >= 2 and any(r.step for r in store.runs(1, RUNNING))
        ),
        process=first,
    )
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    before = {run.hash: (run.ended, run.tries) for run in store.runs(1, DONE)}
    rows = len(store.rows(1))
    assert store.runs(1, RUNNING) and rows  # they are marked …

    message = start(folder, "status")
    out, _ = message.communicate()
    assert (
        "interrupted, because the process ended; resume reruns them." in out
        and message.returncode == 1
    )

    repeated = start(folder, "run", "small.toml", "--workers", "2")  # … and run again at once
    out, errors = repeated.communicate(timeout=120)
    assert repeated.returncode == 0, errors
    assert f"{len(before)} runs already done." in out and "small: 8 runs: 8 done." in out
    assert "Traceback" not in errors and "[####################] 8 of 8 runs" not in out
    after = {run.hash: (run.ended, run.tries) for run in store.runs(1)}
    assert {key: after[key] for key in before} == before
    check_complete(store)


@pytest.mark.slow
def test_ctrl_c_stores_results_and_resume_continues(folder):
    first = start(folder, "run", "small.toml", "--workers", "2")
    store = look(folder)
    wait(
        lambda: any(r.step for r in store.runs(1, RUNNING)) if store.find("small") else False,
        process=first,
    )
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to the workers too
    out, errors = first.communicate(timeout=30)
    assert first.returncode == 128 + signal.SIGINT and "Traceback" not in errors, errors
    assert "stopped" in out and "To continue: python -m core.study resume 'small'" in out
    counts = state_counts(store)
    assert counts[STOPPED] >= 1 and RUNNING not in counts and store.rows(1)

    repeated = start(folder, "resume", "small", "--workers", "2")
    out, errors = repeated.communicate(timeout=120)
    assert repeated.returncode == 0 and f"{counts[STOPPED]} run" in out and "rerun" in out, errors
    check_complete(store)


@pytest.mark.slow
def test_concurrent_commands_train_runs_once(folder):
    both = [start(folder, "run", "small.toml", "--workers", "1") for _ in range(2)]
    for item in both:
        out, errors = item.communicate(timeout=180)
        assert item.returncode == 0 and "8 runs: 8 done." in out and "Traceback" not in errors, (
            errors
        )
    store = look(folder)
    check_complete(store)
    assert {run.tries for run in store.runs(1)} == {1} and len(
        {run.owner for run in store.runs(1)}
    ) == 2


def called(capsys, *args) -> tuple[int, str, str]:
    code = command.main(list(args))
    out, errors = capsys.readouterr()
    return code, out, errors


@pytest.fixture
def half(folder, monkeypatch):
    """Return a store in which half of the study is done."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ABLATION_DATABASE_URL", raising=False)
    store = Store("studies.sqlite")
    number = store.enrol(parse(TEXT)).study
    host, process, name = new_owner().split("|")
    claimed = [run for run, *_ in store.claim(number, f"{host}|{process}|{name}", 6)]
    row = [Row(300, 0.5, 0.75, 1.0, 0.1, 0.01)]
    reports = [Report(run, DONE, row, 300, 2.0) for run in claimed[:3]]
    reports += [
        Report(claimed[3], FAILED, [], message="RuntimeError: why"),
        Report(claimed[4], STOPPED, row, 300),
    ]
    store.store_reports(f"{host}|{process}|{name}", [*reports, Report(claimed[5], RUNNING, [], 10)])
    return store


def test_status_says_how_far_each_study_is(half, capsys):
    code, out, _ = called(capsys, "status")
    assert code == command.INCOMPLETE
    assert "small: 8 runs: 2 queued, 1 running, 3 done, 1 failed, 1 stopped." in out
    assert "reverse, − attention, seed 1 failed: RuntimeError: why" in out
    assert "To go on" not in out  # this process has a run of it in hand
    assert called(capsys, "status", "small.toml")[1] == called(capsys, "status", "small")[1] == out
    assert "without a process" not in out
    with half.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET step = 0 WHERE state = 'running'")
    assert (
        "small: 8 runs: 3 queued, 3 done, 1 failed, 1 stopped." in called(capsys, "status")[1]
    )  # taken ahead of time
    with half.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET heartbeat = 0 WHERE state = 'running'")
    assert "To continue: python -m core.study resume 'small'" in called(capsys, "status")[1]


def test_export_writes_the_tables_of_each_study(half, capsys, folder):
    code, out, _ = called(capsys, "export", "small.toml", "--csv", "c", "--parquet", "p")
    assert code == 0 and out.split() == [
        f"{k}/{n}"
        for k, t in (("c", "csv"), ("p", "parquet"))
        for n in ("study.toml", *(f"{n}.{t}" for n in ("runs", "rows", "summary")))
    ]
    table = pd.read_csv("c/summary.csv")
    assert list(table.missing) == [2, 3] and list(table.accuracy) == [0.75, 0.75]
    assert json.loads(pd.read_csv("c/runs.csv").spec[0])["training"]["steps"] == 300


@pytest.fixture
def mixed(folder, monkeypatch):
    """Return a complete study of tiny runs, two of which have an old version of torch."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ABLATION_DATABASE_URL", raising=False)
    text = TEXT.replace("steps = 300", "steps = 3").replace("seeds = 4", "seeds = 2")
    study = parse(text)
    (folder / "small.toml").write_text(text)
    store = Store("studies.sqlite")
    number = store.enrol(study).study
    owner = new_owner()
    here = device_name(Machine("cpu"))
    claimed = store.claim(number, owner, 4)
    row = [Row(3, 0.5, 0.75, 1.0, 0.1, 0.01)]
    reports = [Report(run, DONE, row, 3, 2.0, device=here) for run, *_ in claimed]
    store.store_reports(owner, reports)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET torch = '1.0' WHERE seed = 1")
    yield store
    store.close()


def test_commands_name_mixed_conditions_in_one_line(mixed, capsys):
    versions = f"torch 1.0 and {torch.__version__}"
    hint = "python -m core.study rerun 'small'"
    code, out, errors = called(capsys, "status")
    assert code == command.COMPLETE and not errors
    assert [versions in line and hint in line for line in out.splitlines()] == [False, True]
    code, out, errors = called(capsys, "export", "small", "--csv", "c", "--summary", "s.csv")
    assert code == command.COMPLETE and "torch" not in out and len(out.split()) == 5
    assert versions in errors and hint in errors and len(errors.splitlines()) == 1
    assert list(pd.read_csv("s.csv").mixed) == [versions, versions]
    code, out, _ = called(capsys, "check", "small", "--with", "s.csv")
    assert code == command.COMPLETE and versions in out.splitlines()[-1]
    with mixed.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET torch = '1.0'")
    for arguments in (["status"], ["export", "small", "--csv", "c"]):
        code, out, errors = called(capsys, *arguments)
        assert code == command.COMPLETE and "1.0" not in out + errors


def test_rerun_trains_odd_runs_alone(mixed, capsys):
    before = {run.id: run for run in mixed.runs(1)}
    odd = {run.id for run in before.values() if run.torch == "1.0"}
    assert len(odd) == 2
    code, out, errors = called(capsys, "rerun", "small", "--workers", "1")
    assert code == command.COMPLETE, errors
    assert "2 runs to train again" in out and "4 runs: 4 done" in out and "rerun" not in out
    after = {run.id: run for run in mixed.runs(1)}
    study = parse(Path("small.toml").read_text())
    for run, (number, line) in zip(study.runs, after.items()):
        rows = [Row(*row) for of, *row in mixed.rows(1) if of == number]
        if number in odd:
            trained = list(train(run.config, run.training, run.seed, run.machine))
            assert line.tries == 2 and repr(rows) == repr(trained)
        else:
            assert line == before[number] and rows == [Row(3, 0.5, 0.75, 1.0, 0.1, 0.01)]
    assert {line.torch for line in after.values()} == {torch.__version__}
    code, out, _ = called(capsys, "rerun", "small", "--workers", "1")
    assert code == command.COMPLETE and "0 runs to train again" in out
    assert {run.id: run for run in mixed.runs(1)} == after


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["run", "none.toml"], command.MISTAKE, "none.toml: No such file or directory."),
        (["run", "wrong.toml"], command.MISTAKE, "wrong.toml: name is 3;"),
        (["status"], command.NO_STORE, "There are no studies at "),
        (["resume", "small"], command.NO_STORE, "There are no studies at "),
        (
            ["run", "small.toml", "--database", "mysql://u:secret@h/d"],
            command.NO_STORE,
            "--database is not the address",
        ),
    ],
)
def test_mistakes_end_with_a_sentence_and_a_code(
    folder, capsys, monkeypatch, arguments, code, words
):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ABLATION_DATABASE_URL", raising=False)
    Path("wrong.toml").write_text(TEXT.replace('"small"', "3"))
    actual, out, errors = called(capsys, *arguments)
    assert (
        actual == code and words in errors and "Traceback" not in errors and "secret" not in errors
    )
    assert not Path("studies.sqlite").exists()
