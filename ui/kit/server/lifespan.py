"""What is done while the server runs, and when it ends, in the server itself.

When it begins: what is written to a browser leaves at once. Streamlit binds its socket without naming TCP as its protocol, and
asyncio then leaves Nagle's algorithm on: of two messages that follow each other the second waits until the first is acknowledged, a
way there and back, or 40 ms from a client that puts it off (uvicorn's issue 3149). Connections inherit it from what listens.

It asks nobody outside for its own address, as Streamlit does for the origin of every websocket that it does not know: in the thread
that serves all, for two seconds where there is no answer. Who reaches the app by whatever name has the same name in both.

Files that visitors take away are made in threads of which there are more than any few visitors can hold.

While it runs: classes whose day is over are deleted, as their students were told, whether or not anybody opens a page; and so are
sessions whose browser has left for good.

Asked by SIGTERM, as `docker stop` asks, it closes its connections, and then gives the signal to itself once more: Python has no time
to take itself apart, and workers that still load torch would go on until they notice.
"""

import asyncio
import gc
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

from streamlit import net_util

from core.settings import ending
from core.settings.memory import Grown
from ui.kit.server import log
from ui.kit.server.connections import left

THREADS = 64  # most of them wait: for words that are on their way, or for another file
GONE = 30.0  # seconds from one look at who has left to the next
GROWN = 5.0  # and from one at how large the process has become
FIRST, EVERY = 60.0, 600.0  # seconds until classes are deleted for the first time, and from then on
LOGGER = logging.getLogger(__name__)


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    undelayed()
    net_util.get_external_ip = lambda: None
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "made"))
    sweeping = [asyncio.create_task(each()) for each in (_swept, _gone, _grown)]
    with log.kept_short():
        yield
    for each in sweeping:
        each.cancel()
    ending.begin()


def undelayed() -> None:
    """Sets TCP_NODELAY on every TCP socket of this process that listens; who made it, and where it is kept, is not ours to know."""
    for each in gc.get_objects():
        if not issubclass(type(each), socket.socket) or each.fileno() == -1:
            continue
        if each.family in (socket.AF_INET, socket.AF_INET6) and each.type == socket.SOCK_STREAM:
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@contextmanager
def _survived(what: str) -> Iterator[None]:
    """Whatever is raised costs this look, and none of those that follow: a task that has ended says so to nobody."""
    try:
        yield
    except Exception:
        LOGGER.warning(what, exc_info=True)


async def _gone() -> None:
    while True:
        await asyncio.sleep(GONE)
        with _survived("those whose browser has left could not be looked through"):
            left.end_old()


async def _grown() -> None:
    grown = Grown()
    while True:
        await asyncio.sleep(GROWN)
        with _survived("memory could not be given back"):
            await asyncio.to_thread(grown.give_back)


async def _swept() -> None:
    await asyncio.sleep(FIRST)
    while True:
        with _survived("classes that are over could not be deleted"):  # a database that is away is tried again
            await asyncio.to_thread(_sweep)
        await asyncio.sleep(EVERY)


def _sweep() -> None:
    from core.teaching.classroom import Classroom  # only now: the server is to answer first

    classes = Classroom()
    try:
        classes.sweep()
    finally:
        classes.shut()
