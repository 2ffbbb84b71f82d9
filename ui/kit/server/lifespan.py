"""What is done while the server runs, and when it ends, in the server itself.

While it runs: classes whose day is over are deleted, as their students were told, whether or not anybody opens a page.

Asked by SIGTERM, as `docker stop` asks, it closes its connections, and then gives the signal to itself once more: Python has no time
to take itself apart, and workers that still load torch would go on until they notice.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from core.settings import ending

FIRST, EVERY = 60.0, 600.0  # seconds until classes are deleted for the first time, and from then on


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    sweeping = asyncio.create_task(_swept())
    yield
    sweeping.cancel()
    ending.begin()


async def _swept() -> None:
    await asyncio.sleep(FIRST)
    while True:
        await asyncio.to_thread(_sweep)
        await asyncio.sleep(EVERY)


def _sweep() -> None:
    from core.teaching.classroom import Classroom  # only now: the server is to answer first

    classes = Classroom()
    try:
        classes.sweep()
    except Exception:  # a database that is away is tried again
        logging.getLogger(__name__).warning("classes that are over could not be deleted", exc_info=True)
    finally:
        classes.shut()
