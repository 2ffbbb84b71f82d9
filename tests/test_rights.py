"""What visitors of a server may change: nothing that all share, unless they hold its key or it is open to all."""

import gc
import re
import shutil

import pytest
from streamlit.testing.v1 import AppTest

from core.settings import environment
from core.study.database import connection as databases
from core.study.database.connection import StoreError
from core.study.database.schema import QUEUED
from core.study.database.store import Store, standing
from tests import disks
from tests.databases import postgresql  # noqa: F401  (a fixture)
from tests.pages import link, words
from tests.studies import fill, study
from tests.test_page import fine, told
from tests.test_studies_page import button, dialog, forget, good, labels, opened, press, score, store, texts, url  # noqa: F401
from ui.kit import rights
from ui.shared import models as choose
from ui.studies.new_study import TEMPLATE
from ui.trained.model_list import DOWNLOADS

CHANGES = {"Stop", "Resume", "Delete it", "Start"}
SECRET = "a long word, für alle"


@pytest.fixture
def public(monkeypatch, url):  # noqa: F811
    monkeypatch.delenv("ABLATION_READ_ONLY")
    monkeypatch.setenv(rights.VARIABLE, SECRET)


@pytest.mark.parametrize("value", [None, "", "1", "yes", "no", "off"])
def test_a_server_is_read_only_unless_that_is_switched_off(monkeypatch, value):
    monkeypatch.delenv("ABLATION_READ_ONLY", raising=False)
    if value is not None:
        monkeypatch.setenv("ABLATION_READ_ONLY", value)
    assert environment.read_only()
    monkeypatch.setenv("ABLATION_READ_ONLY", "0")
    assert not environment.read_only()


def test_a_visitor_can_look_and_change_nothing(store, public):  # noqa: F811
    fill(store, study(), lambda run: "queued" if run.seed else score(run))
    app = good(opened())
    assert not CHANGES & set(labels(app)) and button(app, "New study").disabled
    assert button(app, "New study").help == rights.REASON and "Matrix" in words(app, "shown")


@pytest.mark.parametrize("address", [{"key": "wrong"}, {"key": ""}, {"key": SECRET[:-1]}])
def test_a_wrong_key_is_said_and_opens_nothing(store, public, address):  # noqa: F811
    fill(store, study(), score)
    app = fine(opened(**address))
    assert rights.WRONG[:30] in told(app) and not CHANGES & set(labels(app))
    assert "key" not in link(app)


def test_without_a_key_of_the_server_no_key_is_right(store, public, monkeypatch):  # noqa: F811
    monkeypatch.delenv(rights.VARIABLE)
    fill(store, study(), score)
    assert not CHANGES & set(labels(fine(opened(key=""))))


def test_who_holds_the_key_may_and_the_key_leaves_the_link(store, public):  # noqa: F811
    fill(store, study(), score)
    app = good(opened(key=SECRET))
    assert "Delete it" in labels(app) and "key" not in link(app) and SECRET not in texts(app)
    assert not any("no setting here" in each.value for each in [*app.warning, *app.info])
    app = good(app.run())
    assert "Delete it" in labels(app) and "key" not in link(app)
    good(press(app, "Delete it"))
    assert store.studies() == []


def test_the_key_may_stand_among_the_secrets(store, public, monkeypatch):  # noqa: F811
    monkeypatch.delenv(rights.VARIABLE)
    monkeypatch.setattr(rights.st, "secrets", {rights.VARIABLE: SECRET})
    fill(store, study(), score)
    assert "Delete it" in labels(good(opened(key=SECRET)))


def test_callbacks_refuse_too(store, monkeypatch):  # noqa: F811
    """As for a page that was drawn before, or a browser that says that a button was pressed which is not there."""
    number = fill(store, study(), lambda run: "queued")
    app = good(opened())
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    press(app, "Delete it")
    assert [each.id for each in store.studies()] == [number]
    assert {each.state for each in store.runs(number)} == {QUEUED}


