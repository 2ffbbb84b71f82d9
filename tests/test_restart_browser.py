"""Server restart: open pages reconnect by themselves and accept input at once."""

import contextlib

import pytest
from playwright.sync_api import expect

from benchmarks.serving import free_port, server, settle
from tests.test_quick_hands_browser import params, press

pytestmark = pytest.mark.browser
CONNECTED = "[data-testid=stApp][data-test-connection-state=CONNECTED]"


@pytest.fixture
def restarted(open_page, tmp_path):
    """Yield a function that opens a page and one that restarts the server and waits for it."""
    with contextlib.ExitStack() as running:
        port = free_port()

        def start():
            return running.enter_context(
                server(port=port, ABLATION_DATABASE_URL=f"sqlite:///{tmp_path}/class.sqlite")
            )

        address, _ = start()

        def again(page):
            running.pop_all().close()
            expect(page.locator(CONNECTED)).to_have_count(0)
            start()
            expect(page.locator(CONNECTED)).to_have_count(1, timeout=60_000)
            page.wait_for_timeout(500)
            settle(page)

        yield lambda path, **how: open_page(path, server_address=address, **how), again


def a_key(page):
    press(page, "Width (d_model)", "ArrowRight", 1, 60)


def a_text(page):
    page.get_by_role("textbox", name="Sentence").fill("a b c")
    page.get_by_role("textbox", name="Sentence").press("Enter")


def a_part(page):
    page.get_by_text("Compare with", exact=True).click()
    page.get_by_role("checkbox", name="1 head", exact=True).press("Space")


@pytest.mark.parametrize(
    "path, do, expected",
    [
        ("/One_block?weights=random", a_key, {"d_model": "96"}),
        ("/One_block?weights=random", a_text, {"text": "a b c"}),
        ("/One_block?weights=random", a_part, {"variants": "n_heads-1"}),
        ("/Training", a_key, {"d_model": "64"}),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_first_change_after_restart_counts(restarted, path, do, expected):
    opened, repeated = restarted
    page = opened(path)
    press(page, "Width (d_model)", "ArrowRight", 3, 60)
    before = params(page)
    repeated(page)
    assert params(page) == before
    do(page)
    assert params(page) == before | expected
