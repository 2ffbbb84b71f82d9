"""Files that are taken away: they are there when the browser asks for them, however many scripts have ended since."""

import asyncio
import logging

import pytest
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.runtime.backend_operation_handler import DeferredFileHandler
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from ui.kit.server import downloads


@pytest.fixture
def kept(monkeypatch):
    """-> (the files of a server, a clock)"""
    now = [0.0]
    monkeypatch.setattr(downloads.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(MediaFileManager, "_get_inactive_file_ids", downloads._old)
    monkeypatch.setattr(MediaFileManager, "_remove_orphaned_deferred_callables", downloads._forget)
    monkeypatch.setattr("streamlit.runtime.media_file_manager._get_session_id", lambda: "somebody")
    return MediaFileManager(MemoryMediaFileStorage("/media")), now


def button(server: MediaFileManager, name: str, make, place: str = "0") -> str:
    """As a download button is drawn -> what a browser asks for when it is pressed"""
    return server.add_deferred(make, "text/csv", place, "a.csv", element_id=name)


def made(server: MediaFileManager, data: bytes) -> str:
    """-> the number of a file that was asked for"""
    asked = button(server, "a", lambda: data)
    return server.execute_deferred(asked).rpartition("/")[2].partition(".")[0]


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


def drawn_anew(server: MediaFileManager, session="somebody"):
    """As a script begins, and as one ends, anybody's."""
    server.clear_session_refs(session)
    server.remove_orphaned_files()


def test_who_types_and_then_presses_gets_the_file(kept):
    server, now = kept
    asked = button(server, "report", lambda: b"the last words")
    drawn_anew(server)
    button(server, "report", lambda: b"the last words")
    server.remove_orphaned_files()
    now[0] += 5
    assert server.execute_deferred(asked)
    now[0] += 5.1
    server.remove_orphaned_files()
    with pytest.raises(MediaFileStorageError, match="not found"):
        server.execute_deferred(asked)


def test_what_is_drawn_is_never_forgotten_and_of_what_was_the_last_few(kept):
    server, now = kept
    asked = []
    for _ in range(9):
        asked.append(button(server, "report", lambda: b"a"))
        if len(asked) < 9:
            drawn_anew(server)
    other = button(server, "table", lambda: b"b", place="1")
    now[0] += 9
    server.remove_orphaned_files()
    there = downloads.EARLIER + 1
    assert [each in server._deferred_callables for each in asked] == [False] * (9 - there) + [True] * there
    now[0] += 1000
    for _ in range(3):
        server.remove_orphaned_files()
    assert list(server._deferred_callables) == [asked[-1], other]
    server.clear_session_refs("somebody")  # who has gone
    server.remove_orphaned_files()
    now[0] += downloads.ON_ITS_WAY
    server.remove_orphaned_files()
    assert not server._deferred_callables and not server._deferred_ids_by_session


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


def test_what_was_never_drawn_or_is_forgotten_is_no_line_in_the_log_and_what_fails_is(kept, monkeypatch, caplog):
    """As Streamlit answers it: anybody may ask for anything, as often as he likes."""
    server, now = kept
    log = logging.getLogger(downloads.LOGGER)
    monkeypatch.setattr(log, "filters", [])  # as they were, afterwards
    for name in ("_get_inactive_file_ids", "_remove_orphaned_deferred_callables"):  # the same
        monkeypatch.setattr(MediaFileManager, name, getattr(MediaFileManager, name))
    downloads.keep_a_while()
    handler = DeferredFileHandler(lambda: server)

    def ask(file: str):
        request = BackendOperationRequest(request_id="a")
        request.deferred_file.file_id = file
        answer = asyncio.run(handler.handle(request, "somebody"))
        return answer.error_msg, [type(each.exc_info[1].__cause__) for each in caplog.records]

    refused, drawn = "Failed to generate file for download", button(server, "a", lambda: b"numbers")
    assert ask(drawn) == ("", [])
    drawn_anew(server)
    now[0] += downloads.ON_ITS_WAY
    server.remove_orphaned_files()
    for made_up in (drawn, "0123", "", "a\nb", "../../etc/passwd", "x" * 5000):
        assert ask(made_up) == (refused, [])
    assert ask(button(server, "b", lambda: 1 / 0)) == (refused, [ZeroDivisionError])
