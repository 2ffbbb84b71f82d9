"""The views of the page "Studies": each is one decorated function in a file of its own, called with a StudyContext.

What they show comes from the store alone, so it is the same whoever trains it: this server, a command, another machine.
"""

# isort: off
# in the order of the tabs
from ui.studies.views import matrix, curves, runs, compare, source

__all__ = ["compare", "curves", "matrix", "runs", "source"]
