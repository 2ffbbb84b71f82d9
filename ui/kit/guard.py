"""What stands around a page, a part of it, and what is drawn again by itself: errors become words, and what takes long a bar."""

import functools
import logging
import re
import time
from contextlib import contextmanager

import streamlit as st

from core.checkpoints.tensors import CheckpointError
from core.settings.memory import MemoryLimit
from core.settings.progress import watched
from core.settings.setting import ConfigError
from core.train.budget import TimeLimit
from ui.kit import turns

AFTER, EVERY = 1.0, 0.3  # seconds from the begin of the page, and between two drawings

JOINER = "\u2060"
ADDRESS = re.compile(r"www(?=\\\.)|\\:(?=//)|\\@", re.IGNORECASE)  # each mark has its backslash before it


@contextmanager
def in_words():
    """A page, or a part of one: what is raised in it costs nothing but itself, and is said."""
    try:
        yield
    except (ConfigError, MemoryLimit, TimeLimit, CheckpointError) as error:
        st.error(literal(error))
    except BaseException as error:
        # Libraries written in Rust raise what is no Exception where they have a mistake.
        is_panic = type(error).__module__ == "pyo3_runtime"
        if not (isinstance(error, Exception) or is_panic):  # Streamlit ends a run so
            raise
        logging.exception("a page failed")
        shown = getattr(error, "told", None)  # of a store or a cluster: what may be said of it to visitors
        st.error(
            literal(shown)
            if shown
            else f"Something went wrong here ({type(error).__name__}). Your settings are kept; change one and it goes on."
        )


class Bar:
    """How far a page is with what takes long: one bar, where it first had to wait, drawn after a second and now and then from
    there on. Streamlit ends the run of a visitor who has left, or changed something, where the page next calls it: so that it
    is drawn is also what lets it end.
    """

    def __init__(self):
        self.place, self.next = None, time.monotonic() + AFTER

    def draw(self, share: float | None, what: str):
        turns.given_up()
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + EVERY
        self.place = self.place or st.empty()
        self.place.progress(min(1.0, share or 0.0), text=what[:1].upper() + what[1:])

    def clear(self):
        if self.place is not None:
            self.place.empty()


@contextmanager
def progress_drawn():
    """Whatever takes long in here is drawn as a bar."""
    bar = Bar()
    with watched(bar.draw):
        yield
    bar.clear()


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
    """Text that may hold anything a user typed, for places that render Markdown: every mark shows as itself, and no address is a link.

    An address would be one without any mark, https://here or www.here or a@here: a word joiner, which is not seen, goes between.
    """
    marked = "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$<>:@&^=" else c for c in str(text))
    return ADDRESS.sub(lambda found: found[0] + JOINER, marked)
