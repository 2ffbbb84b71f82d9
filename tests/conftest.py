"""Shared fixtures: one torch thread, fixed hypothesis examples, a browser and a server."""

import os

import pytest
import torch
from hypothesis import settings

from benchmarks.serving import browser, chromium_path, server, settle
from tests import own_process

os.environ["ABLATION_READ_ONLY"] = "0"  # as on one's own machine; who tests another one, says so
# Workers of a test do not yield to other tests that run at the same time.
os.environ.setdefault("ABLATION_NICE", "0")

torch.set_num_threads(1)  # the tensors are tiny: a second thread costs more than it brings

# Derandomized: a test that fails, fails in every run. No deadline: no test here is about time.
settings.register_profile("lab", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("lab")


# At a page's address Streamlit's browser side looks for the server below it first, and then next
# to it.
LOOKED_FOR = ("/_stcore/health", "/_stcore/host-config")
PATIENCE = 90_000  # milliseconds of a busy machine; what is there already is not waited for


def pytest_pyfunc_call(pyfuncitem):
    """See own_process.py."""
    if pyfuncitem.get_closest_marker("own_process") and not own_process.ALONE:
        own_process.take_outcome(pyfuncitem)
        return True


def console_errors(page) -> list[str]:
    """Return a list that collects a page's console errors, without those of awaiting a server."""
    errors = []
    page.on(
        "console",
        lambda message: (
            errors.append(message.text)
            if message.type == "error" and not message.location["url"].endswith(LOOKED_FOR)
            else None
        ),
    )
    return errors


@pytest.fixture
def store(tmp_path):
    """Yield an empty store of studies in a file."""
    from core.study.database.store import Store

    empty_store = Store(str(tmp_path / "studies.sqlite"))
    yield empty_store
    empty_store.close()


@pytest.fixture
def short_chunks(monkeypatch):
    """Use chunks of a few steps, and store a result at every look."""
    monkeypatch.setattr("core.workers.job.CHUNK", 0.05)
    monkeypatch.setattr("core.study.runner.BEAT", 0.1)


@pytest.fixture(scope="session")
def chromium():
    if not chromium_path():
        if os.environ.get("CI"):
            pytest.fail("no Chromium found, and in CI that is a failure")
        pytest.skip("no Chromium found; install one, or set CHROMIUM to its path")
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    with browser() as started:
        yield started


@pytest.fixture(scope="session")
def address():
    with server() as (where, _):
        yield where


@pytest.fixture
def open_page(chromium, address):
    """Return a function that opens a page in a new session.

    The test fails on any console error of the page itself and on any pop-up.
    """
    contexts = []
    errors = []

    def opened(
        path="/One_block", theme="light", width=1400, height=900, server_address=None, **extra
    ):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, **extra
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("dialog", lambda dialog: errors.append(f"pop-up: {dialog.message}"))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((server_address or address) + path)
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors
