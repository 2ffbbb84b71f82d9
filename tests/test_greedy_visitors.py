"""What one visitor can make a server keep, or throw away: no more than its share, and nothing that is all visitors'."""

import asyncio
import re
import socket
import threading
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import requests
import websockets
from starlette.requests import Request
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from benchmarks.serving import server
from core.checkpoints import CheckpointError
from core.settings import memory
from core.settings.cache import once
from core.teaching.classroom import ClassError
from tests.test_page import fine, opened
from ui.kit import jobs
from ui.kit.jobs import RUNNING
from ui.kit.server import uploads
from ui.kit.server.uploads import EACH, UploadLimit
from ui.kit.session.visitor import LINKS, VISITOR
from ui.lessons.classroom import server as classes
from ui.trained import model_list

MB = 1 << 20
ROOT = Path(__file__).parent.parent


def test_a_session_remembers_of_a_long_link_no_more_than_of_a_short_one():
    app = fine(opened())
    for number in range(3):
        app.query_params["z"] = f"{number}" * 400_000
        fine(app.run())
    held = app.session_state[VISITOR]
    assert all(isinstance(each, int) for each in held.links) and held.links.maxlen == LINKS


def test_what_is_made_once_is_made_once_by_whoever_comes_first():
    made = []
    thing = once(lambda *given: made.append(given) or object())
    assert thing() is thing() and thing(1) is thing(1) and thing() is not thing(1)
    assert made == [(), (1,)]


def ask(limit, *given, **named) -> int:
    """-> the status of an upload of so many bytes"""
    return answer(limit, *given, **named)[0]


def answer(limit, session="one", length: int | None = 1, path=None, more=(), receive=None) -> tuple[int, str]:
    """-> (the status of an upload of so many bytes, what is said of it)"""
    sent = []

    async def send(message):
        sent.append(message)

    headers = [] if length is None else [(b"content-length", str(length).encode())]
    headers += more
    scope = {
        "type": "http",
        "method": "PUT",
        "path": path or f"/_stcore/upload_file/{session}/file",
        "headers": headers,
    }
    asyncio.run(limit(scope, receive, send))
    status = next((each["status"] for each in sent if each["type"] == "http.response.start"), 204)
    return status, b"".join(each.get("body", b"") for each in sent).decode()


@pytest.fixture
def stored(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "10")
    there = {}
    monkeypatch.setattr(uploads, "_stored", lambda: there)
    return there


async def taken(scope, receive, send):
    """The server behind the limit."""


async def reading(scope, receive, send):
    """The same, which reads all of it."""
    await Request(scope, receive).body()


def pieces(megabytes: int, *waits):
    """What comes of an upload, a megabyte at a time; before some of them something is awaited."""
    left = iter(range(megabytes))

    async def receive():
        number = next(left)
        for wait in waits:
            await wait(number)
        return {"type": "http.request", "body": b"0" * MB, "more_body": number + 1 < megabytes}

    return receive


def test_who_breaks_an_upload_off_leaves_no_traceback(stored):
    async def receive():
        return {"type": "http.disconnect"}

    limit = UploadLimit(reading)
    assert ask(limit, length=5 * MB, receive=receive) == 408 and not limit._announced and not limit._arrived


def test_what_is_only_announced_takes_no_room_of_others(stored, monkeypatch):
    """A few lines said that 4 GB would come: nobody could upload any more, and who was away lost his session."""
    monkeypatch.setattr(uploads.left, "sessions", list)
    limit, ended = UploadLimit(reading), []
    monkeypatch.setattr(uploads, "_let_go", lambda: ended.append(1))

    async def silent():
        await asyncio.sleep(3600)

    async def main():
        scope = {"type": "http", "method": "PUT", "headers": [(b"content-length", b"%d" % (9 * MB))]}
        waiting = [
            asyncio.create_task(limit(scope | {"path": f"/_stcore/upload_file/{each}/file"}, silent, None))
            for each in range(8 * uploads.VISITORS)
        ]
        await asyncio.sleep(0.05)
        assert sum(limit._announced.values()) > 8 * uploads.VISITORS * 9 * MB
        sent = []

        async def send(message):
            sent.append(message)

        await limit(scope | {"path": "/_stcore/upload_file/newcomer/file"}, pieces(9), send)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return sent

    assert asyncio.run(main()) == [] and not ended and not limit._announced and not limit._arrived


