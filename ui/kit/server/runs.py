"""What each run of a page costs the server, whatever the page: the message with which it begins, and how what it says gets from its
thread to the one that sends. A fifth of what a move costs, as Streamlit has it (docs/log.md).

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from streamlit.components.v2.bidi_component.main import BidiComponentMixin
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession, AppSessionState

BEGUN, WAITING = "_ablation_begun", "_ablation_waiting"  # what a session keeps


def cheaper() -> None:
    """From here on. After what else is to be changed in that message (hidden.py)."""
    made = AppSession._create_new_session_message

    def begins(session: AppSession, page_script_hash: str, run_descriptor, pages=None) -> ForwardMsg:
        return _begins(made, session, page_script_hash, run_descriptor, pages)

    AppSession._create_new_session_message = begins  # type: ignore[method-assign]
    AppSession._call_soon_on_event_loop = _soon  # type: ignore[method-assign]
    Runtime._enqueued_some_message = _wake  # type: ignore[method-assign]
    BidiComponentMixin._build_bidi_identity_kwargs = _known_by_its_key  # type: ignore[method-assign]


def _known_by_its_key(container: BidiComponentMixin, **described: object) -> dict[str, object]:
    """What a component's id is made from beside its key: nothing. Streamlit writes all its data as JSON once more for it, sorted,
    and leaves that out again where there is a key; here every component has one."""
    return {}


def _begins(made, session, page_script_hash: str, run_descriptor, pages) -> ForwardMsg:
    """As Streamlit makes it, which reads 80 options for it each time: made once for a session, and copied with what has changed."""
    known = pages or session._pages_manager.get_pages()
    kept = session.__dict__.get(BEGUN)
    if kept is None or kept[0] != known:
        kept = session.__dict__[BEGUN] = dict(known), made(session, page_script_hash, run_descriptor, pages)
    message = ForwardMsg()
    message.CopyFrom(kept[1])
    message.metadata.run.script_run_id = run_descriptor.script_run_id
    message.metadata.run.fragment_ids[:] = run_descriptor.fragment_ids
    message.new_session.page_script_hash = page_script_hash
    status = message.new_session.initialize.session_status
    status.run_on_save = session._run_on_save
    status.script_is_running = session._state == AppSessionState.APP_IS_RUNNING
    return message


class Waiting:
    """What a session's threads want done in the one that sends, in its order. That one is woken once for all that has come until
    it looks: woken for each of twenty messages, the two hand the interpreter to each other as often."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.loop, self.callbacks, self.asked = loop, deque[Callable[[], None]](), False

    def add(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)
        if not self.asked:  # or it has not begun to look yet, and sees this, too
            self.asked = True
            self.loop.call_soon_threadsafe(self._all)

    def _all(self) -> None:
        self.asked = False
        while self.callbacks:
            try:
                self.callbacks.popleft()()
            except Exception as error:  # that of one keeps no other from being done, as between callbacks of a loop
                self.loop.call_exception_handler({"message": "a message was not passed on", "exception": error})


def _soon(session: AppSession, callback: Callable[[], None]) -> None:
    try:
        session.__dict__.setdefault(WAITING, Waiting(session._event_loop)).add(callback)
    except RuntimeError:  # the server ends, and its loop has ended
        if not session._event_loop.is_closed():
            raise


def _wake(runtime: Runtime) -> None:
    """Tells the one that sends that there is something to be sent. Where its own thread says so, as for all that comes by `Waiting`,
    it is awake: Streamlit wakes it by a byte on a socket for every message."""
    told = runtime._get_async_objs()
    if asyncio._get_running_loop() is told.eventloop:
        told.need_send_data.set()
    else:
        told.eventloop.call_soon_threadsafe(told.need_send_data.set)
