"""The picture of a lesson: what was measured beside what was predicted; before that, what there is to predict."""

import math
from collections.abc import Callable

from core.figures.predicted import Bar, Line, Mark, bars_svg, curves_svg, sketch_svg
from core.measure.intervals import interval
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.outcome import Outcome
from core.teaching.lessons.prediction import Answer, interval_of
from core.teaching.lessons.readings import Measured, reading
from core.teaching.lessons.wording import Words, written


def sketches(lesson: Lesson) -> str:
    """The curves to choose from, each with its letter."""
    assert lesson.prediction is not None
    drawn = [
        f"<figure>{sketch_svg(option.sketch, option.text)}<figcaption>{letter(at)}</figcaption></figure>"
        for at, option in enumerate(lesson.prediction.options)
    ]
    return f'<div class="sketches">{"".join(drawn)}</div>'


def letter(at: int) -> str:
    """Of an option, by which it is named."""
    return chr(ord("A") + at)


def svg(lesson: Lesson, words: Words, answer: Answer | None = None, out: Outcome | None = None) -> str:
    """out: None before the prediction is stored; then only what the question tells is measured."""
    assert lesson.prediction is not None
    first = lesson.values[lesson.shown[0]].reading
    if out and reading[first].curve and lesson.prediction.kind == "curve":
        lines = [_line(lesson, out, name) for name in lesson.shown]
        return curves_svg(lines, _written(first, words), _mark(lesson, answer, out), words, words[reading[first].curve])
    bars = [_bar(lesson, words, answer, out, name) for name in lesson.shown]
    asked = lesson.prediction.scale
    scale = (asked.low, asked.high) if asked else None
    return bars_svg(bars, _written(first, words), _mark(lesson, answer, out), words, hidden=out is None, scale=scale)


def _written(name: str, words: Words) -> Callable[[float], str]:
    return lambda value: written(value, reading[name].unit, words)


def _bar(lesson: Lesson, words: Words, answer: Answer | None, out: Outcome | None, name: str) -> Bar:
    assert lesson.prediction is not None
    of = lesson.values[name]
    if out is None:
        return Bar(of.label, math.nan, math.nan, math.nan)
    found, note = out.values[name].found, ""
    if lesson.prediction.kind == "rank" and answer:
        note = words["your_order"].format(n=answer.index(name) + 1)
    return Bar(of.label, found.mean, found.low, found.high, note)


def _line(lesson: Lesson, out: Outcome, name: str) -> Line:
    return Line(lesson.values[name].label, *zip(*_along(out.values[name])))


def _along(found: Measured) -> list[tuple[int, float, float, float]]:
    """Of a curve: place, mean, low and high at each place."""
    assert found.curve is not None
    places = sorted(next(iter(found.curve.values())))
    return [(at, *interval(each[at] for each in found.curve.values())[:3]) for at in places]


def _mark(lesson: Lesson, answer: Answer | None, out: Outcome | None) -> Mark | None:
    """What was predicted, in the numbers of the first value in the picture; None where it says nothing of that one alone."""
    asked = lesson.prediction
    assert asked is not None
    if answer is None or asked.kind == "rank" or asked.number.of[0] != lesson.shown[0]:
        return None
    if asked.kind == "number":
        return interval_of(answer)
    option = asked.options[answer]
    low, high = option.low, option.high
    if asked.number.kind in ("ratio", "growth", "difference"):
        if out is None:
            return None
        if asked.number.kind == "growth":
            base = _along(out.values[asked.number.of[0]])[0][1]
        else:
            base = out.values[asked.number.of[1]].found.mean
        add = asked.number.kind == "difference"
        low, high = (base + low, base + high) if add else (base * low, base * high)
    return low, high