def test_a_study_cannot_be_started_by_a_page_that_was_drawn_before(url, monkeypatch):  # noqa: F811
    app = dialog(TEMPLATE)
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    monkeypatch.setattr("ui.studies.chooser.can_write", lambda _: True)  # a dialog is run again without what opened it
    app = press(app, "Start")
    assert any(rights.REASON in each.value for each in app.error)
    made = Store(url)
    assert made.studies() == []
    made.close()


# Stores that cannot be written


def check_looked_at(where, monkeypatch, number):
    """The page shows its studies, says once that nothing can be changed, and offers nothing."""
    monkeypatch.setenv(databases.VARIABLE, where)
    forget()
    app = good(opened())
    assert texts(app).count("cannot be written") == 1 and "18 runs" in texts(app)
    assert not CHANGES & set(labels(app)) and button(app, "New study").disabled
    made = Store(where, create=False)
    assert not made.writable and len(made.results(number)) == 6
    assert "stopped" not in standing(made, number).counts
    with pytest.raises(StoreError):
        made.stop(number)
    made.close()


@pytest.fixture
def disk(tmp_path):
    """A disk, and what makes it one that is only read."""
    with disks.disk(tmp_path, "20m", "a role of PostgreSQL that may only read") as (folder, remount):
        yield folder, lambda: remount("ro")


@pytest.mark.parametrize("closed", [True, False])
def test_a_file_that_may_only_be_read_can_be_looked_at(disk, monkeypatch, closed):
    folder, freeze = disk
    where = f"sqlite:///{folder}/studies.sqlite"
    made = Store(where)
    number = fill(made, study(), lambda run: "queued" if run.seed else score(run))
    if closed:
        made.close()
    else:  # as it lies where its writer was killed: beside it what has not been merged into it
        for each in folder.iterdir():
            shutil.copy(each, f"{each}.copy")
        made.close()
        for each in folder.glob("*.copy"):
            each.rename(str(each).removesuffix(".copy"))
    gc.collect()
    assert freeze()
    check_looked_at(where, monkeypatch, number)
    forget()
    gc.collect()


def test_a_role_that_may_only_read_can_look_at_them(postgresql, monkeypatch):  # noqa: F811
    where = postgresql.new()
    made = Store(where)
    number = fill(made, study(), lambda run: "queued" if run.seed else score(run))
    assert made.writable
    name = f"reader_{where.rpartition('/')[2]}"
    with made.writing() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'look'")
        connection.exec_driver_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
    made.close()
    check_looked_at(re.sub(r"//.*@", f"//{name}:look@", where), monkeypatch, number)
    forget()


# Limits


def page_of(name: str, **params: str) -> AppTest:
    app = AppTest.from_file("../app.py", default_timeout=60)
    app.switch_page(name)
    app.query_params.update(params)
    return fine(app.run())


def test_models_of_all_visitors_are_limited(monkeypatch):
    class Large:
        size, key, name = 20 << 20, "large", "large"

    held = Large()
    monkeypatch.setenv("ABLATION_MODELS_MB", "30")
    choose.check_room(30 << 20)
    choose.kept_by_all.add(held)
    with pytest.raises(choose.MemoryLimit, match="30 MB.*ABLATION_MODELS_MB"):
        choose.check_room((10 << 20) + 1)
    choose.check_room(10 << 20)
    del held
    choose.check_room(30 << 20)


def test_downloads_of_one_visitor_are_limited(monkeypatch):
    came = []
    monkeypatch.setattr(choose.files, "from_hub", lambda name, check: came.append(name) or 1 / 0)
    app = page_of("pages/5_Trained_model.py")
    for _ in range(DOWNLOADS + 1):
        app.text_input(key="model_hub").set_value("a/b")
        app.button(key="model_open").click().run()
    assert len(came) == DOWNLOADS and f"{DOWNLOADS} models" in told(app)


def test_nothing_is_downloaded_by_a_page_that_was_drawn_before(monkeypatch):
    came = []
    monkeypatch.setattr(choose.files, "from_hub", lambda name, check: came.append(name) or 1 / 0)
    app = page_of("pages/5_Trained_model.py")
    app.text_input(key="model_hub").set_value("a/b")
    monkeypatch.setenv("ABLATION_READ_ONLY", "1")
    app.button(key="model_open").click().run()
    assert not came and rights.REASON in told(app)
