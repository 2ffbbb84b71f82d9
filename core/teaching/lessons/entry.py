"""What somebody predicted of a lesson, and how it is read from where it was kept: what cannot be is left out."""

import json
from dataclasses import dataclass
from typing import Any

from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.lessons import lesson, read_lesson
from core.teaching.lessons.prediction import BECAUSE, SURE, Answer, check

LONGEST = 200_000  # letters that a browser may send


@dataclass(frozen=True)
class Entry:
    """A prediction. carried: the answer to the question that carries it over, or None."""

    answer: Answer
    sure: int
    because: str = ""
    carried: int | None = None


def read(told: str) -> dict[str, Entry]:
    """Predictions as a browser tells of them: those that can be."""
    try:
        given = json.loads(told) if len(told) <= LONGEST else {}
    except (ValueError, RecursionError):
        given = {}
    return entries_of(given)


def entries_of(given: Any) -> dict[str, Entry]:
    """Lesson -> prediction, of what JSON has held: those that can be, in the order of the lessons."""
    if not isinstance(given, dict):
        return {}
    found = {name: _entry(read_lesson(name), given[name]) for name in lesson if name in given}
    return {name: entry for name, entry in found.items() if entry}


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


def clean(line: str, most: int = BECAUSE) -> str:
    """One line of so many letters at the most that can be shown and written anywhere."""
    printable = "".join(c if c.isprintable() else " " for c in line)
    return " ".join(printable.split())[:most].rstrip()
