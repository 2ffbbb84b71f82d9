"""The views of the page "One block": each is one decorated function in a file of its own, called with a BlockContext.

Only the one that is open is called, so a closed one costs nothing.
"""

# isort: off
# in the order of the tabs
from ui.block.views import attention, compare, steps, stages, norm, neurons, change, heads, pairs, positions, cost

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
]
