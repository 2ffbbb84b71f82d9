"""How much visitors may have uploaded at a time, each and all together: Streamlit keeps what is uploaded in memory, opened or not.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import asyncio
import re
import time
import weakref

from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from streamlit import config
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from core.settings.memory import machine_mb, max_mb
from ui.kit.server.connections import left

ADDRESS = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
VISITORS = 4  # as many can upload all that one may, but all together no more than a quarter of the machine's memory
SILENCE = 30.0  # seconds in which nothing comes after which an upload is over
SLOWEST = 1 << 16  # bytes a second that come at least, over the whole of it: half of what a slow telephone sends
FULL = "Other visitors have uploaded as much as this server may keep. Try again later."
EACH = 1 << 16  # bytes that a file counts beside its own: its name, and what the server keeps of it


class UploadLimit:
    """ASGI middleware: refuses an upload for which there is no room, before any of it is read, or once others have taken the room.

    Of one visitor counts what was announced: a hundred of his may begin at the same moment. Of all together only what has come:
    or a few lines, of which nothing follows, would take the room of everybody.
    """

    def __init__(self, app):
        self.app = app
        self._announced: dict[str, int] = {}  # session -> bytes of what is under way
        self._arrived = 0  # bytes of that

    async def __call__(self, scope, receive, send):
        place = ADDRESS.search(scope.get("path", "")) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if not place:
            return await self.app(scope, receive, send)
        size, session = _length(scope), place.group(1)
        status, refusal = 413, self._refusal(session, size)
        if not refusal:
            self._announced[session] = self._announced.get(session, 0) + size
            try:
                status, refusal = await self._passed_on(scope, _patiently(receive, size), send)
            finally:
                self._announced[session] -= size
                if not self._announced[session]:
                    del self._announced[session]
        if refusal:
            await PlainTextResponse(refusal, status)(scope, receive, send)

    def _refusal(self, session: str, size: int | None) -> str:
        if size is None:
            return "An upload must say how large it is."
        stored = _stored()
        own = stored.get(session, 0) + self._announced.get(session, 0)
        if size - EACH > file_mb() << 20 or own + size > max_mb() << 20:
            return allowed()
        gone = {*left.sessions()}  # who would give way
        here = sum(many for each, many in stored.items() if each not in gone)
        return "" if here + self._arrived + size <= _together() else FULL

    async def _passed_on(self, scope, receive, send) -> tuple[int, str]:
        """-> (what is answered where it was broken off, why)"""
        arrived, full, gone, begun = 0, False, False, False

        async def counted():
            nonlocal arrived, full
            event = {"type": "http.disconnect"} if full else await receive()
            more = len(event.get("body", b""))
            arrived += more
            self._arrived += more
            full = full or (more > 0 and not self._is_room())
            return {"type": "http.disconnect"} if full else event

        async def answered(message):
            nonlocal begun
            if not full or begun:
                begun = True
                await send(message)

        try:
            await self.app(scope, counted, answered)
        except ClientDisconnect:  # the browser's, or ours: not worth a traceback in the log
            gone = True
        finally:
            self._arrived -= arrived
        if begun or not (full or gone):
            return 0, ""
        return (413, FULL) if full else (408, "Nothing more came of this file.")

    def _is_room(self) -> bool:
        if sum(_stored().values()) + self._arrived > _together():
            _let_go()
            return sum(_stored().values()) + self._arrived <= _together()
        return True


def file_mb() -> int:
    """MB that one file may have. Streamlit refuses a larger one, and does not say at what size."""
    return min(max_mb(), config.get_option("server.maxUploadSize"))


def allowed() -> str:
    """What one visitor may upload, in words."""
    files = f", in files of up to {file_mb():,} MB (server.maxUploadSize)" if file_mb() < max_mb() else ""
    return f"One visitor may have uploaded {max_mb():,} MB at a time (ABLATION_MAX_MB){files}."


def _length(scope) -> int | None:
    """What the request says of its size. Without that it could be any: the browser always says it. One that comes in chunks may
    be larger than it says."""
    if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
        return None
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) + EACH if len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) < 16 else None


def _patiently(receive, size: int):
    """What is sent, as long as something is, and not too slowly; then the same as where the browser has gone away."""
    end = time.monotonic() + SILENCE + size / SLOWEST

    async def waited():
        try:
            return await asyncio.wait_for(receive(), min(SILENCE, end - time.monotonic()))
        except TimeoutError:
            return {"type": "http.disconnect"}

    return waited


def _together() -> int:
    """Bytes that all visitors together may have uploaded."""
    return max(max_mb(), min(VISITORS * max_mb(), machine_mb() // 4)) << 20


_held: dict[int, tuple[str, str, int]] = {}  # what pages were handed and hold: session, file, bytes
_plain = UploadedFile.__init__


def count_what_is_held() -> None:
    """From here on a file counts as long as a page holds it, also when its visitor has had the server delete it; and each page that
    holds it has the same bytes."""
    UploadedFile.__init__ = _counted  # type: ignore[method-assign]
    UploadedFile.__deepcopy__ = _with_the_same_bytes  # type: ignore[attr-defined]


def _counted(file: UploadedFile, record: UploadedFileRec, *given, **named) -> None:
    _plain(file, record, *given, **named)
    run = get_script_run_ctx(suppress_warning=True)
    _held[id(file)] = (run.session_id if run else "", record.file_id, len(record.data))
    weakref.finalize(file, _held.pop, id(file), None).atexit = False


def _with_the_same_bytes(file: UploadedFile, memo: dict) -> UploadedFile:
    """Streamlit copies what a widget holds in every run of a page, and Python would copy the bytes of a file, too."""
    copied = UploadedFile(UploadedFileRec(file.file_id, file.name, file.type, file.getvalue()), file._file_urls)
    copied.seek(file.tell())
    return copied


def _stored() -> dict[str, int]:
    """Session -> bytes of what it has uploaded."""
    storage = get_instance().uploaded_file_mgr.file_storage if exists() else {}
    files = {
        (session, name): len(file.data)
        for session, by_name in list(storage.items())
        for name, file in list(by_name.items())
    }
    files |= {(session, name): size for session, name, size in list(_held.values())}
    stored: dict[str, int] = {}
    for (session, _), size in files.items():
        stored[session] = stored.get(session, 0) + size + EACH
    return stored


def _let_go():
    """End the sessions of visitors who have left and had uploaded something: Streamlit keeps them for two minutes, for a visitor
    whose connection was broken; but one who is here goes first."""
    for session in {*_stored()} & {*left.sessions()}:
        left.end(session)
