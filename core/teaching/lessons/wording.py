"""Numbers of lessons in words: each with its unit, its interval, and what it is a mean of."""

import math
import re
from collections.abc import Mapping

from core.measure.intervals import Interval
from core.settings.wording import fixed, number
from core.teaching.lessons.language import ENGLISH, phrases
from core.teaching.lessons.lesson import FIELD, Lesson
from core.teaching.lessons.outcome import Outcome
from core.teaching.lessons.readings import EXACT, Measured, measured, reading

Words = Mapping[str, str]  # of a language (language.py)
ENGLISH_WORDS = phrases(ENGLISH)


def written(value: float, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """A number with its unit: "83 %", "−39.5 points", "49,984", "8.0 times"."""
    return words["no_number"] if math.isnan(value) else _with(unit, _bare(value, unit, words), words)


def reach(found: Interval, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """An interval: "78 to 86 %"."""
    if math.isnan(found.low) or math.isnan(found.high):
        return words["no_number"]
    low, high = (_bare(end, unit, words) for end in (found.low, found.high))
    return _with(unit, words["from_to"].format(low=low, high=high), words)


def guessed(low: float, high: float, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """A range that somebody has chosen, without digits that say nothing: "0 to 5 %"."""
    first, last = (
        f"{round(100 * end if unit == 'percent' else end, 9):g}".replace(".", words["decimal"]) for end in (low, high)
    )
    return _with(unit, words["from_to"].format(low=first, high=last), words)


def _with(unit: str, text: str, words: Words) -> str:
    return words[f"in_{unit}"].format(n=text) if unit in ("percent", "points", "times") else text


def _bare(value: float, unit: str, words: Words) -> str:
    """Without its unit, with the signs of the language between its digits."""
    if unit == "percent":
        text = fixed(100 * value, 0 if value in (0, 1) or 0.1 <= value <= 0.9 else 1)
    elif unit == "points":
        text = fixed(100 * value, 1)
    elif unit == "count":
        text = f"{value:,.0f}"
    elif unit == "times" and 0.1 <= value < 100:
        text = fixed(value)
    else:
        text = number(value)
    return text.translate({ord(","): words["thousands"], ord("."): words["decimal"]})


def of_what(measured: Measured, words: Words) -> str:
    """What stands behind a number: "exact", "10 seeds", "256 sentences". words: of the language."""
    if measured.per == EXACT:
        return words["exact"]
    return words[f"per_{measured.per}"].format(n=measured.found.n)


def filled(text: str, lesson: Lesson, out: Outcome | None = None) -> str:
    """A text of a lesson, with what was measured in the place of {name} and {name:range}.

    out: None while nothing is predicted; then only what the text names is measured. Numbers are written as in the language of
    the text, which need not be that of the page.
    """
    words = phrases(lesson.language)

    def one(match: re.Match[str]) -> str:
        if out and match[1] == "outcome":
            found, unit = out.number.found, out.unit
        else:
            value = lesson.values[match[1]]
            found, unit = measured(value.reading, value.params).found, reading[value.reading].unit
        return reach(found, unit, words) if match[2] else written(found.mean, unit, words)

    return FIELD.sub(one, text)
