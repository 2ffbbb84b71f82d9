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

        loop = asyncio.get_running_loop()
        sending: dict[asyncio.Task, float] = {}  # since when
        late: set[asyncio.Task] = set()
        broken = False

        async def in_time(message):
            nonlocal broken
            task = asyncio.current_task()
            sending[task] = loop.time()
            try:
                await send(message)
            except OSError:
                broken = True
                raise
            except asyncio.CancelledError:
                if task not in late:
                    raise
                late.discard(task)
                task.uncancel()
                broken = True
                raise OSError("the browser does not read what it asked for") from None
            finally:
                del sending[task]

        async def watched():
            while True:  # a clock for every message would cost more than most of them
                await asyncio.sleep(self.patience / 4)
                for task, since in sending.items():
                    if task not in late and loop.time() - since > self.patience:
                        late.add(task)
                        task.cancel()

        watching = asyncio.create_task(watched())
        try:
            await self.app(scope, receive, in_time)
        except (
            RuntimeError
        ):  # Streamlit reads on, takes what Starlette says to that for a text, and closes what is closed
            if not broken:
                raise
        finally:
            watching.cancel()
