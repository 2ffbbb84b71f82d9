"""The views of the page "Training": each is one decorated function in a file of its own, called with a TrainingContext.

A view is drawn again every fraction of a second while something is trained, so it only reads what is there.
"""

# In the order of the tabs. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.training.views import learning, play, answers, attention, steps, together  # noqa: F401, I001  # fmt: skip
