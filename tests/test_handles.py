"""File handles: a server asks for as many as it may have, and lets no more browsers in than those are enough for."""

import asyncio
from types import SimpleNamespace

import pytest
import requests
import websockets
from streamlit.runtime.memory_session_storage import MemorySessionStorage

from benchmarks.serving import server
from ui.kit.server.connections import handles
from ui.kit.server.connections.handles import BUSY, EACH, FEW, LEFT, MANY, Handles

resource = pytest.importorskip("resource")  # not on Windows


@pytest.mark.parametrize(
    "had, asked, then",
    [
        ((256, resource.RLIM_INFINITY), (MANY, resource.RLIM_INFINITY), MANY),
        ((1024, 4096), (4096, 4096), 4096),
        ((1024, 1 << 20), (MANY, 1 << 20), MANY),
        ((1024, 1024), None, 1024),
        ((20_000, 20_000), None, 20_000),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None, MANY),
    ],
)
def test_it_asks_for_more_where_there_are_more(had, asked, then, monkeypatch):
    set_to = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: had)
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: set_to.append(limits))
    assert handles.raise_limit() == then and set_to == ([asked] if asked else [])


def test_a_system_that_gives_no_more_is_believed(monkeypatch):
    def refused(which, limits):
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refused)
    assert handles.raise_limit() == 256


@pytest.mark.parametrize("limit, most", [(FEW * EACH - 1, FEW), (160, 20), (10_240, 1280)])
def test_those_who_are_in_go_on_and_the_next_one_is_told_to_try_again(limit, most):
    async def tried():
        over, said = asyncio.Event(), []

        async def app(scope, receive, send):
            await send(scope["type"])
            if scope["type"] == "websocket":
                await over.wait()

        async def send(message):
            said.append(message)

        limited = Handles(app, limit)
        inside = [asyncio.create_task(limited({"type": "websocket"}, None, send)) for _ in range(most)]
        await asyncio.sleep(0)
        assert said == ["websocket"] * most
        await limited({"type": "websocket"}, None, send)
        assert said[most:] == [{"type": "websocket.close", "code": BUSY}]
        await limited({"type": "http"}, None, send)  # what is no browser at work is always answered
        assert said[most + 1 :] == ["http"]
        over.set()
        await asyncio.gather(*inside)
        await limited({"type": "websocket"}, None, send)
        assert said[most + 2 :] == ["websocket"]

    asyncio.run(tried())


def test_of_those_who_have_left_as_many_are_kept_as_there_are_handles_for(monkeypatch):
    kept = [f"{n}" for n in range(20)]
    monkeypatch.setattr(handles.left, "sessions", lambda: list(kept))
    monkeypatch.setattr(handles.left, "end", kept.remove)

    async def app(scope, receive, send):
        pass

    for limit, many in ((10_240, 20), (LEFT * 8, 8), (LEFT - 1, 1)):
        asyncio.run(Handles(app, limit)({"type": "websocket"}, None, None))
        assert kept == [f"{n}" for n in range(20)][-many:]  # the last to leave: they may come back


@pytest.mark.thorough
def test_a_class_of_a_hundred_gets_in_where_a_shell_gives_256_handles():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with server() as (address, _):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            asyncio.run(everybody(address))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def everybody(address: str):
    stream = f"{address.replace('http', 'ws')}/_stcore/stream"
    inside = [await websockets.connect(stream, open_timeout=30) for _ in range(100)]
    answer = await asyncio.to_thread(requests.get, address, timeout=30)
    assert answer.status_code == 200 and all(each.close_code is None for each in inside)
    await asyncio.gather(*(each.close() for each in inside))


def test_streamlit_itself_ends_nobody_for_want_of_room(monkeypatch):
    """It would end who left first, however often he looked, before it is asked."""
    monkeypatch.setattr(MemorySessionStorage, "__init__", MemorySessionStorage.__init__)  # as it was, afterwards
    handles.left.keep_who_looked()
    storage = MemorySessionStorage(ttl_seconds=120)
    for number in range(500):
        storage.save(SimpleNamespace(session=SimpleNamespace(id=f"{number}"), script_run_count=number % 2))
    monkeypatch.setattr(handles.left, "exists", lambda: True)
    runtime = SimpleNamespace(_session_mgr=SimpleNamespace(_session_storage=storage))
    monkeypatch.setattr(handles.left, "get_instance", lambda: runtime)
    assert len(storage.list()) == 500
    assert handles.left.sessions() == [f"{n}" for n in [*range(0, 500, 2), *range(1, 500, 2)]]
