"""Extension of Streamlit's server: routes and background tasks.

The server imports this module before there is a runtime: nothing that registers a component may be
imported here.
"""

import asyncio
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from streamlit import config

from core.settings import ending
from core.settings.memory import Grown
from ui.kit.server.downloads import downloads_route
from ui.kit.server.scripts import scripts_route

PAGES = Path(__file__).parent.parent.parent.parent / "pages"
FILE_HANDLES = 10_240  # each open browser takes four; many shells allow 256 or 1,024


def routes() -> list[Route]:
    """Return the app's own routes."""
    path = (config.get_option("server.baseUrlPath") or "").strip("/")
    base = f"/{path}" if path else ""
    return [*_slash_redirect(base), *_typed_pages(base), scripts_route(base), downloads_route(base)]


def _slash_redirect(base: str) -> list[Route]:
    """Return the route that adds a slash to the app's base path; [] without a base path.

    Streamlit's own redirect names scheme and host, which a server behind a proxy does not know.
    """
    end = base.rpartition("/")[2]
    go = lambda request: RedirectResponse(f"./{end}/?{request.url.query}".removesuffix("?"))  # noqa: E731
    return [Route(base, go)] if base else []


def _typed_pages(base: str) -> list[Route]:
    """Return routes that redirect typed addresses such as /class and /one-block."""
    pages: list[Route] = []
    for file in sorted(PAGES.glob("*.py")):
        name = re.sub(r"^\d+_", "", file.stem)

        def redirect(request: Request, name: str = name) -> Response:
            return RedirectResponse(f"./{name}?{request.url.query}".removesuffix("?"))

        spellings = sorted({name.lower(), name.lower().replace("_", "-")})
        pages.extend(Route(f"{base}/{spelling}", redirect) for spelling in spellings)
    return pages


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    """Run background tasks while the server runs, and end its workers when it ends."""
    raise_file_limit()
    grown = Grown()
    tasks = [
        asyncio.create_task(_repeat(5.0, grown.give_back)),
        asyncio.create_task(_repeat(600.0, delete_old_classes)),
    ]
    yield
    for task in tasks:
        task.cancel()
    ending.run_exit_calls()


def raise_file_limit() -> None:
    """Allow this process as many open files as the system does, up to FILE_HANDLES."""
    if sys.platform == "win32":  # sockets have no such limit there
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = FILE_HANDLES if hard == resource.RLIM_INFINITY else min(FILE_HANDLES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


async def _repeat(seconds: float, call: Callable[[], object]) -> None:
    """Call a function every so many seconds in a thread; log its errors."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(call)
        except Exception:
            logging.exception("a task of the server failed and will be tried again")


def delete_old_classes() -> None:
    """Delete classes older than a day from the store, once; errors of the store are raised."""
    from core.teaching.classroom import Classroom  # loaded late: the server answers first

    classes = Classroom()
    try:
        classes.sweep()
    finally:
        classes.shut()
