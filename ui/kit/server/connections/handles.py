"""File handles: a browser that is connected holds four of them, and a server that has none left answers nobody.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import contextlib
import sys

from ui.kit.server.connections import left

MANY = 10_240  # as many as any system gives a process that asks for them
EACH = 8  # for a browser: twice what it holds, so that half is left for all else
LEFT = 32  # for one that has left: it holds three, for two minutes
FEW = 8  # browsers that are let in where there is hardly anything
BUSY = 1013  # why a websocket is closed: try again later (IANA's registry of close codes)


def raise_limit() -> int:
    """How many handles this process may have from here on: MANY if the system lets it. Many a shell begins with 256 or 1024."""
    if sys.platform == "win32":  # has no such limit for sockets
        return MANY
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY if hard == resource.RLIM_INFINITY else min(MANY, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # not even that
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return MANY if soft == resource.RLIM_INFINITY else soft


class Handles:
    """ASGI middleware: lets no more browsers in than there are handles for. Those that are in go on; the others are told to try again."""

    def __init__(self, app, limit: int | None = None):
        self.app, self.here = app, 0
        limit = raise_limit() if limit is None else limit
        self.most, self.most_left = max(FEW, limit // EACH), max(1, min(limit // LEFT, left.KEPT))

    async def __call__(self, scope, receive, send):
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)
        if self.here >= self.most:
            return await send({"type": "websocket.close", "code": BUSY})
        self.here += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.here -= 1
            left.end_unused()
            for each in left.sessions()[: -self.most_left]:
                left.end(each)
