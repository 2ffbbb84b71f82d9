"""A store that is missing, damaged or out of reach: said in words on the page and by the command, and no visitor reads where it lies."""

import sqlite3
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.study.database import connection as databases
from core.study.database.connection import StoreError
from core.study.database.schema import FAILED
from core.study.database.store import Store
from tests import pages
from tests.pages import tables
from tests.studies import fill, study
from tests.test_page import fine, told
from tests.test_studies_page import forget

ROOT = Path(__file__).parent.parent
STUDIES = "pages/4_Studies.py"


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """What the page keeps of stores is forgotten, and there is none yet."""
    monkeypatch.setenv(databases.VARIABLE, f"sqlite:///{tmp_path}/studies.sqlite")
    forget()
    yield forget
    forget()


def everything(app) -> str:
    """All that a visitor can read."""
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success, app.title, app.code, app.toast)
    html = [each.proto.body for each in app.get("html")]
    return " ".join([*html, *(str(each.value) for kind in kinds for each in kind)]).replace("\\", "")


def spoil(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_damaged_store_is_one_error_on_the_page(tmp_path, fresh):
    path = tmp_path / "studies.sqlite"
    Store(str(path)).close()
    spoil(path, "DROP TABLE rows")
    app = studies()
    assert "the table rows is missing" in told(app) and len(app.error) == 1 and str(tmp_path) not in everything(app)


def studies(**params) -> AppTest:
    return fine(pages.opened(STUDIES, **params))


def test_no_visitor_reads_where_the_store_lies(tmp_path, monkeypatch, fresh):
    path = tmp_path / "studies.sqlite"
    store = Store(str(path))
    assert store.name == str(path)  # the command says where
    fill(store, study(), lambda run: FAILED if run.variant == "1 head" else 0.5)
    spoil(path, f"UPDATE runs SET message = 'OSError: no room in ''{tmp_path}/deep/file.bin''' WHERE state = 'failed'")
    app = studies(study="nobody")
    assert "There is no study “nobody” here." in told(app) and str(tmp_path) not in everything(app)
    app = studies(shown="runs")
    (shown,) = [each.value for each in app.dataframe if "message" in each.value]
    assert (
        "OSError: no room in '…/file.bin'" in set(shown.message) and not shown.message.str.contains(str(tmp_path)).any()
    )
    (taken,) = [make() for name, make in tables(app).items() if name == "Every run"]
    assert not taken.to_csv().count(str(tmp_path))
    spoil(path, "DROP TABLE runs")
    app = studies()
    assert "no such table" in told(app) and str(tmp_path) not in everything(app)
    with pytest.raises(StoreError, match=str(path)):
        store.runs(1)
    for given in (f"sqlite:///{tmp_path}", f"sqlite:///{__file__}"):
        monkeypatch.setenv(databases.VARIABLE, given)
        fresh()
        app = studies()
        assert len(app.error) == 1 and str(tmp_path) not in everything(app) and str(ROOT) not in everything(app)
        with pytest.raises(StoreError, match=given.removeprefix("sqlite:///")):
            Store(create=False)


def test_a_file_that_is_deleted_under_a_running_app_is_said_and_one_put_back_is_used(tmp_path):
    path, other = tmp_path / "studies.sqlite", tmp_path / "other.sqlite"
    stores = {name: Store(str(name)) for name in (path, other)}
    for name, store in stores.items():
        fill(store, study(name=name.stem), lambda run: 0.5)
        assert [each.name for each in store.studies()] == [name.stem]
    for beside in tmp_path.glob("studies.sqlite*"):
        beside.unlink()
    for call in (
        stores[path].studies,
        stores[path].now,
        lambda: fill(stores[path], study(name="lost"), lambda run: 0.5),
    ):
        with pytest.raises(StoreError, match="studies.sqlite is gone: its file was deleted, moved or renamed") as error:
            call()
        assert str(tmp_path) not in error.value.told
    assert not path.exists()
    stores[other].close()
    path.touch()
    with pytest.raises(
        StoreError, match="is damaged or was replaced .no such table: studies.: restore it, or choose another"
    ):
        stores[path].studies()
    for beside in tmp_path.glob("studies.sqlite*"):
        beside.unlink()
    for beside in tmp_path.glob("other.sqlite*"):
        beside.rename(str(beside).replace("other", "studies"))
    assert [each.name for each in stores[path].studies()] == ["other"]
    fill(stores[path], study(name="kept"), lambda run: 0.5)
    stores[path].close()
    assert {each.name for each in Store(str(path)).studies()} == {"other", "kept"}
