"""State that a session keeps from page to page."""

import pytest

from core.model.config import Config
from ui.kit import store
from ui.kit.store import Session


@pytest.fixture
def session(monkeypatch):
    for page in ("block", "depth"):
        monkeypatch.setitem(store.kinds_of, page, (Config,))
    return Session()


def test_size_from_another_page_is_named_once(session):
    session.open("block", {}, is_back=False)
    session.change({"d_model": "96"})
    assert session.set_elsewhere == []
    for page, brought in [("depth", ["d_model"]), ("block", []), ("depth", [])]:
        session.open(page, session.link(page), is_back=False)
        assert session.set_elsewhere == brought


def test_values_from_link_are_not_from_another_page(session):
    session.open("block", {"d_model": "96"}, is_back=False)
    assert session.set_elsewhere == []
    session.open("depth", {"d_model": "128", "n_heads": "8"}, is_back=False)
    assert session.set_elsewhere == []
