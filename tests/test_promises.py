"""Published links, run hashes, files and columns stay readable (tests/promises/record.py)."""

import json
import math
import shutil

import pytest

from core.checkpoints import files, native
from core.model.trace import SITES
from core.study.database.store import Store
from core.study.file import parse
from core.train import Row
from tests.promises import record

FOLDER = record.ROOT / "tests" / "promises"
PROMISED = json.loads((FOLDER / "record.json").read_text())
GONE = "teacher"  # a key was a parameter of the Class page; keys no longer stand in links


def test_shipped_runs_keep_their_hashes():
    runs = record.record_runs({name: count for name, (count, _) in PROMISED["runs"].items()})
    assert {study: runs[study] for study in PROMISED["runs"]} == PROMISED["runs"]


def test_link_parameters_keep_names_defaults_and_keys():
    parameters = record.record_parameters()
    for name, (default, menu) in PROMISED["parameters"].items():
        if name.endswith(f".{GONE}"):
            continue
        assert name in parameters, name
        assert parameters[name][0] == default, name
        assert set(menu) <= set(parameters[name][1]), name


@pytest.mark.parametrize("page", PROMISED["links"])
def test_old_link_opens_same_settings(page):
    opened = record.record_links()[page]
    promised = PROMISED["links"][page]
    for kind, values in promised["values"].items():
        values.pop(GONE, None)
        assert {name: opened["values"][kind][name] for name in values} == values
    assert opened["link"] == promised["link"]


def test_hook_names_and_fields_of_rows_stay():
    assert set(PROMISED["hooks"]) <= set(SITES)
    assert list(Row._fields) == PROMISED["rows"]


def test_columns_of_exported_tables_stay():
    columns = record.record_columns()
    for table, names in PROMISED["columns"].items():
        assert [name for name in columns[table] if name in names] == names, table


def test_tables_of_pages_stay():
    tables = record.record_tables_of_pages()
    for page, promised in PROMISED["tables"].items():
        for name, columns in promised.items():
            assert [column for column in tables[page][name] if column in columns] == columns, (
                page,
                name,
            )


def test_saved_model_predicts_the_same():
    settings = json.loads((FOLDER / "config.json").read_text())
    written = native.model_files(record.tiny_model(), "promised", "", note="kept")
    assert set(settings) <= set(json.loads(written["config.json"]))
    assert written["model.safetensors"] == (FOLDER / "model.safetensors").read_bytes()
    model = files.from_upload({name: (FOLDER / name).read_bytes() for name in written}).model
    logits = record.predict_with(model)
    assert len(logits) == len(PROMISED["logits"])
    assert all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(logits, PROMISED["logits"])
    )


def test_old_store_opens_with_its_rows(tmp_path):
    shutil.copy(FOLDER / "store.sqlite", tmp_path / "store.sqlite")
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    study = store.find("promised")
    enrolled = store.enrol(parse(record.STUDY))
    assert (enrolled.study, enrolled.new, enrolled.ended) == (study, 0, 1)
    ended = [run for run in store.runs(study) if run.state == "done"]
    assert [(run.task, run.variant, run.seed, run.step) for run in ended] == [
        ("copy", "baseline", 0, 2)
    ]
    rows = [tuple(row)[1:] for row in store.rows(study)]
    assert rows == [(1, 2.75, 2.5, 0.1, 0.2, 0.003, ""), (2, 1.375, 1.25, 0.1, 0.4, 0.003, "")]
    store.close()
