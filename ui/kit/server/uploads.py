"""How much visitors may have uploaded at a time, each and all together: Streamlit keeps what is uploaded in memory, opened or not.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import re

from starlette.responses import PlainTextResponse
from streamlit.runtime import exists, get_instance

from core.settings.memory import max_mb

ADDRESS = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
VISITORS = 4  # as many can upload all that one may
EACH = 1 << 16  # bytes that a file counts beside its own: its name, and what the server keeps of it


class UploadLimit:
    """ASGI middleware: refuses an upload for which there is no room, before any of it is read.

    What is under way counts as if it were there: a hundred may begin at the same moment.
    """

    def __init__(self, app):
        self.app = app
        self._under_way: dict[str, int] = {}  # session -> bytes

    async def __call__(self, scope, receive, send):
        place = ADDRESS.search(scope.get("path", "")) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if not place:
            return await self.app(scope, receive, send)
        size, session = _length(scope), place.group(1)
        refusal = self._refusal(session, size)
        if refusal:
            return await PlainTextResponse(refusal, 413)(scope, receive, send)
        self._under_way[session] = self._under_way.get(session, 0) + size
        try:
            await self.app(scope, receive, send)
        finally:
            self._under_way[session] -= size
            if not self._under_way[session]:
                del self._under_way[session]

    def _refusal(self, session: str, size: int | None) -> str:
        if size is None:
            return "An upload must say how large it is."
        most, there = max_mb() << 20, _stored()
        if there.get(session, 0) + self._under_way.get(session, 0) + size > most:
            return f"One visitor may have uploaded {max_mb():,} MB at a time (ABLATION_MAX_MB)."
        if sum(there.values()) + sum(self._under_way.values()) + size > VISITORS * most:
            return "Other visitors have uploaded as much as this server may keep. Try again later."
        return ""


def _length(scope) -> int | None:
    """What the request says of its size. Without that it could be any: the browser always says it. One that comes in chunks may
    be larger than it says."""
    if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
        return None
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) + EACH if len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) < 16 else None


def _stored() -> dict[str, int]:
    """Session -> bytes of what it has uploaded."""
    storage = get_instance().uploaded_file_mgr.file_storage if exists() else {}
    return {
        session: sum(len(file.data) + EACH for file in list(files.values())) for session, files in list(storage.items())
    }
