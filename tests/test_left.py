"""What visitors uploaded counts as long as anything holds it, and who has left holds nothing of it for long."""

import asyncio
import copy
import gc
import uuid
from types import SimpleNamespace

import psutil
import pytest
import requests
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from benchmarks.serving import server
from core.checkpoints import own
from core.model.transformer import Transformer
from core.tasks import task
from tests.test_greedy_visitors import MB, enter
from ui.kit.server import lifespan, uploads
from ui.kit.server.connections import left

RECORD = UploadedFileRec("file", "x.safetensors", "", b"0" * MB)


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(UploadedFile, "__init__", UploadedFile.__init__)  # as it was, afterwards
    monkeypatch.setattr(UploadedFile, "__deepcopy__", None, raising=False)
    uploads.count_what_is_held()


def test_a_file_counts_as_long_as_a_page_holds_it(counted):
    before = uploads._stored()
    held = [UploadedFile(RECORD, FileURLs()) for _ in range(3)]  # of one file, of which there are the bytes once
    assert held[0].getvalue() == RECORD.data
    now = uploads._stored()
    assert sum(now.values()) - sum(before.values()) == MB + uploads.EACH
    held.clear()
    gc.collect()
    assert uploads._stored() == before


def test_a_file_that_streamlit_copies_in_each_run_is_there_once(counted):
    """One of 20 MB that a message named nine thousand times was copied as often, which ended the server."""
    before = sum(uploads._stored().values())
    held = UploadedFile(RECORD, FileURLs())
    held.read(5)
    copied = copy.deepcopy([held, held, held])
    assert all(each.getvalue() is held.getvalue() is RECORD.data for each in copied)
    assert [(each.name, each.file_id, each.size, each.tell(), each.read(1)) for each in copied[:1]] == [(held.name, held.file_id, held.size, 5, held.read(1))]  # fmt: skip
    assert sum(uploads._stored().values()) - before == MB + uploads.EACH
    copied[0].write(b"changed")
    assert held.getvalue() is RECORD.data


HELD = "_held"  # a key of ours in a session


def session(name: str, ended: list[str], wrong: bool = False):
    """One whose widget was told what cannot be read; wrong: it cannot be shut down either."""

    def unreadable(told):
        raise TypeError("read as a list")

    state = SessionState()
    for number in range(3):
        widget = f"$$ID-{number}-choice"
        state._new_widget_state.set_widget_from_proto(WidgetState(id=widget, double_value=1.5))
        state._set_widget_metadata(WidgetMetadata(widget, unreadable, str, "string_array_value"))
    state._new_session_state["uploaded"] = state._old_state[HELD] = "a model"

    def shutdown():
        ended.append(name)
        if wrong:
            raise RuntimeError("broken")

    return SimpleNamespace(id=name, session_state=state, shutdown=shutdown)


def is_empty(session) -> bool:
    state = session.session_state
    return not (len(state) or state._new_widget_state.states or state._new_widget_state.widget_metadata)


@pytest.fixture
def gone(monkeypatch):
    """-> (sessions whose browser has left, the names of those that were ended, a clock)"""
    ended: list[str] = []
    now = [0.0]
    sessions = [session(name, ended, wrong=name == "first") for name in ("first", "second", "third")]
    storage = MemorySessionStorage()
    storage._cache = type(storage._cache)(9, 120.0, lambda: now[0])
    for each in sessions:
        storage.save(SessionInfo(None, each, 1))
    named = {each.id: each for each in sessions}
    runtime = SimpleNamespace(
        _session_mgr=SimpleNamespace(
            _session_storage=storage, get_session_info=lambda name: SimpleNamespace(session=named[name])
        ),
        close_session=lambda name: named[name].shutdown(),
    )
    monkeypatch.setattr(left, "exists", lambda: True)
    monkeypatch.setattr(left, "get_instance", lambda: runtime)
    return sessions, ended, now


