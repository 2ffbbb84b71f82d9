"""Sessions whose browser has left. KEPT of them are kept for those whose connection was only broken: for two minutes, but where
nobody else leaves for as long as nobody does. Each has three file handles, and whatever its page held.

To be called in the thread that serves everybody, as Streamlit asks of whoever ends a session, but for end_holding.
"""

import asyncio
import gc
import logging
from collections.abc import Callable
from functools import partialmethod

from streamlit.runtime import exists, get_instance
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_session_storage import MemorySessionStorage

KEPT = 127
ALL = 100_000  # more than there ever are
LOGGER = logging.getLogger(__name__)


def keep_who_looked() -> None:
    """From here on Streamlit itself, which would keep the last 128 to leave, ends none for want of room: Handles does."""
    MemorySessionStorage.__init__ = partialmethod(MemorySessionStorage.__init__, maxsize=ALL)  # type: ignore[assignment, method-assign]
    MemorySessionStorage.save = _save  # type: ignore[method-assign]


_plain_save = MemorySessionStorage.save


def _save(storage: MemorySessionStorage, kept) -> None:
    """Where one comes, the store drops those whose two minutes are over, and nobody ends them."""
    _end_old(storage)
    _plain_save(storage, kept)


def sessions() -> list[str]:
    """Who has left and is kept: who looked at least first, and of those the first to leave. So many who come and go at once do
    not take the place of one whose connection is broken."""
    if not exists():
        return []
    kept = get_instance()._session_mgr._session_storage.list()
    return [each.session.id for each in sorted(kept, key=lambda each: each.script_run_count)]


def end(session: str) -> None:
    """Keep it no longer, and nothing of what it held."""
    kept = get_instance()._session_mgr.get_session_info(session)
    _end(lambda: get_instance().close_session(session), kept.session if kept else None)


def end_unused() -> None:
    """The same of those that never had a page: nobody comes back to one, and in a crowd they would take the places of others."""
    for each in get_instance()._session_mgr._session_storage.list() if exists() else ():
        if not each.script_run_count:
            end(each.session.id)


def end_holding(key: str) -> None:
    """The same of those whose state has this key, asked from a page's thread."""
    if exists():
        loop = get_instance()._get_async_objs().eventloop
        if asyncio.run_coroutine_threadsafe(_end_holding(key), loop).result(10):
            gc.collect()


async def _end_holding(key: str) -> bool:
    holding = [each for each in get_instance()._session_mgr._session_storage.list() if _holds(each.session, key)]
    for each in holding:
        end(each.session.id)
    return bool(holding)


def end_old() -> None:
    """The same of those whose two minutes are over."""
    if exists():
        _end_old(get_instance()._session_mgr._session_storage)


def _end_old(storage) -> None:
    for _, kept in storage._cache.expire():
        _end(kept.session.shutdown, kept.session)


def _end(shut: Callable[[], None], session: AppSession | None) -> None:
    """Whatever is wrong with one of them keeps no other from being ended."""
    try:
        shut()
    except Exception:
        LOGGER.warning("a session whose browser has left could not be ended as Streamlit ends it", exc_info=True)
    if session:
        _empty(session)


def _holds(session: AppSession, key: str) -> bool:
    """Asked for a key, Streamlit would read what a browser said of a widget."""
    return key in session.session_state._new_session_state or key in session.session_state._old_state


def _empty(session: AppSession) -> None:
    """What was uploaded is held by its page's state, until somebody collects garbage. Streamlit reads each value of a widget before it
    drops it, and what a browser said may be none that can be read."""
    widgets = session.session_state._new_widget_state
    widgets.states.clear()
    widgets.widget_metadata.clear()
    session.session_state.clear()
