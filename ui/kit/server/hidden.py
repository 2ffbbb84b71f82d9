"""What the server has, but shows to nobody.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

from pathlib import PurePath

from starlette.responses import PlainTextResponse
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession

METRICS = "/_stcore/metrics"  # what Streamlit counts of memory and sessions: it cannot be switched off


class Hidden:
    """ASGI middleware: answers as if that were not there."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        hidden = scope["type"] == "http" and scope["path"].rstrip("/").endswith(METRICS)
        await (PlainTextResponse("Not found", 404) if hidden else self.app)(scope, receive, send)


def hide_the_path() -> None:
    """From here on no browser is told in which folder of the server the app lies, but only the name of its script."""
    AppSession._create_new_session_message = _without_folder  # type: ignore[method-assign]


_begun = AppSession._create_new_session_message


def _without_folder(session: AppSession, *given, **named) -> ForwardMsg:
    message = _begun(session, *given, **named)
    message.new_session.main_script_path = PurePath(message.new_session.main_script_path).name
    return message