def test_what_comes_is_broken_off_once_others_have_taken_the_room(stored, monkeypatch):
    monkeypatch.setattr(uploads.left, "sessions", list)
    limit = UploadLimit(reading)

    async def others(number):
        assert limit._arrived == number * MB
        if number == 3:
            stored.update({f"{each}": 10 * MB for each in range(uploads.VISITORS)})

    assert ask(limit, length=9 * MB, receive=pieces(9, others)) == 413
    assert not limit._announced and not limit._arrived
    stored.clear()
    assert ask(limit, length=9 * MB, receive=pieces(9)) == 204


def test_one_visitor_may_have_uploaded_so_much(stored):
    limit = UploadLimit(taken)
    assert ask(limit, length=10 * MB - EACH) == 204
    assert ask(limit, length=10 * MB + 1 - EACH) == 413
    stored["one"] = 9 * MB
    assert ask(limit, length=MB - EACH) == 204
    assert ask(limit, length=MB + 1 - EACH) == 413
    assert ask(limit, "two", length=9 * MB) == 204


def test_all_visitors_together_too(stored):
    stored |= {f"{each}": 10 * MB for each in range(uploads.VISITORS)}
    assert ask(UploadLimit(taken), "another", length=1) == 413


def test_no_more_than_a_quarter_of_the_machine_s_memory_and_always_what_one_may(stored, monkeypatch):
    monkeypatch.setattr(uploads, "machine_mb", lambda: 100)
    stored |= {"one": 10 * MB, "two": 10 * MB}
    assert ask(UploadLimit(taken), "another", length=5 * MB - EACH) == 204
    assert ask(UploadLimit(taken), "another", length=5 * MB + 1 - EACH) == 413
    monkeypatch.setattr(uploads, "machine_mb", lambda: 8)
    stored.clear()
    assert ask(UploadLimit(taken), length=10 * MB - EACH) == 204


