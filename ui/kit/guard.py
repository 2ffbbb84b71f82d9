"""The one place where errors become words, for a page, a part of it, and what is drawn again by itself."""

import functools
import logging
from contextlib import contextmanager

import streamlit as st

from core.checkpoints.tensors import CheckpointError
from core.settings.memory import MemoryLimit
from core.settings.panics import is_panic
from core.settings.setting import ConfigError


@contextmanager
def in_words():
    """A page, or a part of one: what is raised in it costs nothing but itself, and is said."""
    try:
        yield
    except (ConfigError, MemoryLimit, CheckpointError) as error:
        st.error(literal(error))
    except BaseException as error:
        if not (isinstance(error, Exception) or is_panic(error)):  # Streamlit ends a run so
            raise
        logging.exception("a page failed")
        told = getattr(error, "told", None)  # of a store or a cluster: what may be said of it to visitors
        st.error(
            literal(told)
            if told
            else f"Something went wrong here ({type(error).__name__}). Your settings are kept; change one and it goes on."
        )


def guarded(call):
    """The same function, as a part of the page by itself: for dialogs."""

    @functools.wraps(call)
    def safe(*given, **named):
        with in_words():
            return call(*given, **named)

    return safe


def fragment(call, run_every: float | None = None):
    """A part of the page that is drawn again without the rest, where the page's own guard does not stand around it."""
    return st.fragment(run_every=run_every)(guarded(call))


def literal(text) -> str:
    """Text that may hold anything a user typed, for places that render Markdown: every mark shows as itself."""
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$<>:@&^=" else c for c in str(text))
