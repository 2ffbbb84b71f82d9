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

        line = _Line(send, self.patience)
        watching = asyncio.create_task(line.watched())
        try:
            await self.app(scope, receive, line.in_time)
        except (
            RuntimeError
        ):  # Streamlit reads on, takes what Starlette says to that for a text, and closes what is closed
            if not line.broken:
                raise
        finally:
            watching.cancel()


class _Line:
    """What goes to one browser."""

    def __init__(self, send, patience: float):
        self.send, self.patience, self.loop = send, patience, asyncio.get_running_loop()
        self.sending: dict[asyncio.Task, float] = {}  # since when
        self.late: set[asyncio.Task] = set()
        self.broken = False  # whether something could not be sent

    async def in_time(self, message) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.sending[task] = self.loop.time()
        try:
            await self.send(message)
        except OSError:
            self.broken = True
            raise
        except asyncio.CancelledError:
            if task not in self.late:
                raise
            self.late.discard(task)
            task.uncancel()
            self.broken = True
            raise OSError("the browser does not read what it asked for") from None
        finally:
            del self.sending[task]

    async def watched(self) -> None:
        while True:  # a clock for every message would cost more than most of them
            await asyncio.sleep(self.patience / 4)
            for task, since in self.sending.items():
                if task not in self.late and self.loop.time() - since > self.patience:
                    self.late.add(task)
                    task.cancel()
