"""Guards around pages, fragments and dialogs: error messages and progress bars."""

import functools
import logging
import re
import time
from collections.abc import Callable
from contextlib import contextmanager

import streamlit as st

from core.checkpoints.tensors import CheckpointError
from core.settings.environment import ServerError
from core.settings.memory import MemoryLimitError
from core.settings.progress import report_to
from core.settings.setting import ConfigError
from core.train.budget import TimeLimitError
from ui.kit import turns

# seconds from the begin of the page, and between two drawings
AFTER = 1.0
EVERY = 0.3

JOINER = "\u2060"
UNBROKEN = re.compile(r"(?<=\d) (?=%)|(?<=×) (?=\d)")
ADDRESS = re.compile(
    r"www(?=\\\.)|\\:(?=//)|\\@", re.IGNORECASE
)  # each mark has its backslash before it


@contextmanager
def show_errors():
    """Catch errors raised inside and draw them as messages; log unexpected ones."""
    try:
        yield
    except (ConfigError, MemoryLimitError, TimeLimitError, CheckpointError) as error:
        st.error(literal(error))
    except BaseException as error:
        # Libraries written in Rust raise what is no Exception where they have a mistake.
        is_panic = type(error).__module__ == "pyo3_runtime"
        if not (isinstance(error, Exception) or is_panic):  # Streamlit ends a run so
            raise
        logging.exception("a page failed")
        # A store or a cluster says what users may read.
        message = error.public_message if isinstance(error, ServerError) else ""
        st.error(
            literal(message)
            if message
            else (
                f"Something went wrong ({type(error).__name__}). Your settings are safe: change any"
                " of them to try again."
            )
        )


class Bar:
    """Progress bar of a page's long computations, from one second on.

    Streamlit ends the run of a user who has left or changed something when the page next calls it:
    drawing the bar also lets such a run end.
    """

    def __init__(self):
        self.place = None
        self.next = time.monotonic() + AFTER

    def draw(self, share: float | None, description: str):
        """Draw the share done (None: 0) after 1 s, at most every 0.3 s; let other runs compute."""
        turns.give_up_turn()
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + EVERY
        self.place = self.place or st.empty()
        self.place.progress(min(1.0, share or 0.0), text=description[:1].upper() + description[1:])

    def clear(self):
        """Remove the bar."""
        if self.place is not None:
            self.place.empty()


@contextmanager
def show_progress():
    """Draw a progress bar while computations inside report (core's report_to); yield nothing."""
    bar = Bar()
    with report_to(bar.draw):
        yield
    bar.clear()


def showing_errors(call: Callable):
    """Return the function wrapped: errors are drawn as messages, with None as result."""

    @functools.wraps(call)
    def safe(*args, **named):
        with show_errors():
            return call(*args, **named)

    return safe


def fragment(call: Callable, run_every: float | None = None):
    """Return the function as a Streamlit fragment to call; its errors are drawn as messages."""
    return st.fragment(run_every=run_every)(showing_errors(call))


def literal(text: object) -> str:
    """Escape any text for Markdown: marks show as themselves, and addresses are no links.

    https://here, www.here and a@here would be links without a mark: an invisible word joiner goes
    between. A line never breaks between a number and its "%" or "×".
    """
    joined = UNBROKEN.sub("\N{NO-BREAK SPACE}", str(text))
    marked = "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$<>:@&^=" else c for c in joined)
    return ADDRESS.sub(lambda match: match[0] + JOINER, marked)