def test_what_one_of_them_holds_keeps_none_of_those_who_have_left(gone, caplog):
    """A widget's value that cannot be read was read once more before it was dropped."""
    sessions, ended, now = gone
    left.end_old()
    assert not ended
    now[0] = 121.0
    left.end_old()
    assert ended == ["first", "second", "third"] and all(map(is_empty, sessions))
    assert [each.exc_info[0] for each in caplog.records] == [RuntimeError]


def test_who_is_dropped_when_somebody_else_leaves_is_ended_too(gone):
    """The store drops, as it takes one in, those whose two minutes are over."""
    sessions, ended, now = gone
    storage = left.get_instance()._session_mgr._session_storage
    now[0] = 121.0
    left._save(storage, SessionInfo(None, session("fourth", ended), 1))
    assert ended == ["first", "second", "third"] and all(map(is_empty, sessions))
    assert [each.session.id for each in storage.list()] == ["fourth"]


def test_who_is_ended_by_name_or_by_what_he_holds_is_emptied_whatever_is_in_it(gone, caplog):
    (first, second, third), ended, _ = gone
    left.end("first")
    assert is_empty(first) and [each.exc_info[0] for each in caplog.records] == [RuntimeError]
    for each in (first, second):
        each.session_state._old_state.pop(HELD, None)
    assert asyncio.run(left._end_holding("$$ID-1-choice")) is False  # a widget's, of which nothing is read
    assert asyncio.run(left._end_holding(HELD)) and ended == ["first", "third"] and is_empty(third)


def test_what_fails_while_the_server_runs_is_tried_again(monkeypatch, caplog):
    looks = []

    def look():
        looks.append(len(looks))
        if len(looks) == 1:
            raise TypeError("read as a list")

    async def until_three():
        for each in ("GONE", "GROWN", "FIRST", "EVERY"):
            monkeypatch.setattr(lifespan, each, 0.001)
        task = asyncio.create_task(loop())
        while len(looks) < 3 and not task.done():
            await asyncio.sleep(0.001)
        task.cancel()

    monkeypatch.setattr(left, "end_old", look)
    monkeypatch.setattr(lifespan, "_sweep", look)
    monkeypatch.setattr(lifespan, "Grown", lambda: SimpleNamespace(give_back=look))
    for loop in (lifespan._gone, lifespan._grown, lifespan._swept):
        asyncio.run(until_three())
        assert len(looks) >= 3 and [each.exc_info[0] for each in caplog.records] == [TypeError], loop
        looks.clear()
        caplog.clear()


async def asked(visitor, states=()) -> list[ForwardMsg]:
    message = BackMsg()
    message.rerun_script.page_name = "Trained_model"
    message.rerun_script.widget_states.widgets.extend(states)
    await visitor.socket.send(message.SerializeToString())
    said = []
    while not said or said[-1].WhichOneof("type") != "script_finished":
        said.append(ForwardMsg())
        said[-1].ParseFromString(await asyncio.wait_for(visitor.socket.recv(), 90))
    return said


async def bring(address: str, megabytes: int, files: dict[str, bytes] | None = None):
    """A visitor whose page has been drawn with files -> (the visitor, the status of the upload, what deletes the last one)"""
    visitor = await enter(address)
    said = await asked(visitor)
    chooser = next(each.delta.new_element.file_uploader.id for each in said if each.delta.new_element.HasField("file_uploader"))  # fmt: skip
    place = f"/_stcore/upload_file/{visitor.id}/"
    token = {"headers": {"X-Xsrftoken": visitor.cookies["_streamlit_xsrf"]}, "cookies": dict(visitor.cookies)}
    state = WidgetState(id=chooser)
    for name, data in (files or {"model.safetensors": b"0" * (megabytes * MB)}).items():
        number = f"{uuid.uuid4()}"
        file = {"file": (name, data)}
        answer = await asyncio.to_thread(requests.put, f"{address}{place}{number}", files=file, timeout=60, **token)
        info = state.file_uploader_state_value.uploaded_file_info.add(file_id=number, name=name, size=len(data))
        urls = info.file_urls
        urls.file_id, urls.upload_url, urls.delete_url = number, place + number, place + number
    if answer.status_code == 204:
        visitor.state, visitor.said = state, await asked(visitor, [state])
    return visitor, answer.status_code, lambda: requests.delete(f"{address}{place}{number}", timeout=60, **token)


