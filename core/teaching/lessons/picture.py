"""Pictures of a lesson: measured and predicted values, or the options to choose from."""

import math
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from core.figures.predicted import Bar, Line, Mark, bars_svg, curves_svg, sketch_svg
from core.figures.small_pictures import BLOCK_PICTURE
from core.measure.intervals import interval
from core.teaching.lessons.lesson import Lesson, Option
from core.teaching.lessons.prediction import Answer, Outcome, predicted_range
from core.teaching.lessons.readings import Measured, reading
from core.teaching.lessons.setups import setup_svg
from core.teaching.lessons.wording import Words, format_number


def letter(index: int) -> str:
    """Return the letter of an option: "A" for index 0."""
    return chr(ord("A") + index)


def encode_sketch(option: Option) -> str:
    """Return the sketch of an option's curve as a data URL of SVG; the option must have one."""
    return f"data:image/svg+xml,{quote(sketch_svg(option.sketch, option.text))}"


def render_rows(lesson: Lesson, words: Words, out: Outcome | None = None) -> str:
    """Return a lesson's values (not the number computed) as HTML rows; "?" while `out` is None.

    Each has label, bar and number; bars are relative to the largest value.

    Args:
        lesson: The lesson.
        words: Words of the language, by key.
        out: The result; None while it is hidden.
    """
    unit = reading[lesson.values[lesson.shown[0]].reading].unit
    means = {name: out.values[name].found.mean if out else math.nan for name in lesson.shown}
    largest = max((abs(mean) for mean in means.values() if math.isfinite(mean)), default=0.0)
    drawn = []
    for name, mean in means.items():
        share = abs(mean) / largest if out and largest and math.isfinite(mean) else 0.0
        kind = ("first " if name == lesson.shown[0] else "") + ("seen" if out else "")
        label = escape(lesson.values[name].label)
        number = escape(format_number(mean, unit, words)) if out else "?"
        bar = f'<i class="{kind}" style="--share:{100 * share:.1f}%"></i>'
        drawn.append(f'<div><span title="{label}">{label}</span>{bar}<b>{number}</b></div>')
    return f'<div class="{"rows many" if len(drawn) > 3 else "rows"}">{"".join(drawn)}</div>'


def thumbnail_html(lesson: Lesson, words: Words, out: Outcome | None = None) -> str:
    """Return a lesson card's picture as HTML: setup or result `out`; a block if it asks nothing."""
    prediction = lesson.prediction
    if prediction is None:
        return BLOCK_PICTURE
    if prediction.kind != "curve":
        return ("" if out else setup_svg(lesson)) or render_rows(lesson, words, out)
    if out is None:
        curves = [
            ("maybe", [(x, height) for x, height in enumerate(option.sketch)])
            for option in prediction.options
        ]
    else:
        curves = [
            (
                "first" if name == lesson.shown[0] else "",
                [(x, mean) for x, mean, _, _ in _curve_points(out.values[name])],
            )
            for name in reversed(lesson.shown)
        ]
    return curves_svg_without_words(curves)


def curves_svg_without_words(curves: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """Return curves without words as SVG, from (CSS class, [(x, y), …]) in units of the data."""
    ends = [max(point[axis] for _, points in curves for point in points) or 1.0 for axis in (0, 1)]
    drawn = '<path class="axis" d="M2 2V78H168"/>'
    for kind, points in curves:
        places = " ".join(
            f"{4 + 162 * x / ends[0]:.1f},{76 - 70 * y / ends[1]:.1f}" for x, y in points
        )
        drawn += f'<path class="{kind}" d="M{places}"/>'
    return (
        '<svg class="curves" viewBox="0 0 170 80" preserveAspectRatio="none"'
        f' aria-hidden="true">{drawn}</svg>'
    )


def lesson_svg(
    lesson: Lesson, words: Words, answer: Answer | None = None, out: Outcome | None = None
) -> str:
    """Return a lesson's picture as SVG: predicted and measured values, or rows of "?".

    Args:
        lesson: The lesson.
        words: Words of the language, by key.
        answer: The prediction, or None.
        out: The result; None before the prediction is stored, then nothing is measured.
    """
    prediction = lesson.prediction
    assert prediction is not None
    first = reading[lesson.values[lesson.shown[0]].reading]
    mark = _predicted_range(lesson, answer, out)

    def format_value(value: float) -> str:
        return format_number(value, first.unit, words)

    if out and first.curve and prediction.kind == "curve":
        lines = [
            Line(lesson.values[name].label, *zip(*_curve_points(out.values[name])))
            for name in lesson.shown
        ]
        return curves_svg(lines, format_value, mark, words, words[first.curve])
    bars = []
    for name in lesson.shown:
        interval = out.values[name].found[:3] if out else (math.nan, math.nan, math.nan)
        note = ""
        if out and answer and prediction.kind == "rank":
            note = words["your_order"].format(n=answer.index(name) + 1)
        bars.append(Bar(lesson.values[name].label, *interval, note))
    scale = (prediction.scale.low, prediction.scale.high) if prediction.scale else None
    return bars_svg(bars, format_value, mark, words, hidden=out is None, scale=scale)


def _curve_points(measured: Measured) -> list[tuple[int, float, float, float]]:
    """Return (step or pass, mean over seeds, low, high: its 95 % interval) along a curve."""
    assert measured.curve is not None
    places = sorted(next(iter(measured.curve.values())))
    return [(x, *interval(curve[x] for curve in measured.curve.values())[:3]) for x in places]


def _predicted_range(lesson: Lesson, answer: Answer | None, out: Outcome | None) -> Mark | None:
    """Return (low, high) predicted for the first value shown, in its unit (share); else None.

    None without a prediction, for a rank, and where it needs a result that is not there.
    """
    prediction = lesson.prediction
    assert prediction is not None
    if answer is None or prediction.kind == "rank" or prediction.number.of[0] != lesson.shown[0]:
        return None
    if prediction.kind == "number":
        return predicted_range(answer)
    option = prediction.options[answer]
    kind = prediction.number.kind
    if kind == "value":
        return option.low, option.high
    if out is None:
        return None
    if kind == "growth":
        base = _curve_points(out.values[prediction.number.of[0]])[0][1]
    else:
        base = out.values[prediction.number.of[1]].found.mean
    if kind == "difference":
        return base + option.low, base + option.high
    return base * option.low, base * option.high
