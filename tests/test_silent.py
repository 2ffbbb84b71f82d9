"""Who asks and never reads is let go; everybody else is not even noticed."""

import asyncio
import contextlib

import pytest

from ui.kit.server.connections.silent import Silent


def answered(scope_type: str, reads: bool, patience: float = 0.05) -> list[str]:
    """What comes of an app that sends two messages to somebody who reads, or does not."""
    got = []

    async def app(scope, receive, send):
        for text in ("one", "two"):
            await send(text)

    async def send(message):
        if not reads and got:
            await asyncio.sleep(3600)
        got.append(message)

    asyncio.run(Silent(app, patience)({"type": scope_type}, None, send))
    return got


def test_who_reads_gets_all_of_it():
    assert answered("websocket", reads=True) == ["one", "two"]


def test_who_does_not_read_is_let_go_as_if_the_line_were_broken():
    with pytest.raises(OSError, match="does not read"):
        answered("websocket", reads=False)


@pytest.mark.parametrize("breaks", [True, False])
def test_what_comes_of_a_line_that_is_broken_is_no_error_and_everything_else_is(breaks):
    """Of a visitor who has left, with messages of his on their way."""

    async def app(scope, receive, send):
        with contextlib.suppress(OSError):
            await send("one")
        raise RuntimeError("sent once it was closed")

    async def send(message):
        if breaks:
            raise OSError("the browser is gone")

    with contextlib.nullcontext() if breaks else pytest.raises(RuntimeError):
        asyncio.run(Silent(app)({"type": "websocket"}, None, send))


def test_other_requests_are_passed_on():
    assert answered("http", reads=True) == ["one", "two"]
