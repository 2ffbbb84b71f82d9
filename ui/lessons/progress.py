"""What a visitor has predicted, lesson by lesson. It stays in the browser (progress.js); the server has it while the page is open.

Nothing is kept of a person: no account, no name. What comes from the browser is read like a link: what cannot be is left out.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import streamlit as st

from core.teaching.lessons.entry import Entry, read
from ui.kit.panel.control import handle
from ui.kit.panel.script import with_store
from ui.kit.store import session

KEY, KEPT = "progress", "progress"

_component = st.components.v2.component(
    "ablation_progress",
    html="<div></div>",
    js=with_store((Path(__file__).parent / "progress.js").read_text()),
)


@dataclass
class Progress:
    """entries: lesson -> prediction; loaded: whether the browser has said what it has kept; gone: lessons to be predicted anew."""

    entries: dict[str, Entry]
    loaded: bool = False
    gone: tuple[str, ...] = ()


def progress() -> Progress:
    """Of this visitor."""
    return session().kept.setdefault(KEPT, Progress({}))


def store(name: str, entry: Entry):
    """Take down a prediction (a callback)."""
    held = progress()
    held.entries[name] = entry
    held.gone = tuple(each for each in held.gone if each != name)


def carry(name: str, answer: int):
    """Take down the answer to the last question of a lesson (a callback)."""
    held = progress()
    if name in held.entries:
        held.entries[name] = replace(held.entries[name], carried=answer)


def forget(name: str):
    """A lesson is to be predicted anew (a callback)."""
    held = progress()
    held.entries.pop(name, None)
    held.gone = (*held.gone, name)


def restore(entries: dict[str, Entry]):
    """Take down what a file holds; it goes before what there is (a callback)."""
    for name, entry in entries.items():
        store(name, entry)


def keep():
    """Let the browser keep what there is, and say what it has kept."""
    held = session().kept.setdefault(KEPT, Progress({}))
    entries = {name: asdict(entry) for name, entry in held.entries.items()}
    data = {"entries": entries, "gone": held.gone, "loaded": held.loaded, "set": handle(KEY, _load)}
    _component(key=KEY, data=data)


def _load(kept: str):
    """Take over what the browser has kept; what was predicted since goes before it."""
    held = progress()
    held.loaded = True
    for name, entry in read(kept).items():
        if name not in held.gone:
            held.entries.setdefault(name, entry)
