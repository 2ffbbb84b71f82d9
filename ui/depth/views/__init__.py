"""The views of the page "Depth": each is one decorated function in a file of its own, called with a DepthContext.

Only the one that is open is called, so a closed one costs nothing.
"""

# isort: off
# in the order of the tabs
from ui.depth.views import statistics, attention, gradients, grid

__all__ = ["attention", "gradients", "grid", "statistics"]
