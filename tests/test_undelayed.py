"""What the server writes to a browser leaves at once, though its socket was bound without naming TCP (ui/kit/server/lifespan.py)."""

import asyncio
import socket

import pytest

from ui.kit.server import lifespan


async def connected(family: socket.AddressFamily) -> bool:
    """A connection to a socket that is bound as Streamlit binds its own -> whether it waits for nothing before it sends."""
    told = asyncio.get_running_loop().create_future()

    def came(reader, writer):
        told.set_result(bool(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))

    with socket.socket(family) as listening:
        try:
            listening.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        except OSError:
            pytest.skip("this machine has no address of that family")
        listening.listen()
        async with lifespan.lifespan(None), await asyncio.start_server(came, sock=listening):
            writer = (await asyncio.open_connection(*listening.getsockname()[:2]))[1]
            try:
                return await told
            finally:
                writer.close()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_no_connection_waits_before_it_sends(monkeypatch, family):
    monkeypatch.setattr(lifespan.ending, "begin", lambda: None)
    assert asyncio.run(connected(family))


def test_other_sockets_are_left_as_they_are():
    """Also those that are closed, talk over UDP, or only connect."""
    closed, datagrams, idle = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), socket.socket()
    closed.close()
    with datagrams, idle:
        lifespan.undelayed()
        assert idle.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
