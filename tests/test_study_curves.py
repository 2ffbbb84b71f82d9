"""Curve files of studies: exact round trips, shipped files match, damage is reported."""

from dataclasses import replace

import numpy as np
import pytest

from core.settings.device import Machine
from core.settings.process import versions
from core.study.__main__ import main
from core.study.curves import KINDS, MADE, CurveFiles, read_curves, write_curves
from core.study.database.schema import DIVERGED, DONE, QUEUED
from core.study.database.store import Store
from core.study.file import read
from core.study.imports import import_curves
from core.study.plan import Run, StudyError
from core.tasks import task
from core.train import Row, Training, train
from tests.studies import fill, study

WHO = dict.fromkeys(MADE, ("somebody",))


def runs() -> list[Run]:
    """Return two finished runs and one that diverges."""
    tiny = task["reverse"].config(d_model=8, n_heads=2, n_layers=1)
    short = Training(task="reverse", steps=6, batch=4, warmup=2, decay="cosine")
    hot = Training(
        task="reverse", steps=40, batch=4, learning_rate=1000.0, optimiser="sgd", warmup=0
    )
    settings = [(tiny, short), (tiny.replace(seed=3), short), (tiny.replace(norm="none"), hot)]
    return [Run("reverse", "", config, training, Machine("cpu")) for config, training in settings]


def trained(run: Run) -> list[Row]:
    return list(train(run.config, run.training, run.seed, run.machine))


@pytest.fixture(scope="module")
def rows():
    return {run.hash: trained(run) for run in runs()}


@pytest.fixture(scope="module")
def file(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("curves") / "curves.npz"
    write_curves(path, rows, WHO | {"torch": ("2.1", "2.2")})
    return path


def test_exported_curves_equal_trained_rows(file, rows):
    curves = read_curves(file)
    assert all(repr(curves.rows(run)) == repr(rows[run.hash]) for run in runs())  # NaN, too
    assert rows[runs()[2].hash][-1].note and not rows[runs()[0].hash][-1].note
    assert curves.made == dict.fromkeys(MADE, ("somebody",)) | {"torch": ("2.1", "2.2")}


def test_command_exports_all_finished_runs(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/store.sqlite"
    store = Store(url)
    planned = study()
    ends = dict(
        zip((run.hash for run in planned.runs), [0.5, float("nan"), "failed", "queued"] * 6)
    )
    number = fill(store, planned, lambda run: ends[run.hash])
    stored = {}
    for run, *row in store.rows(number):
        stored.setdefault(run, []).append(Row(*row))
    stored = {run.hash: stored.get(run.id) for run in store.runs(number)}
    store.close()
    path = tmp_path / "new" / "curves.npz"
    assert main(["export", "made up", "--curves", str(path), "--database", url]) == 0
    assert str(path) in capsys.readouterr().out
    curves = read_curves(path)
    for run in planned.runs:
        if isinstance(ends[run.hash], str):
            assert curves.rows(run) is None
            continue
        for now, was in zip(curves.rows(run), stored[run.hash], strict=True):
            assert now[1:5] == pytest.approx(
                [float(np.float32(value)) for value in was[1:5]], nan_ok=True, rel=0
            )
            assert (now.step, now.note) == (was.step, was.note)
    assert curves.made["device"] == ("CPU (made up)",) and curves.made["torch"] == (
        versions()["torch"],
    )


def changed(name, values):
    def change(columns):
        columns[name] = values(columns[name]) if callable(values) else values

    return change


HARM = {
    "a list is missing": lambda columns: columns.pop("loss"),
    "objects": changed("loss", np.array([{}, []], object)),
    "one list is shorter": changed("loss", lambda old: old[:-1]),
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_incomplete_curve_file_is_refused(tmp_path, file, harm):
    path = tmp_path / "curves.npz"
    with np.load(file) as packed:
        columns = {name: packed[name] for name in KINDS}
    harm(columns)
    np.savez_compressed(path, **columns)
    with pytest.raises(StudyError, match="does not contain study curves"):
        read_curves(path)


def test_imported_curves_are_results_of_the_study(tmp_path, rows):
    """A file that lists two versions of torch is left out, or its versions are unknown."""
    url = f"sqlite:///{tmp_path}/store.sqlite"
    store = Store(url)
    planned = replace(study(), runs=tuple(runs()))
    certain, mixed = tmp_path / "certain.npz", tmp_path / "mixed.npz"
    first, *others = runs()
    write_curves(certain, {first.hash: rows[first.hash]}, WHO)
    write_curves(
        mixed, {run.hash: rows[run.hash] for run in others}, WHO | {"torch": ("2.1", "2.2")}
    )
    files = CurveFiles((read_curves(certain), read_curves(mixed)))
    assert import_curves(store, planned, files) == 1
    assert import_curves(store, planned, files) == 0
    number = store.find("made up")
    assert [run.state for run in store.runs(number)] == [DONE, QUEUED, QUEUED]
    assert import_curves(store, planned, files, certain=False) == 2
    lines = store.runs(number)
    assert [run.state for run in lines] == [DONE, DONE, DIVERGED]
    assert [(run.torch, run.device) for run in lines] == [("somebody", "somebody")] + 2 * [
        ("", "somebody")
    ]
    for run, line in zip(planned.runs, lines):
        stored = [Row(*row) for of, *row in store.rows(number) if of == line.id]
        assert repr(stored) == repr(rows[run.hash])
    assert [line.message for line in lines] == ["", "", rows[others[1].hash][-1].note]
    store.close()


def test_command_imports_results_that_ship(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/store.sqlite"
    file = "studies/lessons/mask.toml"
    assert main(["import", file, "--database", url]) == 0
    assert "results stored in" in capsys.readouterr().out
    store = Store(url)
    number = store.find(read(file).name)
    states = {run.state for run in store.runs(number)}
    store.close()
    assert states == {DONE} and main(["run", file, "--database", url]) == 0
