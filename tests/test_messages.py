"""What a browser says is looked at before Streamlit acts on it; files that are taken away stay until they are fetched."""

import asyncio
import logging

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.runtime_util import get_max_widget_state_size_bytes

from ui.kit.guard import JOINER, literal
from ui.kit.server import downloads, hidden, messages
from ui.kit.server.messages import AT_ONCE, FILES, HASHES, WIDGETS, Messages


def said(**given) -> BackMsg:
    return BackMsg(**given)


def rerun(**widget) -> BackMsg:
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add(id="a", **widget)
    return message


def many_widgets(count: int) -> BackMsg:
    message = BackMsg()
    for n in range(count):
        message.rerun_script.widget_states.widgets.add(id=f"a{n}")
    return message


def hashes(count: int) -> BackMsg:
    message = BackMsg()
    message.rerun_script.cached_message_hashes.extend(["a"] * count)
    return message


def files(count: int) -> BackMsg:
    message = BackMsg()
    message.file_urls_request.file_names.extend([""] * count)
    return message


def operation(payload: str) -> BackMsg:
    message = BackMsg()
    getattr(message.backend_operation_request, payload).SetInParent()
    return message


PASSED = [
    said(stop_script=True), said(app_heartbeat=True), rerun(json_value='{"moved": [1]}'), rerun(string_value="{"), many_widgets(WIDGETS),
    hashes(HASHES), files(FILES), operation("deferred_file"), operation("dataframe_chunk"),
]  # fmt: skip
LEFT_OUT = [
    said(load_git_info=True), said(clear_cache=True), said(set_run_on_save=True), said(debug_shutdown_runtime=True),
    said(debug_disconnect_websocket=True), said(), rerun(json_value="not json"), rerun(json_value="[" * 100_000),
    rerun(json_trigger_value="not json"), many_widgets(WIDGETS + 1), hashes(HASHES + 1), files(FILES + 1), operation("install_skills"), operation("dismiss_skills_nudge"),
]  # fmt: skip


LIMIT = get_max_widget_state_size_bytes()


def through(*events: dict) -> tuple[list[dict], list[dict]]:
    """-> (what the app is told of these, what the browser is)"""
    waiting, told, sent = list(events), [], []

    async def app(scope, receive, send):
        while not told or told[-1]["type"] != "websocket.disconnect":
            told.append(await receive())

    async def receive():
        return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1001}

    async def send(message):
        sent.append(message)

    asyncio.run(Messages(app)({"type": "websocket"}, receive, send))
    return told[:-1], sent


def frame(message: BackMsg) -> dict:
    return {"type": "websocket.receive", "bytes": message.SerializeToString()}


def test_what_a_page_asks_for_is_passed_on_as_it_came():
    events = [{"type": "websocket.connect"}, *map(frame, PASSED)]
    assert through(*events) == (events, [])


@pytest.mark.parametrize("message", LEFT_OUT, ids=range(len(LEFT_OUT)))
def test_what_no_page_asks_for_is_left_out(message):
    heard = frame(PASSED[0])
    assert through(frame(message), heard) == ([heard], [])


@pytest.mark.parametrize(
    "event, code",
    [
        ({"type": "websocket.receive", "text": "hello"}, 1003),
        ({"type": "websocket.receive", "bytes": b"\xff\xff\xff"}, 1002),
        ({"type": "websocket.receive", "bytes": b"\xff" * (LIMIT + 1)}, 1009),
    ],
)
def test_what_is_no_message_closes_the_connection(event, code):
    assert through(event, frame(PASSED[0])) == ([], [{"type": "websocket.close", "code": code}])


def test_other_requests_are_not_touched():
    got = []

    async def app(*given):
        got.append(given)

    asyncio.run(Messages(app)({"type": "http"}, receive := object(), send := object()))
    assert got == [({"type": "http"}, receive, send)]


