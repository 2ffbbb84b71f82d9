"""The views of the page "Training": each is one decorated function in a file of its own, called with a TrainingContext.

A view is drawn again every fraction of a second while something is trained, so it only reads what is there.
"""

# isort: off
# in the order of the tabs
from ui.training.views import learning, answers, attention, steps, together

__all__ = ["answers", "attention", "learning", "steps", "together"]
