"""The views of the page "Depth": each is one decorated function in a file of its own, called with a DepthContext.

Only the one that is open is called, so a closed one costs nothing.
"""

# In the order of the tabs. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.depth.views import statistics, attention, play, gradients, grid  # noqa: F401, I001  # fmt: skip
