"""The sentence on top of a page: a field to type in, and the list of examples beside it."""

import html
from collections.abc import Collection, Sequence

import streamlit as st

from core.model.text import EXAMPLES, shown
from ui.kit.panel.control import Control, choice, field
from ui.kit.store import value

OWN = "Your own text"
NAMED = 8  # unknown words that are named
NO_WORD = "There is no word to work on. Type a sentence above, or choose an example."


def sentence() -> list[Control]:
    """The controls of both."""
    return typed("Sentence", "text", "Type a sentence …", {example.name: example.text for example in EXAMPLES})


def typed(label: str, name: str, hint: str, examples: dict[str, str]) -> list[Control]:
    """Return the controls of a text, a setting of that name, and of examples for it: their names -> the texts."""
    text = value(name)
    texts = list(examples.values())
    words = list(examples)
    if text not in texts:
        texts.append(text)
        words.append(OWN)
    example = choice("Example", f"example_of_{name}", text, texts, words)
    # Another text: what was marked in the old one means nothing in it.
    anew = {"also": {"pairs": None}}
    return [field(label, name, hint) | anew, example | anew | {"set": name}]


def unknown_words(labels: Sequence[str], unknown: Collection[int]):
    """Which words of a text the model does not know; nothing where it knows all. unknown: their numbers, from 0."""
    if not unknown:
        return
    missing = list(dict.fromkeys(labels[at] for at in unknown))
    named = ", ".join(f"“{html.escape(shown(word))}”" for word in missing[:NAMED])
    rest = len(missing) - NAMED
    marked = " ".join(
        f"<span style='border-bottom:2px dotted #D55E00'>{html.escape(label)}</span>"
        if at in unknown
        else html.escape(label)
        for at, label in enumerate(labels)
    )
    st.html(
        f"<div style='font-size:.9rem;line-height:1.5'>This model does not know {named}{f' and {rest:,} more' * (rest > 0)}: "
        f"each is read as the same unknown word. <span style='opacity:.75'>{marked}</span></div>"
    )
