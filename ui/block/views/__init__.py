"""The views of the page "One block": each is one decorated function in a file of its own, called with a BlockContext.

Only the one that is open is called, so a closed one costs nothing.
"""

# In the order of the tabs. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.block.views import attention, compare, steps, stages, norm, neurons, change, heads, pairs, positions, text, cost  # noqa: F401, I001  # fmt: skip