@pytest.mark.thorough
def test_a_file_that_is_deleted_counts_while_its_page_is_there(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "20")

    async def visits(address):
        statuses, there = [], []
        for _ in range(6):
            visitor, status, delete = await bring(address, 18)
            there.append(visitor)
            statuses.append(status)
            await asyncio.to_thread(delete)
        for each in there[:4]:
            await each.socket.close()
        visitor, status, _ = await bring(address, 18)  # who has left makes room
        await visitor.socket.close()
        return statuses, status

    with server() as (address, _):
        assert asyncio.run(visits(address)) == ([204] * 4 + [413] * 2, 204)


@pytest.mark.thorough
def test_visitors_who_leave_take_what_they_brought_with_them(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "50")  # and 200 together

    async def visits(address, process):
        sizes = []
        for _ in range(16):
            visitor, status, _ = await bring(address, 48)
            await visitor.socket.close()
            assert status == 204
            sizes.append(process.memory_info().rss / MB)
        return sizes

    with server() as (address, process):
        sizes = asyncio.run(visits(address, psutil.Process(process.pid)))
    assert sizes[-1] - sizes[0] < 300, sizes  # 16 times 48 MB were brought


@pytest.mark.thorough
def test_models_of_who_has_left_make_room_for_those_of_others(monkeypatch):
    monkeypatch.setenv("ABLATION_MODELS_MB", "5")

    async def opens(address, seed: int) -> str:
        """-> what the page says"""
        made = Transformer(task["reverse"].config(n_layers=2, d_model=192, seed=seed), task["reverse"].vocabulary)
        assert 2.5 < sum(each.numel() for each in made.parameters()) * 4 / MB < 5  # there is room for one
        visitor, status, _ = await bring(address, 0, own.write(made, f"mine {seed}", "reverse"))
        assert status == 204
        button = next(each.delta.new_element.button.id for each in visitor.said if "model_open" in each.delta.new_element.button.id)  # fmt: skip
        said = await asked(visitor, [visitor.state, WidgetState(id=button, trigger_value=True)])
        await visitor.socket.close()
        return " ".join(map(str, said))

    with server() as (address, _):
        for seed in range(3):
            said = asyncio.run(opens(address, seed))
            assert f"mine {seed}" in said and "may have 5 MB together" not in said


@pytest.mark.thorough
@pytest.mark.parametrize("pages, many, at_once", [(0, 200, 1), (1, 150, 1), (0, 300, 300), (1, 160, 8)])
def test_who_hardly_looked_takes_nobody_s_place(pages, many, at_once):
    """Many come and go, while one whose connection is broken is away: he comes back to what he had."""

    async def comes(stream):
        passing = await websockets.connect(stream, subprotocols=["streamlit"], max_size=None, open_timeout=60)
        for _ in range(pages):
            await asked(SimpleNamespace(socket=passing))
        return passing

    async def visits(address):
        visitor = await enter(address)
        for _ in range(3):
            await asked(visitor)
        await visitor.socket.close()
        stream = f"{address.replace('http', 'ws')}/_stcore/stream"
        for _ in range(many // at_once):
            there = await asyncio.gather(*(comes(stream) for _ in range(at_once)))
            for each in there:
                each.transport.abort()
        await asyncio.sleep(1)
        protocols = ["streamlit", visitor.cookies["_streamlit_xsrf"], visitor.id]
        async with websockets.connect(stream, subprotocols=protocols, max_size=None) as again:
            visitor.socket, was = again, visitor.id
            said = await asked(visitor)
            return was, next(each.new_session.initialize.session_id for each in said if each.HasField("new_session"))

    with server() as (address, _):
        was, now = asyncio.run(visits(address))
    assert was == now
