"""Numbers of lessons in words: each with its unit, its interval, and what it is a mean of."""

import math
import re
from collections.abc import Mapping

from core.measure.intervals import Interval
from core.settings.wording import fixed, number
from core.teaching.lessons.lesson import FIELD, Lesson
from core.teaching.lessons.outcome import Outcome
from core.teaching.lessons.readings import EXACT, Measured, measured, reading


def written(value: float, unit: str) -> str:
    """A number with its unit: "83 %", "−39.5 points", "49,984", "8.0 times"."""
    if math.isnan(value):
        return "no number"
    if unit == "percent":
        return f"{fixed(100 * value, 0 if value in (0, 1) or 0.1 <= value <= 0.9 else 1)} %"
    if unit == "points":
        return f"{fixed(100 * value, 1)} points"
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "times":
        return f"{fixed(value) if 0.1 <= value < 100 else number(value)} times"
    return number(value)


def reach(found: Interval, unit: str) -> str:
    """An interval: "78 to 86 %"."""
    low, high = written(found.low, unit), written(found.high, unit)
    shared = next((end for end in (" %", " points", " times") if low.endswith(end)), "")
    return f"{low.removesuffix(shared)} to {high}"


def of_what(measured: Measured, words: Mapping[str, str]) -> str:
    """What stands behind a number: "exact", "10 seeds", "256 sentences". words: of the language."""
    if measured.per == EXACT:
        return words["exact"]
    return words[f"per_{measured.per}"].format(n=measured.found.n)


def filled(text: str, lesson: Lesson, out: Outcome | None = None) -> str:
    """A text of a lesson, with what was measured in the place of {name} and {name:range}.

    out: None while nothing is predicted; then only what the text names is measured.
    """

    def one(match: re.Match[str]) -> str:
        if out and match[1] == "outcome":
            found, unit = out.number.found, out.unit
        else:
            value = lesson.values[match[1]]
            found, unit = measured(value.reading, value.params).found, reading[value.reading].unit
        return reach(found, unit) if match[2] else written(found.mean, unit)

    return FIELD.sub(one, text)
