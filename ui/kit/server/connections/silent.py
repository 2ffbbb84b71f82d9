"""Visitors who ask, and never read the answers: they would pile up in the server's memory.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import asyncio

PATIENCE = 30.0  # seconds in which a message can be sent at the slowest: 50 MB at two megabytes a second


class Silent:
    """ASGI middleware: ends a websocket whose browser has not taken a message for so long."""

    def __init__(self, app, patience: float = PATIENCE):
        self.app, self.patience = app, patience

    async def __call__(self, scope, receive, send):
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)

        async def in_time(message):
            try:
                async with asyncio.timeout(self.patience):  # wait_for would begin a task for every message
                    await send(message)
            except TimeoutError:
                raise OSError("the browser does not read what it asked for") from None

        await self.app(scope, receive, in_time)
