"""Who asks and never reads is let go; everybody else is not even noticed."""

import asyncio

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


def test_other_requests_are_passed_on():
    assert answered("http", reads=True) == ["one", "two"]
