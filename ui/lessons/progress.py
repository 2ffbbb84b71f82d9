"""Predictions of this user by lesson, which the browser stores (progress.js).

No personal data is stored: no account, no name. The browser's message is read like a link: invalid
entries are left out.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from core.teaching.lessons.language import clean
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.prediction import BECAUSE, SURE, Entry, check_answer
from core.teaching.lessons.reader import lesson, read_lesson
from ui.kit.panel.control import register_handler
from ui.kit.server.scripts import with_store
from ui.kit.store import session

KEY = "progress"
KEPT = "progress"
LONGEST = 200_000  # characters that a browser may send

_component = st.components.v2.component(
    "ablation_progress",
    html="<div></div>",
    js=with_store((Path(__file__).parent / "progress.js").read_text()),
)


@dataclass
class Progress:
    """Predictions of a session.

    Args:
        entries: Prediction by lesson.
        loaded: Whether the browser has sent its stored predictions.
        deleted: Lessons whose prediction was deleted.
    """

    entries: dict[str, Entry]
    loaded: bool = False
    deleted: tuple[str, ...] = ()


def progress() -> Progress:
    """Return the predictions of this session, empty at first."""
    return session().kept.setdefault(KEPT, Progress({}))


def store_prediction(lesson_name: str, entry: Entry) -> None:
    """Store the prediction of a lesson in the session, replacing an earlier one (a callback)."""
    stored = progress()
    stored.entries[lesson_name] = entry
    stored.deleted = tuple(other for other in stored.deleted if other != lesson_name)


def store_transfer_answer(lesson_name: str, option_index: int) -> None:
    """Store a lesson's transfer answer, an index from 0; do nothing without a prediction."""
    entries = progress().entries
    if lesson_name in entries:
        entries[lesson_name] = replace(entries[lesson_name], carried=option_index)


def forget_prediction(lesson_name: str) -> None:
    """Delete the prediction of a lesson, so that it can be made again (a callback)."""
    stored = progress()
    stored.entries.pop(lesson_name, None)
    stored.deleted = (*stored.deleted, lesson_name)


def sync_with_browser() -> None:
    """Draw the component that stores predictions in the browser; it sends those it has later."""
    stored = progress()
    entries = {name: asdict(entry) for name, entry in stored.entries.items()}
    data = {
        "entries": entries,
        "gone": stored.deleted,
        "loaded": stored.loaded,
        "set": register_handler(KEY, _load),
    }
    data["page"] = session().page
    _component(key=KEY, data=data)


def _load(text: str) -> None:
    """Add the predictions that the browser has stored; newer ones of this session win."""
    stored = progress()
    stored.loaded = True
    for name, entry in read_predictions(text).items():
        if name not in stored.deleted:
            stored.entries.setdefault(name, entry)


def read_predictions(text: str) -> dict[str, Entry]:
    """Parse lesson -> prediction from a browser's JSON; invalid ones are left out."""
    try:
        document = json.loads(text) if len(text) <= LONGEST else {}
    except (ValueError, RecursionError):
        document = {}
    if not isinstance(document, dict):
        return {}
    stored_entries = {
        name: _read_entry(read_lesson(name), document[name]) for name in lesson if name in document
    }
    return {name: entry for name, entry in stored_entries.items() if entry}


def _read_entry(lesson_read: Lesson, document: Any) -> Entry | None:
    """Return a lesson's prediction from JSON data; None if it is invalid."""
    if (
        lesson_read.prediction is None
        or lesson_read.transfer is None
        or not isinstance(document, dict)
    ):
        return None
    try:
        answer = check_answer(lesson_read.prediction, document.get("answer"))
    except ValueError:
        return None
    sure = document.get("sure")
    because = document.get("because", "")
    carried = document.get("carried")
    if type(sure) is not int or sure not in SURE or not isinstance(because, str):
        return None
    if type(carried) is not int or not 0 <= carried < len(lesson_read.transfer.options):
        carried = None
    return Entry(answer, sure, clean(because)[:BECAUSE], carried)
