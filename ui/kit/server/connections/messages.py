"""What a browser says over its websocket, looked at before Streamlit acts on it.

Streamlit answers some of these messages in the one thread that serves everybody: git is started several times to tell a visitor the
name of the repository and of files in it, addresses are made for as many files as are named. A few hundred bytes held up all others
for a minute. No page here asks for any of that.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import asyncio
import json
import time
from contextlib import suppress

from google.protobuf.message import DecodeError
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.runtime_util import get_max_widget_state_size_bytes
from streamlit.runtime.state.common import GENERATED_ELEMENT_ID_PREFIX
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX

from ui.kit.server.connections.pace import Pace

ASKED = {"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "backend_operation_request"}
OPERATIONS = {"deferred_file", "dataframe_chunk"}
IDS = (GENERATED_ELEMENT_ID_PREFIX, STREAMLIT_INTERNAL_KEY_PREFIX)  # with which that of every widget begins
FILES = 200  # that one message may name
WIDGETS = 5000  # of which one message may tell; a teacher's page has one for each reason that a class gives
JSON_LONG = 1 << 18  # characters that components may tell in one message
THINGS = (
    2000  # numbers, words, lists, … in it: Streamlit copies each of them in every run, and keeps them for who has left
)
TYPED = 100_000  # characters of texts and of what is chosen, together: a page holds them while it is open, in four bytes each
FILE = "-new_text-"  # in the id of the field that takes a whole study, which may be longer (core/study/file/text.py)
DEEP = 20  # lists and dicts in each other; those of a page are at most five
NAME = 200  # characters of the name of a page, or of a part of one
HASHES = 20_000  # of messages that a browser says it has kept
JSON = ("json_value", "json_trigger_value")  # what components tell
# What is chosen of several, and where sliders stand.
ARRAYS = ("string_array_value", "double_array_value", "int_array_value")

AT_ONCE, A_SECOND = 100, 40  # messages of one browser; a slider that is dragged sends a dozen a second
BYTES = 1 << 14  # as many count as one message more

PROTOCOL, TEXT, LARGE = 1002, 1003, 1009  # why a websocket is closed: RFC 6455, section 7.4.1


class Messages:
    """ASGI middleware: of what comes over a websocket, passes on what a page may ask for, no faster than a hand is.

    What has another form closes the websocket; what no page asks for is left out; who sends too much is read more slowly.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)
        pace = Pace(AT_ONCE, A_SECOND, time.monotonic())

        async def closed(code: int):
            await send({"type": "websocket.close", "code": code})
            return {"type": "websocket.disconnect", "code": code}

        async def asked():
            while True:
                event = await receive()
                if event["type"] != "websocket.receive":
                    return event
                data = event.get("bytes")
                if data is None:
                    return await closed(TEXT)
                if len(data) > get_max_widget_state_size_bytes():  # as Streamlit itself does, before it is read
                    return await closed(LARGE)
                early = pace.take(1 + len(data) / BYTES, time.monotonic())
                if early > 0:
                    await asyncio.sleep(early)
                try:
                    if allowed(data):
                        return event
                except DecodeError:
                    return await closed(PROTOCOL)

        await self.app(scope, asked, send)


def allowed(data: bytes) -> bool:
    """Whether a page asks for such a thing. Raises DecodeError for what is no message at all."""
    message = BackMsg()
    message.ParseFromString(data)
    kind = message.WhichOneof("type")
    if kind == "rerun_script":
        return _is_sound(message.rerun_script)
    if kind == "file_urls_request":
        return len(message.file_urls_request.file_names) <= FILES
    if kind == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") in OPERATIONS
    return kind in ASKED


def _is_sound(state: ClientState) -> bool:
    widgets = state.widget_states.widgets
    if len(widgets) > WIDGETS or len(state.cached_message_hashes) > HASHES:
        return False
    if max(map(len, (state.fragment_id, state.page_name, state.page_script_hash))) > NAME:
        return False
    # Of another Streamlit looks for a key of the page's own, and finds none.
    if not all(each.id.startswith(IDS) for each in widgets):
        return False
    # What is named again is a file more, as large as it is.
    named = [file.file_id for each in widgets for file in each.file_uploader_state_value.uploaded_file_info]
    if len(named) > len(set(named)):
        return False
    if sum(len(getattr(each, name).data) for each in widgets for name in ARRAYS if each.HasField(name)) > THINGS:
        return False
    words = [each.string_value for each in widgets if FILE not in each.id]
    words += [word for each in widgets for word in each.string_array_value.data]
    if sum(map(len, words)) > TYPED:
        return False
    texts = [getattr(each, name) for each in widgets for name in JSON if each.HasField(name)]
    texts += [each.string_value for each in widgets if _is_of_a_table(each.string_value)]
    try:
        return sum(map(len, texts)) <= JSON_LONG and _few(list(map(_said, texts)))
    except (ValueError, RecursionError):  # what is no JSON would be read anew, and fail, in every run that follows
        return False


def _is_of_a_table(text: str) -> bool:
    """Whether Streamlit would take it for what is selected in a table, which it keeps; text that somebody types may begin alike."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "selection" in value


def _said(text: str):
    """What JSON holds; where it holds a text, Streamlit takes that for JSON again, if it is. Raises ValueError."""
    value = json.loads(text)
    if isinstance(value, str):
        with suppress(json.JSONDecodeError):
            return json.loads(value)
    return value


def _few(values: list) -> bool:
    """Whether these lists and dicts hold no more than THINGS, all that lie in them counted, and none is deeper than DEEP."""
    left, layer = THINGS, [values]
    for _ in range(1 + DEEP):
        left -= sum(map(len, layer))
        if left < 0:
            return False
        inside = (each for one in layer for each in (one.values() if isinstance(one, dict) else one))
        layer = [each for each in inside if isinstance(each, dict | list)]
    return not layer
