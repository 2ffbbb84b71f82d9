"""The curves of a study as a file: what is read is what was trained, to the last bit; what ships is of the study; what is damaged is said."""

from pathlib import Path

import numpy as np
import pytest

from core.settings.device import Machine
from core.settings.process import device_name, versions
from core.study.__main__ import main
from core.study.curves import KINDS, MADE, read_curves, write_curves
from core.study.database.store import Store
from core.study.file import read
from core.study.plan import Run, StudyError
from core.study.shipped import curves_of
from core.tasks import task
from core.train import Row, Training, train
from tests.studies import fill, study

ROOT = Path(__file__).parent.parent
SHIPPED = curves_of("ablation_matrix")
STUDY = read(ROOT / "studies" / "ablation_matrix.toml")
WHO = dict.fromkeys(MADE, ("somebody",))


def runs() -> list[Run]:
    """Two that are trained to the end, and one that diverges."""
    tiny = task["reverse"].config(d_model=8, n_heads=2, n_layers=1)
    short = Training(task="reverse", steps=6, batch=4, warmup=2, decay="cosine")
    hot = Training(task="reverse", steps=40, batch=4, learning_rate=1000.0, optimiser="sgd", warmup=0)
    made = [(tiny, short), (tiny.replace(seed=3), short), (tiny.replace(norm="none"), hot)]
    return [Run("reverse", "", config, training, Machine("cpu")) for config, training in made]


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


def same(one: list[Row], other: list[Row]) -> bool:
    return repr(one) == repr(other)  # NaN, too


def test_what_is_read_is_what_was_trained_to_the_last_bit(file, rows):
    curves = read_curves(file)
    assert all(same(curves.rows(run), rows[run.hash]) for run in runs())
    assert rows[runs()[2].hash][-1].note and not rows[runs()[0].hash][-1].note
    assert curves.made == dict.fromkeys(MADE, ("somebody",)) | {"torch": ("2.1", "2.2")}


def test_the_command_exports_every_run_that_has_its_result(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/store.sqlite"
    store, planned = Store(url), study()
    ends = dict(zip((run.hash for run in planned.runs), [0.5, float("nan"), "failed", "queued"] * 6))
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
            assert now[1:5] == pytest.approx([float(np.float32(value)) for value in was[1:5]], nan_ok=True, rel=0)
            assert (now.step, now.note) == (was.step, was.note)
    assert curves.made["device"] == ("CPU (made up)",) and curves.made["torch"] == (versions()["torch"],)


# What ships


@pytest.mark.slow
def test_a_cell_trained_anew_gives_the_rows_that_ship():
    cheapest = min({(run.task, run.variant): run.expected for run in STUDY.runs}.items(), key=lambda each: each[1])[0]
    curves = read_curves(SHIPPED)
    here = {"device": device_name(Machine("cpu")), "torch": versions()["torch"]}
    alike = all(curves.made[name] == (value,) for name, value in here.items())
    for run in [run for run in STUDY.runs if (run.task, run.variant) == cheapest]:
        now, ships = trained(run), curves.rows(run)
        if alike:
            assert same(now, ships)
        else:  # another processor adds in another order, and a training makes much of little
            assert now[0][:5] == pytest.approx(ships[0][:5], rel=1e-3)
            assert [row.step for row in now] == [row.step for row in ships]
            assert now[-1].accuracy == pytest.approx(ships[-1].accuracy, abs=0.05)


# Files that are damaged


def arrays(file) -> dict:
    with np.load(file) as packed:
        return {name: packed[name] for name in KINDS}


def changed(name, values):
    def change(there):
        there[name] = values(there[name]) if callable(values) else values

    return change


def longer(rows):
    return rows + np.int32(1)


HARM = {
    "nothing": lambda there: there.clear(),
    "a list is missing": lambda there: there.pop("loss"),
    "objects": changed("loss", np.array([{}, []], object)),
    "a table for a list": changed("loss", lambda old: old[:, None]),
    "one list is shorter": changed("loss", lambda old: old[:-1]),
    "more rows than there are": changed("rows", longer),
    "rows below nothing": changed("rows", lambda old: np.array([-5, 5 + old.sum(), 0][: len(old)], old.dtype)),
    "made by nobody": changed("made", np.frombuffer(b"{}", np.uint8)),
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_what_is_no_whole_file_of_curves_is_refused(tmp_path, file, harm):
    there, path = arrays(file), tmp_path / "curves.npz"
    harm(there)
    np.savez_compressed(path, **there)
    with pytest.raises(StudyError, match="holds no curves of a study"):
        read_curves(path)
