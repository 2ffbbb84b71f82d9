"""Words of a lesson: numbers with units and intervals, predictions and results."""

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
    predicted_range,
    undecided_pairs,
    unit_of,
    verdict,
)
from core.teaching.lessons.readings import EXACT, Measured, measure_reading, reading

Words = Mapping[str, str]  # of a language
ENGLISH_WORDS = phrases(ENGLISH)
SURE_ENOUGH = 2  # the level from which somebody was sure


def format_number(value: float, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """Format a share as "83 %" or "−39.5 points", or a number as "49,984", "8.0 times".

    NaN gives words that say so.

    Args:
        value: Percent and points are given as shares: 0.83 for "83 %".
        unit: Key: "percent", "points", "count", "times", or another for none.
        words: Words of the language, by key.
    """
    return (
        words["no_number"]
        if math.isnan(value)
        else _add_unit(unit, _format_plain(value, unit, words), words)
    )


def format_interval(interval: Interval, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """Format an interval, shares for "percent" and "points", with its unit: "78 to 86 %"."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return words["no_number"]
    low = _format_plain(interval.low, unit, words)
    high = _format_plain(interval.high, unit, words)
    return _add_unit(unit, words["from_to"].format(low=low, high=high), words)


def format_range(low: float, high: float, unit: str, words: Words = ENGLISH_WORDS) -> str:
    """Format a range without trailing zeros: "0 to 5 %" from shares (0, 0.05); points as given."""
    factor = 100 if unit == "percent" else 1
    ends = [f"{round(factor * end, 9):g}".replace(".", words["decimal"]) for end in (low, high)]
    return _add_unit(unit, words["from_to"].format(low=ends[0], high=ends[1]), words)


def _add_unit(unit: str, text: str, words: Words) -> str:
    """Add the unit of this key to a formatted number; none for keys without words."""
    return words[f"in_{unit}"].format(n=text) if unit in ("percent", "points", "times") else text


def _format_plain(value: float, unit: str, words: Words) -> str:
    """Format a number without its unit, in the language's separators; percent and points × 100.

    Points have 1 decimal, counts none.
    """
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


def describe_sample(measured: Measured, words: Words) -> str:
    """Describe the sample of a number: "exact", "10 seeds", "256 sentences"."""
    return (
        words["exact"]
        if measured.per == EXACT
        else words[f"per_{measured.per}"].format(n=measured.found.n)
    )


def fill_in(text: str, lesson: Lesson, out: Outcome | None = None) -> str:
    """Replace {name} and {name:range} in a text by a measured value or its interval.

    With `out` also {outcome}, the predicted number. Unknown names raise KeyError.

    Args:
        text: The text.
        lesson: The lesson that it belongs to.
        out: The result; None before the prediction: then only values in the text are measured.
    """
    words = phrases(lesson.language)

    def replace(match: re.Match[str]) -> str:
        if out and match[1] == "outcome":
            interval = out.number.found
            unit = out.unit
        else:
            value = lesson.values[match[1]]
            interval = measure_reading(value.reading, value.params).found
            unit = reading[value.reading].unit
        return (
            format_interval(interval, unit, words)
            if match[2]
            else format_number(interval.mean, unit, words)
        )

    return FIELD.sub(replace, text)


def describe_answer(lesson: Lesson, answer: Answer) -> str:
    """Describe a prediction as plain text: "grows several times", "40 to 60 %", "A > B"."""
    prediction = lesson.prediction
    assert prediction is not None
    if prediction.kind == "number":
        assert prediction.scale is not None
        low, high = predicted_range(answer)
        ends = max(low, prediction.scale.low), min(high, prediction.scale.high)
        return format_range(*ends, unit_of(lesson), phrases(lesson.language))
    if prediction.kind == "rank":
        return " > ".join(lesson.values[name].label for name in answer)
    return prediction.options[answer].text


def describe_outcome(lesson: Lesson, out: Outcome, words: Words) -> str:
    """Describe a result: "83 % (95 % interval 79 to 86 %, 10 seeds)", or a rank, largest first."""
    prediction = lesson.prediction
    assert prediction is not None
    if prediction.kind == "rank":
        order = sorted(prediction.ranked, key=lambda name: -out.values[name].found.mean)
        means = [format_number(out.values[name].found.mean, out.unit, words) for name in order]
        listed = " > ".join(
            f"{lesson.values[name].label} {mean}" for name, mean in zip(order, means)
        )
        return f"{listed} ({describe_sample(out.values[order[0]], words)})"
    mean = format_number(out.number.found.mean, out.unit, words)
    sample = describe_sample(out.number, words)
    if out.number.per == EXACT:
        return f"{mean} ({sample})"
    span = words["interval"].format(reach=format_interval(out.number.found, out.unit, words))
    return f"{mean} ({span}, {sample})"


def name_result(lesson: Lesson, words: Words) -> str:
    """Return the heading of a prediction's result: "Result (number's label)", or "Result"."""
    prediction = lesson.prediction
    assert prediction is not None
    return (
        f"{words['measured']} ({prediction.number.label})"
        if prediction.number.label
        else words["measured"]
    )


def describe_ties(lesson: Lesson, out: Outcome, words: Words) -> str:
    """Describe in sentences which neighbours of a rank do not differ; "" if none, or no rank."""
    prediction = lesson.prediction
    assert prediction is not None
    tied = undecided_pairs(list(prediction.ranked), out) if prediction.kind == "rank" else []
    if not tied:
        return ""

    def join(pairs: list[tuple[str, str]], sign: str) -> str:
        return ", ".join(sign.join(lesson.values[name].label for name in pair) for pair in pairs)

    sentence = words["ties"].format(pairs=join(tied, " / "))
    clear = clear_pairs(list(prediction.ranked), out)
    return (
        f"{sentence} {words['told_apart'].format(pairs=join(clear, ' > '))}" if clear else sentence
    )


def explain(lesson: Lesson, entry: Entry, out: Outcome, words: Words) -> str:
    """Return the explanation of the result, and what it means for the stored prediction.

    Sentences as the lesson's file has them.
    """
    prediction = lesson.prediction
    assert prediction is not None
    result = verdict(prediction, entry.answer, out)
    lines = [fill_in(lesson.explanation[result], lesson, out), describe_ties(lesson, out, words)]
    if result == NOT_AS_PREDICTED and prediction.options:
        lines.insert(1, prediction.options[entry.answer].instead)
    if result == NOT_AS_PREDICTED and entry.sure >= SURE_ENOUGH:
        lines.insert(0, words["sure_and_wrong"])
    return " ".join(filter(None, lines))


def explain_transfer(lesson: Lesson, chosen: int, words: Words) -> str:
    """Return whether option `chosen` (from 0) of the transfer question is right, and why: text."""
    transfer = lesson.transfer
    assert transfer is not None
    if chosen == transfer.right:
        return f"{words['right']} {transfer.because}"
    return (
        f"{words['not_right'].format(answer=transfer.options[transfer.right])} {transfer.because}"
    )
