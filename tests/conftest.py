"""For all tests: one torch thread, the same hypothesis examples in every run, and a browser on a server of the app."""

import os
import random
import time

import pytest
import torch
from hypothesis import settings

from benchmarks.serving import browser, chromium_path, server, settle
from tests import own_process

os.environ["ABLATION_READ_ONLY"] = "0"  # as on one's own machine; who tests another one, says so
os.environ.setdefault("ABLATION_NICE", "0")  # workers of a test do not stand back for the tests beside it

torch.set_num_threads(1)  # the tensors are tiny: a second thread costs more than it brings

# Derandomized: a test that fails, fails in every run. No deadline: no test here is about time.
settings.register_profile("lab", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("lab")


# At the address of a page Streamlit's browser side first looks for the server below it, and then beside it.
LOOKED_FOR = ("/_stcore/health", "/_stcore/host-config")
PATIENCE = 90_000  # milliseconds of a busy machine; what is there already is not waited for
MOST = 3  # cases of one test that are run quickly
LONG = ("browser", "slow", "thorough")  # marks of what is not


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help=f"the essentials: of every test at most {MOST} cases")
    parser.addoption("--rest", action="store_true", help="all that --quick leaves out")
    parser.addoption("--cases", type=int, help="of each test that is left at most so many cases, drawn by $DRAW")
    parser.addoption(
        "--until", type=float, help="seconds since 1970 after which no test begins; their order is drawn by $DRAW"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Every test runs quickly in a few of its cases, always the same ones; which, is drawn by its name."""
    if config.getoption("--quick") or config.getoption("--rest"):
        quick = drawn([item for item in items if not any(map(item.get_closest_marker, LONG))], MOST)
        quick |= {item for item in items if item.get_closest_marker("whole")}
        keep(items, quick if config.getoption("--quick") else set(items) - quick, config)
    yield  # marks are looked at
    if config.getoption("--cases") is not None:
        keep(items, drawn(items, config.getoption("--cases"), os.environ.get("DRAW", "")), config)
    if config.getoption("--until") is not None:  # or the last files would never have their turn on a slow machine
        files = sorted({item.path for item in items})
        random.Random(os.environ.get("DRAW", "")).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip("no time was left to begin it")


def drawn(items, most, draw=""):
    """At most so many cases of each test."""
    tests = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {
        case
        for name, cases in tests.items()
        for case in random.Random(name + draw).sample(cases, min(most, len(cases)))
    }


def keep(items, kept, config):
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_pyfunc_call(pyfuncitem):
    """See own_process.py."""
    if pyfuncitem.get_closest_marker("own_process") and not own_process.ALONE:
        own_process.take_outcome(pyfuncitem)
        return True


def console_errors(page) -> list[str]:
    """Return a list that takes the errors of a page's console, but those of looking for the server."""
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


@pytest.fixture(scope="session")
def chromium():
    if not chromium_path():
        if os.environ.get("CI"):
            pytest.fail("no Chromium found, and in CI that is a failure")
        pytest.skip("no Chromium found; install one, or set CHROMIUM to its path")
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    with browser() as made:
        yield made


@pytest.fixture(scope="session")
def address():
    with server() as (where, _):
        yield where


@pytest.fixture
def open_page(chromium, address):
    """A fresh visitor; fails on any error in the console that is the page's own, and on any pop-up."""
    contexts, errors = [], []

    def opened(path="/One_block", theme="light", width=1400, height=900, at=None, **more):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **more)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("dialog", lambda dialog: errors.append(f"pop-up: {dialog.message}"))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((at or address) + path)
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors
