"""The row with the text that the model reads, and which of its words the model does not know."""

from contextlib import suppress
from functools import partial

import streamlit as st

from core.checkpoints import Opened
from core.checkpoints.tokens import Words
from core.experiments.trained import knockout, vocabulary
from core.experiments.trained import prompt as experiment
from core.experiments.trained.prompt import Prompt
from core.model.text import words
from core.settings.memory import MemoryLimit
from core.settings.setting import ConfigError
from ui.kit.page import literal
from ui.kit.panel.control import Control, lexicon, press
from ui.kit.store import change, value
from ui.shared.model_defaults import prompts
from ui.shared.sentence import typed, unknown_words


def prompt_row(look) -> list[Control]:
    """The controls of the text, and of the list of examples beside it."""
    return typed("Prompt", "prompt", "Type a text …", dict(prompts(look.model)))


def words_row(look, opened: Opened) -> list[Control]:
    """The words of its grammar to write with, and what ends the text; none for a model that has learnt something else."""
    if not (opened.task == "sentences" and isinstance(opened.tokens, Words)):
        return []
    written = words(look.prompt)
    groups = vocabulary.offered(written)
    about = "The whole model writes on, the likeliest word each time, up to its full stop."
    if written and written[-1] == vocabulary.END:
        about += " This text has its full stop: there is nothing to add."
    return [
        press("Complete it", "complete", about, partial(_complete, look, opened), "playlist_add_check"),
        lexicon("Words it knows", "lexicon", "prompt", ("Can come next", "All others"), groups),
    ]


def _complete(look, opened: Opened):
    """Write the text to its end, as it stands by now: it may have been typed just before (a callback)."""
    text = value("prompt")
    if not words(text) or words(text)[-1] == vocabulary.END:
        return
    with suppress(ConfigError, MemoryLimit):  # as the page says itself of a text that cannot be read
        read = experiment.read(opened, text)
        ending = vocabulary.completed(knockout.bench(opened, look.texts), read)
        change(prompt=" ".join([text.strip(), *ending]))


def as_read(prompt: Prompt):
    """What of the text the model does not read as it stands: what was left out, and which words it does not know."""
    for note in prompt.notes:
        st.caption(literal(note))
    unknown_words(prompt.labels, prompt.unknown)
