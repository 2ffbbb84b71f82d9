"""Sessions whose browser has left. Streamlit keeps the last 128 for one whose connection was only broken: for two minutes, but where
nobody else leaves for as long as nobody does. Each has three file handles, and whatever its page held.

To be called in the thread that serves everybody, as Streamlit asks of whoever ends a session.
"""

from streamlit.runtime import exists, get_instance
from streamlit.runtime.app_session import AppSession


def sessions() -> list[str]:
    """Who has left and is kept, the first to leave first."""
    return [each.session.id for each in get_instance()._session_mgr._session_storage.list()] if exists() else []


def end(session: str) -> None:
    """Keep it no longer, and nothing of what it held."""
    kept = get_instance()._session_mgr.get_session_info(session)
    get_instance().close_session(session)
    if kept:
        _empty(kept.session)


def end_old() -> None:
    """The same of those whose two minutes are over."""
    for _, kept in get_instance()._session_mgr._session_storage._cache.expire() if exists() else ():
        kept.session.shutdown()
        _empty(kept.session)


def _empty(session: AppSession) -> None:
    """What was uploaded is held by its page's state, until somebody collects garbage."""
    session.session_state.clear()
