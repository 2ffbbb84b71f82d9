"""Who sends pieces of messages, pings or pongs without end is broken off; everybody else is not even noticed."""

import asyncio
import os
import socket
from types import SimpleNamespace

import pytest
import requests
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.serving import server
from ui.kit.server.connections import frames
from ui.kit.server.connections.frames import A_SECOND, AT_ONCE, READ

EMPTY, PING, PONG = b"\x00\x80\0\0\0\0", b"\x89\x80\0\0\0\0", b"\x8a\x80\0\0\0\0"  # masked with nothing


def protocol():
    clock, done = [0.0], []
    transport = SimpleNamespace(closed=False)
    transport.is_closing = lambda: transport.closed
    transport.abort = lambda: setattr(transport, "closed", True)
    made = SimpleNamespace(transport=transport, loop=SimpleNamespace(time=lambda: clock[0]))
    return made, clock, done


def test_as_many_as_may_come_at_once_and_then_so_many_a_second():
    one, clock, done = protocol()
    handle = frames._counted(lambda protocol, *event: done.append(event))
    for number in range(AT_ONCE):
        handle(one, number)
    assert len(done) == AT_ONCE and not one.transport.closed
    for _ in range(99):
        clock[0] += 1
        for number in range(A_SECOND):
            handle(one, number)
    assert len(done) == AT_ONCE + 99 * A_SECOND and not one.transport.closed
    handle(one, "one more")
    handle(one, "and what came with it")
    assert len(done) == AT_ONCE + 99 * A_SECOND and one.transport.closed


def test_little_is_read_at_a_time():
    made = []
    transport = SimpleNamespace(max_size=1 << 18)
    frames._in_small_reads(lambda protocol, transport: made.append(transport))(None, transport)
    assert transport.max_size == READ and made == [transport]
    frames._in_small_reads(lambda protocol, transport: made.append(transport))(None, object())  # that of another loop
    assert len(made) == 2


def shake(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    line = socket.create_connection((host, int(port)), timeout=60)
    line.sendall(
        f"GET /_stcore/stream HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    assert b" 101 " in line.recv(4096)
    return line


@pytest.mark.thorough
def test_a_connection_of_frames_without_a_message_is_broken_off():
    with server() as (address, _):
        for many in (b"\x02\x80\0\0\0\0" + 200_000 * EMPTY, 200_000 * PING, 200_000 * PONG):
            line = shake(address)
            with pytest.raises(OSError):
                for _ in range(20):
                    line.sendall(many)
            assert requests.get(f"{address}/_stcore/health", timeout=60).status_code == 200
        asyncio.run(in_pieces(address))


async def in_pieces(address: str):
    """A long message in pieces, and a few pings, are nothing special."""
    stream = f"{address.replace('http', 'ws')}/_stcore/stream"
    async with websockets.connect(stream, subprotocols=["streamlit"], max_size=None) as line:
        for _ in range(20):
            await (await line.ping(os.urandom(4)))
        message = BackMsg()
        message.rerun_script.query_string = "a=" + 5000 * "b"
        whole = message.SerializeToString()
        await line.send([whole[at : at + 10] for at in range(0, len(whole), 10)])
        said = ForwardMsg()
        while said.WhichOneof("type") != "script_finished":
            said.ParseFromString(await asyncio.wait_for(line.recv(), 60))
