"""What the server has, but shows to nobody.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

from starlette.responses import PlainTextResponse

METRICS = "/_stcore/metrics"  # what Streamlit counts of memory and sessions: it cannot be switched off


class Hidden:
    """ASGI middleware: answers as if that were not there."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        hidden = scope["type"] == "http" and scope["path"].rstrip("/").endswith(METRICS)
        await (PlainTextResponse("Not found", 404) if hidden else self.app)(scope, receive, send)
