"""Measured and predicted values as SVG: bars, or curves over passes and steps.

CSS classes carry the meaning: `bar` and `curve` for measured values, `reach` for their interval,
`mark` for the prediction, `open` for what is not measured yet. `first` is what the prediction is
about.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from core.figures.palette import BASELINE, VARIANTS
from core.figures.svg import line, picture, text

WIDTH = 326  # of a card on a phone, where words keep their size
MARGIN = 8
FIGURE = 96  # room for the numbers on the right of bars
# a row: the name above, so that it may be long, and the bar below it
ROW = 56
NAME = 22
BAR = 18
# of curves: a line of the legend, and room for the mark at their end
CURVE_HEIGHT = 170
LEGEND = 18
END = 26
SEEN = 0.01  # of an axis: less of a predicted range beyond what was measured is not drawn
# how much of an axis a predicted range may take beyond what was measured: its far end would flatten
# that
ROOM = 0.25
STYLE = (
    f"<style>.bar.first,.curve.first{{fill:{VARIANTS[0]};stroke:{VARIANTS[0]}}}"
    f".bar,.curve{{fill:{BASELINE};stroke:{BASELINE}}}"
    ".bar{stroke:none!important}.curve{fill:none!important;stroke-width:2.5}"
    ".curve:not(.first){stroke-dasharray:7 4}"
    f".spread{{fill:{BASELINE};opacity:.15}}.spread.first{{fill:{VARIANTS[0]}}}"
    ".reach{stroke:currentColor;stroke-width:2;fill:none}.axis{stroke:currentColor;opacity:.25}"
    ".mark{fill:#B87A00;fill-opacity:.28;stroke:#B87A00;stroke-width:2;stroke-dasharray:5 3}"
    "text{fill:currentColor;font-size:14px}.small{font-size:12px;opacity:.85}"
    ".middle{text-anchor:middle}.end{text-anchor:end}"
    ".open{opacity:.55;font-size:16px}.sketch{fill:none;stroke:currentColor;stroke-width:2.5}</style>"
)


class Bar(NamedTuple):
    """Measured value with its interval (low, high) and a note below its number."""

    label: str
    mean: float
    low: float
    high: float
    note: str = ""


class Line(NamedTuple):
    """Curve with its interval at each place."""

    label: str
    places: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


Mark = tuple[float, float]  # what was predicted, from and to; either may be infinite


def _axis_ends(
    values: Sequence[float], mark: Mark | None, scale: Mark | None = None
) -> tuple[float, float]:
    """Return the ends of an axis that shows values, 0 and the near end of the mark (low, high).

    Args:
        values: Values to show. Without any: all of the mark that is finite.
        mark: The predicted range, or None; an end may be infinite.
        scale: Range that the axis covers at least.
    """
    finite = [value for value in (*values, *(scale or ()), 0.0) if math.isfinite(value)]
    low = min(finite)
    high = max(finite)
    ends = [end for end in mark or () if math.isfinite(end)]
    if not values:
        low = min(low, *ends, low)
        high = max(high, *ends, high)
    elif mark:
        near = min(low, mark[1])
        far = max(high, mark[0])
        room = ROOM * (far - near)
        measured = low, high
        # An open end adds nothing where the mark is in sight.
        if near < low or math.isfinite(mark[0]):
            low = min(near, max(near - room, mark[0]))
        if far > high or math.isfinite(mark[1]):
            high = max(far, min(far + room, mark[1]))
        # What nobody can see must not move the figure at an end away from what was measured.
        least = SEEN * (high - low)
        low = low if measured[0] - low > least else measured[0]
        high = high if high - measured[1] > least else measured[1]
    return low, high if high > low else low + 1.0


def bars_svg(
    bars: Sequence[Bar],
    format_value: Callable[[float], str],
    mark: Mark | None,
    words: Mapping[str, str],
    hidden: bool = False,
    scale: Mark | None = None,
) -> str:
    """Return bars as SVG, the predicted range `mark` on the first; `hidden`: no values yet.

    Args:
        bars: The values.
        format_value: Formats a number.
        mark: The predicted range, or None.
        words: Words of the language, by key.
        hidden: Whether only names and the mark are shown, before anything is measured.
        scale: Range that the axis covers at least.
    """
    values = [] if hidden else [value for bar in bars for value in (bar.mean, bar.low, bar.high)]
    low, high = _axis_ends(values, mark, scale)
    left = MARGIN
    right = WIDTH - MARGIN - FIGURE

    def x(value: float) -> float:
        return round(left + (right - left) * (min(max(value, low), high) - low) / (high - low), 1)

    shapes = []
    for index, bar in enumerate(bars):
        top = ROW * index + NAME + 4
        shapes.append(text(left, top - 10, bar.label, "name"))
        shapes.append(line("axis", (x(0.0), top - 3), (x(0.0), top + BAR + 3)))
        if hidden:
            shapes.append(line("axis", (left, top + BAR / 2), (right, top + BAR / 2)))
        if index == 0 and mark:
            from_ = x(mark[0])
            to = x(mark[1])
            shapes.append(
                f'<rect class="mark" x="{from_}" y="{top - 5:g}" width="{max(3.0, to - from_):.1f}"'
                f' height="{BAR + 10}" rx="4"/>'
            )
        if hidden:
            shapes.append(text(right + 10, top + BAR - 4, "?", "open"))
        else:
            start, end = sorted((x(0.0), x(bar.mean)))
            kind = "bar first" if index == 0 else "bar"
            shapes.append(
                f'<rect class="{kind}" x="{start}" y="{top:g}" width="{max(1.5, end - start):.1f}"'
                f' height="{BAR}" rx="2"/>'
            )
            if bar.low < bar.high:
                shapes.append(
                    line("reach", (x(bar.low), top + BAR / 2), (x(bar.high), top + BAR / 2))
                )
            shapes.append(text(right + 10, top + BAR - 5, format_value(bar.mean), "figure"))
            shapes.append(text(right + 10, top + BAR + 9, bar.note, "small"))
    foot = ROW * len(bars) + 16.0
    if scale or not hidden:
        shapes += [
            text(x(end), foot, format_value(end), f"small {kind}")
            for end, kind in ((low, ""), (high, "end"))
        ]
    if mark:
        middle = min(max((x(mark[0]) + x(mark[1])) / 2, left + 60), right - 40)
        shapes.append(text(middle, foot + 18, words["your_prediction"], "small middle"))
    phrases = [bar.label if hidden else _describe_bar(bar, format_value) for bar in bars]
    if mark:
        phrases.append(f"{words['your_prediction']}: {describe_range(mark, format_value)}")
    return picture(
        WIDTH, foot + (24 if mark else 6), STYLE + "".join(shapes), ". ".join(phrases) + "."
    )


def _describe_bar(bar: Bar, format_value: Callable[[float], str]) -> str:
    """Describe a bar: label, mean and note."""
    note = f" ({bar.note})" if bar.note else ""
    return f"{bar.label}: {format_value(bar.mean)}{note}"


def describe_range(mark: Mark, format_value: Callable[[float], str]) -> str:
    """Describe a predicted range: "0.2 – 0.9", "≥ 0.9" if the upper end is infinite, "< 0.2"."""
    low, high = mark
    if math.isinf(low):
        return f"< {format_value(high)}"
    return (
        f"≥ {format_value(low)}"
        if math.isinf(high)
        else f"{format_value(low)} – {format_value(high)}"
    )


def curves_svg(
    lines: Sequence[Line],
    format_value: Callable[[float], str],
    mark: Mark | None,
    words: Mapping[str, str],
    over: str,
) -> str:
    """Return measured curves in SVG; the predicted range `mark` stands at the end of the first.

    Args:
        lines: The curves.
        format_value: Formats a number.
        mark: The predicted range, or None.
        words: Words of the language, by key.
        over: Name of the horizontal axis.
    """
    values = [value for line in lines for value in (*line.mean, *line.low, *line.high)]
    low, high = _axis_ends(values, mark)
    top = LEGEND * len(lines) + 14.0
    left = 50
    right = WIDTH - MARGIN - END
    bottom = top + CURVE_HEIGHT
    start = min(line.places[0] for line in lines)
    end = max(line.places[-1] for line in lines)

    def x(value: float) -> float:
        return round(left + (right - left) * (value - start) / max(1, end - start), 1)

    def y(value: float) -> float:
        return round(bottom - CURVE_HEIGHT * (min(max(value, low), high) - low) / (high - low), 1)

    shapes = [
        f'<line class="axis" x1="{left}" x2="{right}" y1="{y(value)}" y2="{y(value)}"/>'
        for value in (low, high)
    ]
    shapes += [
        text(left - 8, y(value) + 4, format_value(value), "small end") for value in (low, high)
    ]
    shapes += [
        text(x(start), bottom + 18, f"{over} {start}", "small"),
        text(x(end), bottom + 18, str(end), "small end"),
    ]
    if mark:
        head = y(mark[1])
        foot = y(mark[0])
        shapes.append(
            f'<rect class="mark" x="{right - 8}" y="{head}" width="22"'
            f' height="{max(3.0, foot - head):.1f}" rx="4"/>'
        )
        shapes.append(text(WIDTH - MARGIN, bottom + 36, words["your_prediction"], "small end"))
    for index, curve in reversed(list(enumerate(lines))):
        first = " first" if index == 0 else ""
        outline = list(zip(curve.places, curve.low)) + list(
            zip(reversed(curve.places), reversed(curve.high))
        )
        shapes.append(
            f'<polygon class="spread{first}"'
            f' points="{" ".join(f"{x(a)},{y(b)}" for a, b in outline if b == b)}"/>'
        )
        shapes.append(
            line(
                f"curve{first}", *((x(a), y(b)) for a, b in zip(curve.places, curve.mean) if b == b)
            )
        )
        place = LEGEND * index + 12.0
        shapes += [line(f"curve{first}", (left, place - 4), (left + 28, place - 4))]
        shapes.append(
            text(left + 36, place, f"{curve.label}: {format_value(curve.mean[-1])}", "name")
        )
    description = ". ".join(
        f"{line.label}: {format_value(line.mean[0])} → {format_value(line.mean[-1])}"
        for line in lines
    )
    description += (
        f". {words['your_prediction']}: {describe_range(mark, format_value)}." if mark else "."
    )
    return picture(WIDTH, bottom + (42 if mark else 24), STYLE + "".join(shapes), description)


def sketch_svg(heights: Sequence[float], description: str) -> str:
    """Return a small curve of these heights (0 to 1) as SVG, for an option to choose."""
    width = 130
    height = 64
    step = (width - 16) / (len(heights) - 1)
    points = [
        (round(8 + step * index, 1), round(height - 8 - (height - 16) * height_share, 1))
        for index, height_share in enumerate(heights)
    ]
    frame = f'<line class="axis" x1="8" x2="{width - 8}" y1="{height - 6}" y2="{height - 6}"/>'
    return picture(width, height, STYLE + frame + line("sketch", *points), description)
