"""The views of the page "Trained model": each is one decorated function in a file of its own, called with a TrainedContext.

Pictures of attention are those of the page "One block" (ui/shared/), which take any pass.
"""

# In the order of the tabs. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.trained.views import attention, words, knockout, sweep, without, credit, layers, steps, heads, pairs  # noqa: F401, I001  # fmt: skip
