"""What a visitor has predicted, lesson by lesson. It stays in the browser (progress.js); the server has it while the page is open.

Nothing is kept of a person: no account, no name. What comes from the browser is read like a link: what cannot be is left out.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.lessons import lesson, read_lesson
from core.teaching.lessons.prediction import BECAUSE, SURE, Answer, check
from ui.kit.server.scripts import served
from ui.kit.session.visitor import calm_visitor, picked_in, visitor

KEY, KEPT = "progress", "progress"
LONGEST = 200_000  # letters that a browser may send

_component = st.components.v2.component(
    "ablation_progress",
    html="<div></div>",
    js=served((Path(__file__).parent / "progress.js").read_text()),
)


@dataclass(frozen=True)
class Entry:
    """A prediction. carried: the answer to the question that carries it over, or None."""

    answer: Answer
    sure: int
    because: str = ""
    carried: int | None = None


@dataclass
class Progress:
    """entries: lesson -> prediction; loaded: whether the browser has said what it has kept; gone: lessons to be predicted anew."""

    entries: dict[str, Entry]
    loaded: bool = False
    gone: tuple[str, ...] = ()


def progress() -> Progress:
    """Of this visitor."""
    return calm_visitor().kept.setdefault(KEPT, Progress({}))


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


def keep():
    """Let the browser keep what there is, and say what it has kept."""
    held = visitor().kept.setdefault(KEPT, Progress({}))
    entries = {name: asdict(entry) for name, entry in held.entries.items()}
    _component(key=KEY, data={"entries": entries, "gone": held.gone, "loaded": held.loaded}, on_kept_change=_loaded)


def _loaded():
    held, told = progress(), picked_in(KEY, str, "kept")
    held.loaded = True
    for name, entry in read(told or "").items():
        if name not in held.gone:
            held.entries.setdefault(name, entry)


def read(told: str) -> dict[str, Entry]:
    """Predictions as a browser or a file tells of them: those that can be."""
    try:
        given = json.loads(told) if len(told) <= LONGEST else {}
    except (ValueError, RecursionError):
        given = {}
    read_ = {
        name: _entry(read_lesson(name), given[name]) for name in lesson if isinstance(given, dict) and name in given
    }
    return {name: entry for name, entry in read_.items() if entry}


def _entry(of: Lesson, given: Any) -> Entry | None:
    if of.prediction is None or of.transfer is None or not isinstance(given, dict):
        return None
    try:
        answer = check(of.prediction, given.get("answer"))
    except ValueError:
        return None
    sure, because, carried = given.get("sure"), given.get("because", ""), given.get("carried")
    if type(sure) is not int or sure not in SURE or not isinstance(because, str):
        return None
    if type(carried) is not int or not 0 <= carried < len(of.transfer.options):
        carried = None
    return Entry(answer, sure, clean(because), carried)


def clean(because: str) -> str:
    """One line that can be shown and written anywhere."""
    printable = "".join(c if c.isprintable() else " " for c in because)
    return " ".join(printable.split())[:BECAUSE]
