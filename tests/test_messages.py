"""What a browser says is looked at before Streamlit acts on it, and what it shows is what was said."""

import asyncio
import json
from contextlib import nullcontext

import pytest
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.runtime_util import get_max_widget_state_size_bytes
from streamlit.runtime.state.session_state import SessionState

from core.study.file.text import LONGEST
from ui.kit.guard import JOINER, literal
from ui.kit.server import hidden
from ui.kit.server.connections import messages
from ui.kit.server.connections.messages import (
    AT_ONCE,
    DEEP,
    FILES,
    HASHES,
    JSON_LONG,
    NAME,
    THINGS,
    TYPED,
    WIDGETS,
    Messages,
)


def said(**given) -> BackMsg:
    return BackMsg(**given)


def rerun(id="$$ID-a-None", **widget) -> BackMsg:
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add(id=id, **widget)
    return message


def many_widgets(count: int) -> BackMsg:
    message = BackMsg()
    for n in range(count):
        message.rerun_script.widget_states.widgets.add(id=f"$$ID-{n}")
    return message


def in_many(count: int, text: str) -> BackMsg:
    """What many components tell, each a little."""
    message = BackMsg()
    for n in range(count):
        message.rerun_script.widget_states.widgets.add(id=f"$$ID-{n}", json_value=text)
    return message


def hashes(count: int) -> BackMsg:
    message = BackMsg()
    message.rerun_script.cached_message_hashes.extend(["a"] * count)
    return message


def files(count: int) -> BackMsg:
    message = BackMsg()
    message.file_urls_request.file_names.extend([""] * count)
    return message


def uploaded(*ids: str) -> BackMsg:
    message = BackMsg()
    for at, id in enumerate(ids):  # half of them in each of two uploaders
        if at % max(1, len(ids) // 2) == 0:
            told = message.rerun_script.widget_states.widgets.add(id=f"$$ID-{at}").file_uploader_state_value
        told.uploaded_file_info.add(file_id=id)
    return message


def chosen(count: int, kind: str = "string_array_value", item="a") -> BackMsg:
    """As many in two widgets."""
    message = BackMsg()
    for n in range(2):
        told = message.rerun_script.widget_states.widgets.add(id=f"$$ID-{n}")
        getattr(told, kind).data.extend([item] * (count // 2 + count % 2 * n))
    return message


def selected(things: int) -> BackMsg:
    return rerun(string_value=json.dumps({"selection": {"rows": [0] * things}}))


def operation(payload: str) -> BackMsg:
    message = BackMsg()
    getattr(message.backend_operation_request, payload).SetInParent()
    return message


def deep(layers: int) -> str:
    return '{"a": [' * (layers // 2) + "[" * (layers % 2) + "1" + "]" * (layers % 2) + "]}" * (layers // 2)


def part(name: str) -> BackMsg:
    message = rerun(json_value="1")
    message.rerun_script.fragment_id = name
    return message


PASSED = [
    said(stop_script=True), said(app_heartbeat=True), rerun(json_value='{"moved": [1]}'), rerun(string_value="{"), many_widgets(WIDGETS),
    hashes(HASHES), files(FILES), rerun(json_value=json.dumps({"moved": ["{[,"] * (THINGS - 3)})), rerun(json_value=json.dumps("a" * (JSON_LONG - 2))), rerun(json_value=deep(DEEP)), part("x" * NAME), operation("deferred_file"), operation("dataframe_chunk"),
    rerun(_make_trigger_id("$$ID-a-panel", "events"), json_trigger_value="[]"), uploaded(*map(str, range(FILES + 50))),
    chosen(THINGS), selected(THINGS - 3), rerun(string_value=json.dumps([0] * 2 * THINGS)), rerun(string_value="{" * 100_000), rerun(string_value=json.dumps({"rows": [0] * 2 * THINGS})),
    rerun(string_value="😀" * TYPED), chosen(THINGS, item="a" * (TYPED // THINGS)), rerun("$$ID-a-new_text-3", string_value="a" * LONGEST),
]  # fmt: skip
LEFT_OUT = [
    said(load_git_info=True), said(clear_cache=True), said(set_run_on_save=True), said(debug_shutdown_runtime=True),
    said(debug_disconnect_websocket=True), said(), rerun(json_value="not json"), rerun(json_value="[" * 100_000),
    rerun(json_trigger_value="not json"), rerun(json_value=json.dumps(json.dumps([1] * THINGS))), rerun(json_value=json.dumps(deep(DEEP + 1))), rerun(json_value=json.dumps("[" * 100_000)),
    rerun(json_value=json.dumps({"moved": [1] * THINGS})), rerun(json_value=json.dumps("a" * JSON_LONG)),
    rerun(json_value=json.dumps([[[{"": {"": {}}}]] * 600])), rerun(json_value=deep(DEEP + 1)), rerun(json_trigger_value=deep(800)), part("x" * (NAME + 1)), in_many(THINGS + 1, "0"), in_many(300, json.dumps("a" * 1000)), many_widgets(WIDGETS + 1), hashes(HASHES + 1), files(FILES + 1), operation("install_skills"), operation("dismiss_skills_nudge"),
    *(rerun(id, string_value="a") for id in ("x0", "", "panel", "_models", "_visitor", "$", "$$", " $$ID-a-None")), rerun("x0"),
    uploaded("a", "b", "c", "c"), uploaded("a", "b", "a", "c"), chosen(THINGS + 1), chosen(THINGS + 1, "double_array_value", 0.5), chosen(THINGS + 1, "int_array_value", 1),
    selected(THINGS + 1), rerun(string_value=" " + json.dumps({"selection": [{"": {}}] * THINGS})), rerun(string_value=json.dumps({"selection": "a" * JSON_LONG})),
    rerun(string_value="a" * (TYPED + 1)), chosen(THINGS, item="a" * (TYPED // THINGS + 1)), rerun("$$ID-a-new_text-3", string_array_value={"data": ["a" * (TYPED + 1)]}),
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


def test_what_is_left_out_of_would_have_cost_the_page():
    """Of a name that is no widget's Streamlit says that the session has it, and finds nothing there."""
    state = SessionState()
    for id, sound in (("$$ID-a-None", True), ("$$ID-a-panel", True), ("x0", False), ("_models", False)):
        message = rerun(id, string_value="a")
        state._new_widget_state.states.clear()
        state.set_widgets_from_proto(message.rerun_script.widget_states)
        assert messages.allowed(message.SerializeToString()) is sound
        with nullcontext() if sound else pytest.raises(KeyError):
            assert state.filtered_state == {}