def test_who_says_too_much_is_read_more_slowly(monkeypatch):
    """By its own clock: what is waited for in all is what the rate asks for, and a burst is not held up."""
    now = [0.0]

    async def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(messages.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(messages.asyncio, "sleep", sleep)
    small = frame(said(stop_script=True))
    through(*[small] * (AT_ONCE - 1))
    assert now == [0.0]
    through(*[small] * (AT_ONCE + 400))
    assert 400 / messages.A_SECOND <= now[0] < 402 / messages.A_SECOND
    now[0] = 0.0
    large = rerun(string_value="a" * 20 * messages.BYTES)
    through(*[frame(large)] * 20)
    assert (20 * 21 - AT_ONCE) / messages.A_SECOND <= now[0] < 330 / messages.A_SECOND


@pytest.fixture
def kept(monkeypatch):
    """-> (the files of a server, a clock)"""
    now = [0.0]
    monkeypatch.setattr(downloads.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(MediaFileManager, "_get_inactive_file_ids", downloads._old)
    return MediaFileManager(MemoryMediaFileStorage("/media")), now


def made(server: MediaFileManager, data: bytes) -> str:
    """As MediaFileManager.execute_deferred makes it -> its number"""
    server._deferred_callables["asked"] = {
        "callable": lambda: data, "mimetype": "text/csv", "filename": "a.csv", "session_id": "a", "coordinates": "a",
    }  # fmt: skip
    return server.execute_deferred("asked").rpartition("/")[2].partition(".")[0]


def test_a_file_stays_a_minute_however_many_scripts_end(kept):
    server, now = kept
    file = made(server, b"numbers")
    for _ in range(50):
        now[0] += 1.1
        server.remove_orphaned_files()
    assert server.read_file(file).content == b"numbers"
    now[0] += 10
    server.remove_orphaned_files()
    server.remove_orphaned_files()
    assert server.read_file(file) is None


def test_of_many_files_the_latest_stay(kept, monkeypatch):
    server, now = kept
    monkeypatch.setenv("ABLATION_MAX_MB", "8")  # an eighth of it is what they may take
    names = []
    for n in range(5):
        names.append(made(server, bytes([n]) * (1 << 18)))
        now[0] += 0.1
        server.remove_orphaned_files()
    server.remove_orphaned_files()
    assert [server.read_file(each) is not None for each in names] == [False, True, True, True, True]


def test_a_large_file_stays_and_takes_no_room_from_others(kept, monkeypatch):
    server, now = kept
    monkeypatch.setenv("ABLATION_MAX_MB", "8")
    small = made(server, b"numbers")
    now[0] += 1
    large = made(server, bytes(3 << 20))
    for _ in range(3):
        server.remove_orphaned_files()
    assert server.read_file(small) and server.read_file(large)
    now[0] += 1
    later = made(server, b"more")
    for _ in range(3):
        server.remove_orphaned_files()
    assert server.read_file(small) and server.read_file(later) and not server.read_file(large)


def test_pictures_go_as_before(kept):
    server, _ = kept
    server._file_metadata["a"] = type("Of", (), {"kind": MediaFileKind.MEDIA})()
    assert server._get_inactive_file_ids() == {"a"}


def test_a_refusal_that_the_page_tells_does_not_fill_the_log():
    def line(error: Exception | None) -> bool:
        return downloads._worth_a_line(
            logging.makeLogRecord({"exc_info": (type(error), error, None) if error else None})
        )

    wrapped = RuntimeError("outer")
    wrapped.__cause__ = downloads.TooMany("3 files are being made")
    assert not line(wrapped) and not line(wrapped.__cause__) and line(RuntimeError("outer")) and line(None)


@pytest.mark.parametrize("text", ["https://evil.test/a", "see www.evil.test", "WWW.evil.test", "me@evil.test", "mailto:me@evil.test"])  # fmt: skip
def test_an_address_that_somebody_typed_is_no_link(text):
    """Whether GitHub's Markdown makes it one is tried in a browser, tests/test_addresses_browser.py."""
    shown = literal(text)
    assert JOINER in shown and shown.replace(JOINER, "").replace("\\", "") == text


def test_texts_without_an_address_are_shown_as_they_are():
    assert JOINER not in literal("a wwwide b: c // d, e.f")


def test_no_browser_is_told_where_the_app_lies(monkeypatch):
    message = ForwardMsg()
    message.new_session.main_script_path = "/home/somebody/secret/app.py"
    message.new_session.name = "app"
    monkeypatch.setattr(hidden, "_begun", lambda session, *given, **named: message)
    told = hidden._without_folder(None, "hash", run_descriptor=None)
    assert told.new_session.main_script_path == told.new_session.name + ".py" == "app.py"
