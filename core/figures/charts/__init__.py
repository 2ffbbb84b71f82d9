"""Table -> chart, one function per kind of question. Altair is used to write a specification once; only data moves.

Each function returns a Vega-Lite specification as a dict that does not change from call to call (so that the browser
keeps the picture and swaps the data), for a table with the columns named in its docstring. Words on axes come as
"007 word": a number that sorts, and a word that is shown.
"""

from core.figures.charts.attention import arcs, attention_map, per_head
from core.figures.charts.cost import amounts, growth
from core.figures.charts.stream import before_after, order, per_token, shares, stages
from core.figures.charts.trained import by_distance, next_words, ranking, with_and_without
from core.figures.spec import word

__all__ = [
    "amounts",
    "arcs",
    "attention_map",
    "before_after",
    "by_distance",
    "growth",
    "next_words",
    "order",
    "per_head",
    "per_token",
    "ranking",
    "shares",
    "stages",
    "with_and_without",
    "word",
]
