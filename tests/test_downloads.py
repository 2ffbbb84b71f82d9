"""Download files: written on request, tied to a session, kept when other scripts end."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.serving import server, settle
from ui.kit.server import downloads


@pytest.fixture
def session(monkeypatch):
    """Return a new session, as a page sees it."""
    state = {}
    monkeypatch.setattr(st, "session_state", state)
    return state


@pytest.fixture
def client():
    with TestClient(Starlette(routes=[downloads.downloads_route("")])) as client:
        yield client


def test_files_are_written_on_each_request(session, client):
    written = []
    address = downloads.offer(
        "a b.csv", lambda: written.append(1) or f"{len(written)}\n", "text/csv"
    )
    assert written == [] and address.endswith("/a%20b.csv")
    answers = [client.get(address) for _ in range(2)]
    assert [answer.text for answer in answers] == ["1\n", "2\n"]
    headers = answers[0].headers
    assert (
        headers["Content-Type"].startswith("text/csv")
        and headers["Content-Disposition"] == "attachment"
    )
    assert headers["Cache-Control"] == "no-store"


def test_offers_end_when_page_is_redrawn(session, client):
    first, second = (
        downloads.offer(name, lambda: b"data", "text/plain") for name in ("one", "two")
    )
    downloads.begin_run()
    repeated = downloads.offer("one", lambda: b"newer", "text/plain")
    assert repeated == first and client.get(second).content == b"data"  # a click may be on its way
    downloads.end_run()
    assert client.get(first).content == b"newer" and client.get(second).status_code == 404


def test_session_takes_its_offers_along(session, client):
    address = downloads.offer("one", lambda: b"data", "text/plain")
    assert (
        client.get(address).status_code == 200
        and client.get("/downloads/guessed/one").status_code == 404
    )
    session.clear()
    answer = client.get(address)
    assert answer.status_code == 404 and answer.text == downloads.GONE


def test_failed_file_is_reported_and_logged(session, client, caplog):
    address = downloads.offer("one", lambda: 1 / 0, "text/plain")
    answer = client.get(address)
    assert (
        answer.status_code == 500 and answer.text == downloads.FAILED and "division" in caplog.text
    )


def test_files_are_written_a_few_at_a_time(session, client):
    running = [0]
    limit = [0]
    lock = threading.Lock()

    def write() -> bytes:
        with lock:
            running[0] += 1
            limit[0] = max(limit[0], running[0])
        threading.Event().wait(0.05)
        with lock:
            running[0] -= 1
        return b""

    addresses = [downloads.offer(f"{n}", write, "text/plain") for n in range(3 * downloads.AT_ONCE)]
    with ThreadPoolExecutor(len(addresses)) as pool:
        assert {answer.status_code for answer in pool.map(client.get, addresses)} == {200}
    assert 1 < limit[0] <= downloads.AT_ONCE


def downloaded(page, link, others=()) -> tuple[str, bytes]:
    """Follow a link, while other users press a key. Return the file's name and content."""
    with page.expect_download() as got:
        link.click()
        for other in others:
            other.keyboard.press("ArrowRight")
    with open(got.value.path(), "rb") as file:
        return got.value.suggested_filename, file.read()


@pytest.mark.browser
def test_files_arrive_during_other_work(open_page):
    page = open_page("/One_block?weights=random")
    page.locator(".st-key-take_away button").click()
    table = page.get_by_role("link", name="Attention maps")
    expect(table).to_be_visible()
    others = [open_page(f"/One_block?weights=random&d_model={width}") for width in (48, 72, 96)]
    for other in others:
        other.get_by_role("slider", name="Random seed").first.focus()
    for _ in range(6):
        name, content = downloaded(page, table, others)
        assert name == "attention_maps_of_4_heads_over_12_tokens.csv" and content.startswith(
            b"\xef\xbb\xbfpanel,"
        )
    for other in others:
        other.wait_for_url("**seed=6**")  # they were at work


@pytest.mark.browser
def test_files_arrive_after_restart_below_a_path(open_page):
    with server(below="/lab") as (address, process):
        page = open_page("/One_block?weights=random", server_address=address)
        port = int(address.rpartition(":")[2].partition("/")[0])
        page.locator(".st-key-take_away button").click()
        link = page.get_by_role("link", name="Python script")
        assert b"import" in downloaded(page, link)[1]
        before = link.get_attribute("href")
        process.terminate()
        process.wait()
        with server(below="/lab", port=port):
            page.wait_for_function(
                "before => document.querySelector('.ablation-download')?.getAttribute('href') !=="
                " before",
                arg=before,
            )
            if not link.is_visible():  # the button may have closed
                page.locator(".st-key-take_away button").click()
            settle(page)
            assert b"import" in downloaded(page, link)[1]
