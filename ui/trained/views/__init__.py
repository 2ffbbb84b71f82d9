"""The views of the page "Trained model": each is one decorated function in a file of its own, called with a TrainedContext.

Pictures of attention are those of the page "One block" (ui/shared/), which take any pass.
"""

# isort: off
# in the order of the tabs
from ui.trained.views import attention, words, knockout, sweep, credit, layers, steps, heads, pairs

__all__ = ["attention", "credit", "heads", "knockout", "layers", "pairs", "steps", "sweep", "words"]
