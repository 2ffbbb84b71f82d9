"""Frames of a websocket that carry no message of their own: pieces of one, pings and pongs.

What reads them does so in the one thread that serves everybody, without a pause: 18 MB of empty pieces, of a message that never ends,
held up all others for 15 seconds. No browser sends pings, and pieces only of what is long.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

from collections.abc import Callable
from contextlib import suppress

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ui.kit.server.connections.pace import Pace

AT_ONCE, A_SECOND = 1000, 20  # of one browser; a message of the longest widgets in pieces of 1 kB
READ = 1 << 14  # bytes that are read at a time: as many frames as that holds are taken apart before any is counted
PACE = "_ablation_pace"  # what a connection keeps

Handle = Callable[..., None]


def count_frames() -> None:
    """From here on a connection with more of them is broken off."""
    for name in ("handle_cont", "handle_ping", "handle_pong"):
        setattr(WebSocketsSansIOProtocol, name, _counted(getattr(WebSocketsSansIOProtocol, name)))
    WebSocketsSansIOProtocol.connection_made = _in_small_reads(WebSocketsSansIOProtocol.connection_made)  # type: ignore[method-assign]


def _counted(handle: Handle) -> Handle:
    def handled(protocol, *event) -> None:
        if not protocol.transport.is_closing() and _may(protocol):
            handle(protocol, *event)

    return handled


def _may(protocol) -> bool:
    now = protocol.loop.time()
    pace = protocol.__dict__.setdefault(PACE, Pace(AT_ONCE, A_SECOND, now))
    if pace.take(1, now) > 0:
        protocol.transport.abort()
        return False
    return True


def _in_small_reads(made: Handle) -> Handle:
    def begun(protocol, transport) -> None:
        with suppress(AttributeError):  # asyncio's own transports have it
            transport.max_size = min(READ, transport.max_size)
        made(protocol, transport)

    return begun
