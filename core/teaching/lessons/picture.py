"""Picture of a lesson: what was measured beside what was predicted; before that, what there is to predict."""

import math

from core.figures.predicted import Bar, Line, Mark, bars_svg, curves_svg, sketch_svg
from core.measure.intervals import interval
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.prediction import Answer, Outcome, interval_of
from core.teaching.lessons.readings import Measured, reading
from core.teaching.lessons.wording import Words, written


def sketches(lesson: Lesson) -> str:
    """Draw the curves to choose from, each with its letter."""
    assert lesson.prediction is not None
    drawn = [
        f"<figure>{sketch_svg(option.sketch, option.text)}<figcaption>{letter(at)}</figcaption></figure>"
        for at, option in enumerate(lesson.prediction.options)
    ]
    return f'<div class="sketches">{"".join(drawn)}</div>'


def letter(at: int) -> str:
    """Return the letter of an option."""
    return chr(ord("A") + at)


def svg(lesson: Lesson, words: Words, answer: Answer | None = None, out: Outcome | None = None) -> str:
    """Draw the picture. out: None before the prediction is stored; then no value is measured."""
    asked = lesson.prediction
    assert asked is not None
    first = reading[lesson.values[lesson.shown[0]].reading]
    mark = _mark(lesson, answer, out)

    def format_value(value: float) -> str:
        return written(value, first.unit, words)

    if out and first.curve and asked.kind == "curve":
        lines = [Line(lesson.values[name].label, *zip(*_along(out.values[name]))) for name in lesson.shown]
        return curves_svg(lines, format_value, mark, words, words[first.curve])
    bars = [_bar(lesson, words, answer, out, name) for name in lesson.shown]
    scale = (asked.scale.low, asked.scale.high) if asked.scale else None
    return bars_svg(bars, format_value, mark, words, hidden=out is None, scale=scale)


def _bar(lesson: Lesson, words: Words, answer: Answer | None, out: Outcome | None, name: str) -> Bar:
    label = lesson.values[name].label
    if out is None:
        return Bar(label, math.nan, math.nan, math.nan)
    note = ""
    if lesson.prediction and lesson.prediction.kind == "rank" and answer:
        note = words["your_order"].format(n=answer.index(name) + 1)
    return Bar(label, *out.values[name].found[:3], note)


def _along(found: Measured) -> list[tuple[int, float, float, float]]:
    """Return place, mean, low and high at each place of a curve."""
    assert found.curve is not None
    places = sorted(next(iter(found.curve.values())))
    return [(at, *interval(curve[at] for curve in found.curve.values())[:3]) for at in places]


def _mark(lesson: Lesson, answer: Answer | None, out: Outcome | None) -> Mark | None:
    """Return what was predicted of the first value shown; None if nothing was of that one alone."""
    asked = lesson.prediction
    assert asked is not None
    if answer is None or asked.kind == "rank" or asked.number.of[0] != lesson.shown[0]:
        return None
    if asked.kind == "number":
        return interval_of(answer)
    option, kind = asked.options[answer], asked.number.kind
    if kind == "value":
        return option.low, option.high
    if out is None:
        return None
    if kind == "growth":
        base = _along(out.values[asked.number.of[0]])[0][1]
    else:
        base = out.values[asked.number.of[1]].found.mean
    if kind == "difference":
        return base + option.low, base + option.high
    return base * option.low, base * option.high
