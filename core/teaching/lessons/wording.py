"""Words of a lesson: numbers with unit and interval, what was predicted and measured, and what follows."""

import math
import re
from collections.abc import Mapping

from core.measure.intervals import Interval
from core.settings.wording import fixed, number
from core.teaching.lessons.language import ENGLISH, phrases
from core.teaching.lessons.lesson import FIELD, Lesson
from core.teaching.lessons.prediction import (
    NOT_AS_PREDICTED,
    Answer,
    Entry,
    Outcome,
    clear_pairs,
    interval_of,
    undecided_pairs,
    unit_of,
    verdict,
)
from core.teaching.lessons.readings import EXACT, Measured, measured, reading

Words = Mapping[str, str]  # of a language
ENGLISH_WORDS = phrases(ENGLISH)
SURE_ENOUGH = 2  # the level from which somebody was sure


def written(value: float, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """Format a number with its unit: "83 %", "−39.5 points", "49,984", "8.0 times"."""
    return words["no_number"] if math.isnan(value) else _add_unit(unit, _format(value, unit, words), words)


def reach(found: Interval, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """Format an interval: "78 to 86 %"."""
    if math.isnan(found.low) or math.isnan(found.high):
        return words["no_number"]
    low, high = _format(found.low, unit, words), _format(found.high, unit, words)
    return _add_unit(unit, words["from_to"].format(low=low, high=high), words)


def format_range(low: float, high: float, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """Format a range that somebody chose, without trailing digits: "0 to 5 %"."""
    factor = 100 if unit == "percent" else 1
    ends = [f"{round(factor * end, 9):g}".replace(".", words["decimal"]) for end in (low, high)]
    return _add_unit(unit, words["from_to"].format(low=ends[0], high=ends[1]), words)


def _add_unit(unit: str, text: str, words: Words) -> str:
    return words[f"in_{unit}"].format(n=text) if unit in ("percent", "points", "times") else text


def _format(value: float, unit: str, words: Words) -> str:
    """Format a number without its unit, with the language's separators."""
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


def describe_sample(of: Measured, words: Words) -> str:
    """Say what stands behind a number: "exact", "10 seeds", "256 sentences"."""
    return words["exact"] if of.per == EXACT else words[f"per_{of.per}"].format(n=of.found.n)


def fill_in(text: str, lesson: Lesson, out: Outcome | None = None) -> str:
    """Fill {name} and {name:range} of a lesson's text with what was measured, in the text's language.

    Args:
        out: None while nothing is predicted; then only what the text names is measured.
    """
    words = phrases(lesson.language)

    def replace(match: re.Match[str]) -> str:
        if out and match[1] == "outcome":
            found, unit = out.number.found, out.unit
        else:
            value = lesson.values[match[1]]
            found, unit = measured(value.reading, value.params).found, reading[value.reading].unit
        return reach(found, unit, words) if match[2] else written(found.mean, unit, words)

    return FIELD.sub(replace, text)


def describe_answer(lesson: Lesson, answer: Answer) -> str:
    """Say what was predicted: "grows several times", "40 to 60 %", "pre-norm > no norm > post-norm"."""
    asked = lesson.prediction
    assert asked is not None
    if asked.kind == "number":
        assert asked.scale is not None
        low, high = interval_of(answer)
        ends = max(low, asked.scale.low), min(high, asked.scale.high)
        return format_range(*ends, unit_of(lesson), phrases(lesson.language))
    if asked.kind == "rank":
        return " > ".join(lesson.values[name].label for name in answer)
    return asked.options[answer].text


def describe_outcome(lesson: Lesson, out: Outcome, words: Words) -> str:
    """Say what was measured, with its interval: "83 % (95 % interval 79 to 86 %, 10 seeds)"."""
    asked = lesson.prediction
    assert asked is not None
    if asked.kind == "rank":
        order = sorted(asked.ranked, key=lambda name: -out.values[name].found.mean)
        means = [written(out.values[name].found.mean, out.unit, words) for name in order]
        listed = " > ".join(f"{lesson.values[name].label} {mean}" for name, mean in zip(order, means))
        return f"{listed} ({describe_sample(out.values[order[0]], words)})"
    mean, sample = written(out.number.found.mean, out.unit, words), describe_sample(out.number, words)
    if out.number.per == EXACT:
        return f"{mean} ({sample})"
    return f"{mean} ({words['interval'].format(reach=reach(out.number.found, out.unit, words))}, {sample})"


def name_result(lesson: Lesson, words: Words) -> str:
    """Name what was measured: "Result (parameters with eight heads ÷ one head)"."""
    asked = lesson.prediction
    assert asked is not None
    return f"{words['measured']} ({asked.number.label})" if asked.number.label else words["measured"]


def describe_ties(lesson: Lesson, out: Outcome, words: Words) -> str:
    """Say which neighbours of a rank cannot be told apart, and which pairs can; "" if all can."""
    asked = lesson.prediction
    assert asked is not None
    tied = undecided_pairs(list(asked.ranked), out) if asked.kind == "rank" else []
    if not tied:
        return ""

    def join(pairs: list[tuple[str, str]], sign: str) -> str:
        return ", ".join(sign.join(lesson.values[name].label for name in pair) for pair in pairs)

    said = words["ties"].format(pairs=join(tied, " / "))
    clear = clear_pairs(list(asked.ranked), out)
    return f"{said} {words['told_apart'].format(pairs=join(clear, ' > '))}" if clear else said


def explain(lesson: Lesson, entry: Entry, out: Outcome, words: Words) -> str:
    """Explain the outcome, and what it says of the prediction."""
    asked = lesson.prediction
    assert asked is not None
    found = verdict(asked, entry.answer, out)
    lines = [fill_in(lesson.explanation[found], lesson, out), describe_ties(lesson, out, words)]
    if found == NOT_AS_PREDICTED and asked.options:
        lines.insert(1, asked.options[entry.answer].instead)
    if found == NOT_AS_PREDICTED and entry.sure >= SURE_ENOUGH:
        lines.insert(0, words["sure_and_wrong"])
    return " ".join(filter(None, lines))


def explain_transfer(lesson: Lesson, chosen: int, words: Words) -> str:
    """Say whether the answer to the transfer question is right, and why."""
    asked = lesson.transfer
    assert asked is not None
    if chosen == asked.right:
        return f"{words['right']} {asked.because}"
    return f"{words['not_right'].format(answer=asked.options[asked.right])} {asked.because}"
