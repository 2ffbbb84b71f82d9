"""The row with the text that the model reads, and which of its words the model does not know."""

import html

import streamlit as st

from core.experiments.trained.prompt import Prompt
from core.settings.wording import count
from ui.kit.panel.control import Control
from ui.shared.model_defaults import prompts
from ui.shared.sentence import typed


def prompt_row(look) -> list[Control]:
    """The controls of the text, and of the list of examples beside it."""
    return typed("Prompt", "prompt", "Type a text …", dict(prompts(look.model)))


def unknown(prompt: Prompt):
    """Which words the model does not know."""
    if not prompt.unknown:
        return
    words = " ".join(
        f"<span style='border-bottom:2px dotted #D55E00'>{html.escape(label)}</span>"
        if at in prompt.unknown
        else html.escape(label)
        for at, label in enumerate(prompt.labels)
    )
    st.html(
        f"<div style='font-size:.9rem;line-height:1.5'>{words} &nbsp; <span style='opacity:.75'>{count(len(prompt.unknown), 'word')} "
        "that this model does not know (dotted): each is read as the same unknown word.</span></div>"
    )
