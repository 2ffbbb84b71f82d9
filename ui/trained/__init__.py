"""The views of the page "Trained model": each is one decorated function in a file of its own, called as view(looked, look).

Pictures of attention are those of the page "One block" (ui/block/), which take any pass.
"""

# isort: off
from ui.trained.base import views

# in the order of the tabs
from ui.trained import attention, words, knockout, sweep, credit, layers, passes

__all__ = ["attention", "credit", "knockout", "layers", "passes", "sweep", "views", "words"]