def test_what_a_container_may_use_counts_as_the_machine_s_memory(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_limit_files", lambda: [limit, tmp_path / "missing"])
    whole = psutil.virtual_memory().total >> 20
    assert memory.machine_mb() == whole
    limit.write_text("max\n")
    assert memory.machine_mb() == whole
    limit.write_text(f"{50 * MB}\n")
    assert memory.machine_mb() == 50


def test_who_has_left_makes_room_where_there_is_none(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "10")
    monkeypatch.setattr(uploads, "machine_mb", lambda: 80)
    files = MemoryUploadedFileManager("/_stcore/upload_file")
    runtime = SimpleNamespace(uploaded_file_mgr=files)
    monkeypatch.setattr(uploads, "exists", lambda: True)
    monkeypatch.setattr(uploads, "get_instance", lambda: runtime)
    monkeypatch.setattr(uploads.left, "sessions", lambda: ["gone", "gone without a file"])
    monkeypatch.setattr(uploads.left, "end", files.remove_session_files)
    limit, data = UploadLimit(taken), b"0" * (9 * MB)
    files.add_file("gone", UploadedFileRec("file", "x.safetensors", "", data))
    assert ask(limit, "here", length=MB) == 204 and "gone" in files.file_storage  # there is room for both
    files.add_file("here", UploadedFileRec("file", "x.safetensors", "", data))
    assert (
        ask(limit, "another", length=5 * MB) == 204 and "gone" in files.file_storage
    )  # it was announced, nothing came
    assert ask(UploadLimit(reading), "another", length=5 * MB, receive=pieces(5)) == 204
    assert list(files.file_storage) == ["here"]
    assert ask(limit, "yet another", length=MB) == 204
    files.add_file("another", UploadedFileRec("file", "x.safetensors", "", data))
    assert ask(limit, "yet another", length=5 * MB) == 413 and list(files.file_storage) == ["here", "another"]


def test_an_upload_that_is_never_sent_is_over_after_a_while(stored, monkeypatch):
    monkeypatch.setattr(uploads, "SILENCE", 0.05)
    heard = []

    async def reads(scope, receive, send):
        while not heard or heard[-1]["type"] != "http.disconnect":
            heard.append(await receive())

    pieces = iter([{"type": "http.request", "body": b"begun", "more_body": True}])

    async def receive():
        piece = next(pieces, None)
        await asyncio.sleep(0 if piece else 3600)
        return piece

    limit = UploadLimit(reads)
    assert ask(limit, length=6 * MB, receive=receive) == 204
    assert (
        [each["type"] for each in heard] == ["http.request", "http.disconnect"]
        and not limit._announced
        and not limit._arrived
    )


def test_an_upload_that_comes_a_byte_at_a_time_is_over_after_a_while(stored, monkeypatch):
    monkeypatch.setattr(uploads, "SILENCE", 0.2)
    monkeypatch.setattr(uploads, "SLOWEST", 30 * MB)
    heard = []

    async def reads(scope, receive, send):
        while not heard or heard[-1]["type"] != "http.disconnect":
            heard.append(await receive())

    async def receive():
        await asyncio.sleep(0.05)  # never silent for long
        return {"type": "http.request", "body": b"x", "more_body": True}

    limit = UploadLimit(reads)
    assert ask(limit, length=6 * MB, receive=receive) == 204
    assert 2 <= len(heard) <= 10 and not limit._announced and not limit._arrived  # 0.2 s, and 0.2 s for 6 MB


@pytest.mark.parametrize("visitor, file, said", [(10, 4, 4), (10, 10, 10), (10, 200, 10)])
def test_what_is_said_of_an_upload_s_size_is_what_is_allowed(stored, monkeypatch, visitor, file, said):
    """By whichever is smaller: what one visitor may have, or Streamlit's own limit of a file, of which it names no figure."""
    told = config.get_option
    monkeypatch.setattr(config, "get_option", lambda name: file if name == "server.maxUploadSize" else told(name))
    uploader = fine(opened("pages/5_Trained_model.py")).get("file_uploader")[0].proto
    assert uploader.max_upload_size_mb == said
    assert answer(UploadLimit(taken), length=said * MB - uploads.EACH) == (204, "")
    status, words = answer(UploadLimit(taken), length=said * MB + 1)
    assert status == 413 and words == uploads.allowed() and f"{said} MB" in words
    assert ("server.maxUploadSize" in words) == (file < visitor)
    with pytest.raises(memory.MemoryLimit) as refused:
        model_list._check_size(visitor * MB + 1)
    assert str(refused.value).endswith(words)


def test_a_proxy_as_the_docs_have_it_takes_as_large_files_as_the_server():
    line = re.search(r"client_max_body_size (\d+)m;", (ROOT / "docs/nginx.conf").read_text())
    assert int(line[1]) == config.get_option("server.maxUploadSize")


def test_an_upload_that_does_not_say_how_large_it_is_is_refused(stored):
    assert ask(UploadLimit(taken), length=None) == 413
    assert ask(UploadLimit(taken), length=None, path="/_stcore/health") == 204


def test_one_that_comes_in_chunks_may_be_larger_than_it_says(stored):
    assert ask(UploadLimit(taken), length=1, more=[(b"transfer-encoding", b"chunked")]) == 413


def test_empty_files_count(stored):
    stored["one"] = 10 * MB
    assert ask(UploadLimit(taken), length=0) == 413


def test_what_is_under_way_counts(stored):
    during = []

    async def slow(scope, receive, send):
        if not during:
            during.append(True)
            answers = []

            async def answer(message):
                answers.append(message)

            await limit(scope, receive, answer)
            during.append(answers[0]["status"])

    limit = UploadLimit(slow)
    assert ask(limit, length=6 * MB) == 204 and during == [True, 413]
    assert ask(limit, length=6 * MB) == 204  # and no longer when it is over


async def enter(address: str):
    """A session, as a browser begins one -> (its websocket, its id, cookies for uploads)"""
    cookies = requests.get(f"{address}/_stcore/health", timeout=60).cookies
    socket = await websockets.connect(
        address.replace("http", "ws") + "/_stcore/stream", subprotocols=["streamlit"], max_size=None
    )
    message = BackMsg()
    message.rerun_script.query_string = ""
    await socket.send(message.SerializeToString())
    while True:
        said = ForwardMsg()
        said.ParseFromString(await asyncio.wait_for(socket.recv(), 60))
        if said.WhichOneof("type") == "new_session":
            return SimpleNamespace(socket=socket, id=said.new_session.initialize.session_id, cookies=cookies)


def upload(address: str, visitor, megabytes: int) -> int:
    place = f"{address}/_stcore/upload_file/{visitor.id}/{uuid.uuid4()}"
    file = {"file": ("model.safetensors", b"0" * (megabytes * MB))}
    token = {"X-Xsrftoken": visitor.cookies["_streamlit_xsrf"]}
    return requests.put(place, files=file, headers=token, cookies=dict(visitor.cookies), timeout=60).status_code


@pytest.mark.thorough
def test_a_server_takes_no_more_than_that(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "20")

    async def visit(address):
        visitor = await enter(address)
        try:
            return [await asyncio.to_thread(upload, address, visitor, 8) for _ in range(4)]
        finally:
            await visitor.socket.close()

    with server() as (address, _):
        assert asyncio.run(visit(address)) == [204, 204, 413, 413]
        assert (
            requests.get(f"{address}/_stcore/metrics", timeout=60).status_code == 404
        )  # what Streamlit counts of visitors


@pytest.mark.thorough
def test_a_browser_that_has_caches_emptied_starts_no_further_workers(monkeypatch):
    """Anybody can send the message of the entry "Clear cache" in Streamlit's menu."""
    monkeypatch.setenv("ABLATION_WORKERS", "1")

    async def visit(address, process):
        visitor = await enter(address)
        try:
            await train(visitor)
            before = await workers_of(process, 1)
            for _ in range(3):
                message = BackMsg()
                message.clear_cache = True
                await visitor.socket.send(message.SerializeToString())
                await train(visitor)
                await asyncio.sleep(3)
            return before, await workers_of(process, 1)
        finally:
            await visitor.socket.close()

    with server() as (address, process):
        before, after = asyncio.run(visit(address, process))
    assert before == after


async def train(visitor):
    """Start a training: the workers start with the first one."""
    message = BackMsg()
    message.rerun_script.query_string = "begin=on&steps=50"
    message.rerun_script.page_name = "Training"
    await visitor.socket.send(message.SerializeToString())


async def workers_of(process, least: int) -> set[int]:
    """The processes that a server has started, once there are so many."""
    while True:
        children = psutil.Process(process.pid).children(recursive=True)
        found = {each.pid for each in children if "spawn_main" in " ".join(each.cmdline())}
        if len(found) >= least:
            return found
        await asyncio.sleep(0.2)


def test_trainings_of_all_visitors_together_keep_no_more_than_their_share(monkeypatch):
    """Each of them may be begun by itself; the weights of stopped ones stay with their visitors, and count."""
    monkeypatch.setenv("ABLATION_MAX_MB", "140")
    monkeypatch.setattr(jobs, "machine_mb", lambda: 100)
    large = dict(d_model="256", d_ff="1024", n_heads="1", n_layers="2", task="copy", steps="500", batch="1", seeds="4")
    apps = [fine(opened("pages/3_Training.py", begin="on", **large)) for _ in range(2)]
    try:
        assert RUNNING in apps[0].session_state[VISITOR].kept
        apps[0].session_state[VISITOR].kept[RUNNING].job.stop()
        last = apps[1]
        assert RUNNING not in last.session_state[VISITOR].kept
        assert any("all together may keep 140 MB here" in each.value for each in (*last.error, *last.warning))
    finally:
        for app in apps:
            if RUNNING in app.session_state[VISITOR].kept:
                app.session_state[VISITOR].kept[RUNNING].job.stop()
                jobs._begun.discard(app.session_state[VISITOR].kept[RUNNING].job)


def test_what_a_field_may_hold_is_small():
    """Streamlit's own limit, of 25 MB, is one that a session would keep."""
    assert config.get_option("server.maxWidgetStateSize") == 1


def test_uploads_are_opened_one_at_a_time(monkeypatch):
    """One can take all the memory that one visitor may have: of twenty visitors, not at once."""
    at_work, most = [], []

    def open_files(sent, check):
        at_work.append(sent)
        most.append(len(at_work))
        time.sleep(0.05)
        at_work.pop()
        raise CheckpointError("no model")

    file = SimpleNamespace(name="model.safetensors", size=1, getvalue=lambda: b"")
    monkeypatch.setattr(model_list, "st", SimpleNamespace(session_state={"model_files_0": [file]}))
    monkeypatch.setattr(model_list.files, "from_upload", open_files)
    visitors = [threading.Thread(target=model_list._brought) for _ in range(5)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert most == [1] * 5


def test_from_one_public_address_so_many_classes_are_started_within_an_hour(monkeypatch):
    """A program could else take all that a server may have. Where many have one address, within a network, it says nothing."""
    now, where = [0.0], SimpleNamespace(ip_address="8.8.8.8")
    monkeypatch.setattr(classes, "st", SimpleNamespace(context=where))
    monkeypatch.setattr(classes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(classes, "classroom", lambda: SimpleNamespace(start=list))
    monkeypatch.setattr(classes, "_begun", {})
    for n in range(classes.STARTS):
        now[0] = float(n)
        assert classes.start(["q"]) == ["q"]
    with pytest.raises(ClassError, match="20 classes were started within an hour"):
        classes.start([])
    for n in range(classes.STARTS):  # of IPv6 one visitor has a whole network
        where.ip_address = f"2001:4860:4860:1::{n + 1:x}"
        assert classes.start(["q"]) == ["q"]
    for same in ("2001:4860:4860:1:ffff::1", "2001:4860:4860:1::1%eth9", "::ffff:8.8.8.8"):
        where.ip_address = same
        with pytest.raises(ClassError):
            classes.start([])
    for other in ("2001:4860:4860::8888", None, "127.0.0.1", "10.1.2.3", "a proxy"):
        where.ip_address = other
        for _ in range(1 if other and other.startswith("2001") else 50):
            assert classes.start(["q"]) == ["q"]
    where.ip_address = "8.8.8.8"
    now[0] = 3599.0
    with pytest.raises(ClassError):
        classes.start([])
    now[0] = 3600.0
    assert classes.start(["q"]) == ["q"]
    with pytest.raises(ClassError):
        classes.start([])
    now[0] = 9999.0
    assert classes.start(["q"]) == ["q"] and list(classes._begun) == ["8.8.8.8"]


@pytest.mark.thorough
def test_who_comes_from_elsewhere_is_refused_and_nobody_outside_is_asked_for_the_own_address():
    """Streamlit asks, in the thread that serves all, for up to two seconds each time."""
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.settimeout(0.01)
        proxy = f"http://127.0.0.1:{outside.getsockname()[1]}"
        with server(http_proxy=proxy, https_proxy=proxy, no_proxy="127.0.0.1") as (address, _):
            place = address.replace("http", "ws", 1) + "/_stcore/stream"

            async def come(origin):
                async with websockets.connect(place, origin=origin, subprotocols=["streamlit"], proxy=None):
                    return "in"

            for _ in range(3):
                with pytest.raises(websockets.InvalidStatus, match="403"):
                    asyncio.run(come("http://evil.test"))
            assert asyncio.run(come(address)) == asyncio.run(come(None)) == "in"
        with pytest.raises(TimeoutError):
            outside.accept()
