"""What is done when the server ends, in the server itself.

Asked by SIGTERM, as `docker stop` asks, it closes its connections, and then gives the signal to itself once more: Python has no time
to take itself apart, and workers that still load torch would go on until they notice.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from core.settings import ending


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    yield
    ending.begin()
