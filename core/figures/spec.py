"""Shared parts of charts: cached specifications, labels and numbers on axes."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import altair as alt
import pandas as pd

P = ParamSpec("P")
Axis = TypeVar("Axis", alt.X, alt.Y)
AltairChart = Any  # a chart, of which Altair tells no type
Spec = dict[str, Any]  # of Vega-Lite
BASE = alt.Chart(pd.DataFrame())  # every chart begins with it; the page adds the data

# As the other pictures have it: words of 12 px, no lines but those of the grid.
AXIS = {
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "domain": False,
    "ticks": False,
}
LEGEND = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
WORD = "substring(datum.label, 4)"
SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹"
LOG = " (log scale)"
# As in sentences: "60.3 %". Vega takes a locale as a whole.
LOCALE = {
    "decimal": ".",
    "thousands": ",",
    "grouping": [3],
    "currency": ["$", ""],
    "percent": "\N{NO-BREAK SPACE}%",
}


# "10", "0.001", "2·10⁻⁶": never "1e+1". Where Vega leaves a tick of a logarithmic axis without a
# label, none stands.
_PARTS = "split(format(abs(datum.value), '.2~e'), 'e')"
_POWER = f"{_PARTS}[1]"
for digit, raised in enumerate(SUPER):
    _POWER = f"replace({_POWER}, regexp('{digit}', 'g'), '{raised}')"
_POWER = f"replace(replace({_POWER}, '-', '⁻'), '+', '')"
NUMBER = (
    "datum.label === '' ? '' : datum.value === 0 ? '0' : abs(datum.value) >= 0.0009 &&"
    " abs(datum.value) < 99999 ? replace(format(datum.value, ',.6~r'), '-', '−') : (datum.value <"
    f" 0 ? '−' : '') + ({_PARTS}[0] === '1' ? '' : {_PARTS}[0] + '·') + '10' + {_POWER}"
)

ZERO = "datum.value === 0 ? '0' : datum.label"  # with the format "~s" Vega writes "0k"


def number_axis(**options: Any) -> alt.Axis:
    """Return an axis with numbers in plain notation: "10", "0.001", "2·10⁻⁶"."""
    return alt.Axis(labelExpr=NUMBER, **options)


def as_vega_lite(function: Callable[P, AltairChart]) -> Callable[P, Spec]:
    """Decorate a chart function to return its Vega-Lite dict, without data, built once.

    Once for each set of arguments; callers share the dict and must not change it.
    """

    @functools.wraps(function)
    @functools.cache
    def cached_spec(*args: P.args, **named: P.kwargs) -> Spec:
        built: Spec = function(*args, **named).to_dict()
        for key in ("data", "datasets", "$schema", "config"):
            built.pop(key, None)
        built["config"] = {
            "axis": AXIS,
            "legend": LEGEND,
            "view": {"stroke": None},
            "locale": {"number": LOCALE},
        }
        return built

    return cast(Callable[P, Spec], cached_spec)  # functools.cache forgets what is given


def word_axis(
    kind: type[Axis], field: str, title: str | None, every: bool = True, limit: int = 110
) -> Axis:
    """Return a channel, alt.X or alt.Y, with an axis of words from labels such as "007 word".

    Args:
        kind: alt.X or alt.Y.
        field: Column of the labels.
        title: Title of the axis, or None.
        every: Whether every word is shown, even where they overlap.
        limit: Greatest length of a word, in pixels.
    """
    angle = -50 if kind is alt.X else alt.Undefined
    axis = alt.Axis(
        labelExpr=WORD,
        labelOverlap=False if every else "parity",
        labelLimit=limit,
        labelAngle=angle,
    )
    return kind(f"{field}:O", title=title, axis=axis)


def word_label(number: int, text: str) -> str:
    """Return a label for word_axis: "007 word", which sorts by number and shows the word."""
    return f"{number:03d} {text}"
