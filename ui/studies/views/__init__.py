"""The views of the page "Studies": each is one decorated function in a file of its own, called with a StudyContext.

What they show comes from the store alone, so it is the same whoever trains it: this server, a command, another machine.
"""

# In the order of the tabs. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.studies.views import matrix, curves, runs, compare, source  # noqa: F401, I001  # fmt: skip
