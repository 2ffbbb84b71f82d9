"""The views of the page "Depth": each is one decorated function in a file of its own.

A view is called as view(seen): what is compared, as ui.depth.base.Seen has it. Only the view that is open is called.
"""

# isort: off
from ui.depth.base import views

# in the order of the tabs
from ui.depth import statistics, attention, gradients, grid

__all__ = ["attention", "gradients", "grid", "statistics", "views"]
