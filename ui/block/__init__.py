"""The views of the page "One block": each is one decorated function in a file of its own, shown beside the drawing.

A view is called as view(seen, look): a core Pass, and what is picked (layer, head, token …). Only the view that is
open is called, so a closed one costs nothing.
"""

# isort: off
from ui.block.base import views

# in the order of the tabs
from ui.block import attention, compare, steps, stages, norm, neurons, change, heads, pairs, positions, cost

__all__ = [
    "attention",
    "change",
    "compare",
    "cost",
    "heads",
    "neurons",
    "norm",
    "pairs",
    "positions",
    "stages",
    "steps",
    "views",
]
