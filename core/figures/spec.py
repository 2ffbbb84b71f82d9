"""What charts have in common: a specification that is built once, words and numbers on axes."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import altair as alt
import pandas as pd

P = ParamSpec("P")
Axis = TypeVar("Axis", alt.X, alt.Y)
Drawn = Any  # a chart, of which Altair tells no type
Spec = dict[str, Any]  # of Vega-Lite

WORD = "substring(datum.label, 4)"
SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹"
LOG = " (log scale)"


def _raised(text: str) -> str:
    """A Vega expression: the digits of a text as exponents."""
    for digit, raised in enumerate(SUPER):
        text = f"replace({text}, regexp('{digit}', 'g'), '{raised}')"
    return f"replace(replace({text}, '-', '⁻'), '+', '')"


# "10", "0.001", "2·10⁻⁶": never "1e+1". Where Vega leaves a tick of a logarithmic axis without a label, none stands.
_PARTS = "split(format(abs(datum.value), '.2~e'), 'e')"
NUMBER = (
    "datum.label === '' ? '' : datum.value === 0 ? '0' : abs(datum.value) >= 0.0009 && abs(datum.value) < 99999"
    " ? replace(format(datum.value, '.6~r'), '-', '−')"
    f" : (datum.value < 0 ? '−' : '') + ({_PARTS}[0] === '1' ? '' : {_PARTS}[0] + '·') + '10' + {_raised(_PARTS + '[1]')}"
)


def numbers(**more: Any) -> alt.Axis:
    """An axis of numbers in plain notation."""
    return alt.Axis(labelExpr=NUMBER, **more)


def spec(function: Callable[Concatenate[alt.Chart, P], Drawn]) -> Callable[P, Spec]:
    """Build once, without data; data is named nowhere, since the page sends it beside the specification."""

    @functools.wraps(function)
    @functools.cache
    def kept(*args: P.args, **named: P.kwargs) -> Spec:
        built: Spec = function(alt.Chart(pd.DataFrame()), *args, **named).to_dict()
        for key in ("data", "datasets", "$schema", "config"):
            built.pop(key, None)
        built["config"] = {"axis": {"labelFontSize": 12, "titleFontSize": 12}, "legend": {"labelFontSize": 12}}
        return built

    return cast(Callable[P, Spec], kept)  # functools.cache forgets what is given


def words(kind: type[Axis], field: str, title: str | None, every: bool = True, limit: int = 110) -> Axis:
    """An axis of words; not `every`: as many as there is room for."""
    angle = -50 if kind is alt.X else alt.Undefined
    axis = alt.Axis(labelExpr=WORD, labelOverlap=False if every else "parity", labelLimit=limit, labelAngle=angle)
    return kind(f"{field}:O", title=title, axis=axis)


def word(number: int, text: str) -> str:
    """A token for an axis: sorted by its number, shown as its word."""
    return f"{number:03d} {text}"
