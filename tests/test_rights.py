"""Permissions: shared data changes only with the server's key or on an open server."""

import pytest

from core.settings import environment
from tests.databases import postgresql  # noqa: F401  (a fixture)
from tests.pages import link, words
from tests.studies import fill, study
from tests.test_page import fine, told
from tests.test_studies_page import (  # noqa: F401
    button,
    dialog,
    forget,
    good,
    labels,
    opened,
    press,
    score,
    store,
    texts,
    url,
)
from ui.kit import rights

CHANGES = {"Stop", "Resume", "Delete study", "Start"}
SECRET = "a long word, für alle"


@pytest.fixture
def public(monkeypatch, url):  # noqa: F811
    monkeypatch.delenv("ABLATION_READ_ONLY")
    monkeypatch.setenv(rights.VARIABLE, SECRET)


@pytest.mark.parametrize("value", [None, "", "1", "yes", "no", "off"])
def test_server_is_read_only_by_default(monkeypatch, value):
    monkeypatch.delenv("ABLATION_READ_ONLY", raising=False)
    if value is not None:
        monkeypatch.setenv("ABLATION_READ_ONLY", value)
    assert environment.is_read_only()
    monkeypatch.setenv("ABLATION_READ_ONLY", "0")
    assert not environment.is_read_only()


def test_read_only_user_can_look_but_not_change(store, public):  # noqa: F811
    fill(store, study(), lambda run: "queued" if run.seed else score(run))
    app = good(opened())
    assert not CHANGES & set(labels(app)) and button(app, "New study").disabled
    assert button(app, "New study").help == rights.REASON and "Matrix" in words(app, "shown")


@pytest.mark.parametrize("address", [{"key": "wrong"}, {"key": ""}, {"key": SECRET[:-1]}])
def test_wrong_key_is_reported_and_opens_nothing(store, public, address):  # noqa: F811
    fill(store, study(), score)
    app = fine(opened(**address))
    assert rights.WRONG[:30] in told(app) and not CHANGES & set(labels(app))
    assert "key" not in link(app)


def test_key_grants_rights_and_leaves_link(store, public):  # noqa: F811
    fill(store, study(), score)
    app = good(opened(key=SECRET))
    assert "Delete study" in labels(app) and "key" not in link(app) and SECRET not in texts(app)
    assert not any("Unknown setting" in element.value for element in [*app.warning, *app.info])
    app = good(app.run())
    assert "Delete study" in labels(app) and "key" not in link(app)
    good(press(app, "Delete study"))
    assert store.studies() == []
