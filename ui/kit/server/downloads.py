"""Files to download, each written when its link is followed.

Streamlit forgets a deferred download once two scripts have ended, anybody's: with three other users
at work 11 of 12 downloads failed. Here what a page offers belongs to its session, until that page,
or the next one, has been drawn again without it.

The server imports this module before there is a runtime: nothing that registers a component may be
imported here.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from urllib.parse import quote
from weakref import WeakValueDictionary

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

OFFERS = "_offers"  # key in the session
AT_ONCE = 4  # files that are written at a time
GONE = "This download has expired. Go back to its page and download it again."
FAILED = "This file could not be written. The server's log has the reason."


@dataclass(frozen=True)
class Offer:
    """A file that is written when it is asked for."""

    write: Callable[[], str | bytes]
    mime: str
    delay: float  # seconds to wait for what was typed just before


class Offers(dict[str, Offer]):
    """Offered files of one session, by file name."""

    def __init__(self) -> None:
        super().__init__()
        self.token = secrets.token_urlsafe(16)
        self.fresh: set[str] = set()  # names that the current run has offered


_by_token: WeakValueDictionary[str, Offers] = WeakValueDictionary()
_turns = asyncio.Semaphore(AT_ONCE)


def _offers() -> Offers:
    """Return this session's offers, new ones if it has none."""
    if OFFERS not in st.session_state:
        st.session_state[OFFERS] = Offers()
    offers: Offers = st.session_state[OFFERS]
    _by_token[offers.token] = offers
    return offers


def begin_run() -> None:
    """Begin a run of a page of this session; earlier offers stay until end_run()."""
    _offers().fresh.clear()


def end_run() -> None:
    """Withdraw the offers that the finished run of a page did not repeat."""
    offers = _offers()
    for file in offers.keys() - offers.fresh:
        offers.pop(file, None)


def offer(file: str, write: Callable[[], str | bytes], mime: str, delay: float = 0.0) -> str:
    """Offer a file, written by `write` when it is fetched; return its relative address.

    Another one of the same name replaces it; `mime` is its type, `delay` its wait in s.
    """
    offers = _offers()
    offers[file] = Offer(write, mime, delay)
    offers.fresh.add(file)
    return f"./downloads/{offers.token}/{quote(file, safe='')}"


def download_link(
    label: str,
    file: str,
    write: Callable[[], str | bytes],
    mime: str,
    delay: float = 0.0,
    primary: bool = False,
) -> None:
    """Draw a link to a file, written `delay` seconds after a click; `primary`: as a button."""
    kind = "ablation-download primary" if primary else "ablation-download"
    address = offer(file, write, mime, delay)
    st.html(f'<a class="{kind}" href="{address}" download>{escape(label)}</a>', width="content")


def downloads_route(base: str) -> Route:
    """Return the route of all offered files, below the base path ("" or "/path")."""

    async def answer(request: Request) -> Response:
        offers = _by_token.get(request.path_params["token"])
        offer = offers and offers.get(request.path_params["file"])
        if not offer:
            return PlainTextResponse(GONE, 404)
        await asyncio.sleep(offer.delay)
        try:
            async with _turns:
                content = await asyncio.to_thread(offer.write)
        except Exception:
            logging.exception("a file could not be written")
            return PlainTextResponse(FAILED, 500)
        # The browser takes the file's name from the end of the address.
        headers = {"Content-Disposition": "attachment", "Cache-Control": "no-store"}
        return Response(content, media_type=offer.mime, headers=headers)

    return Route(f"{base}/downloads/{{token}}/{{file}}", answer)
