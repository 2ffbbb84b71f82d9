"""The page "Class": what it looks at (context.py), and what students, the projector and the teacher see.

Whoever imports any of it has every view in the menu.
"""

# isort: off
# In the order of the menu.
from ui.lessons.classroom.context import view
from ui.lessons.classroom import student, projector, teacher  # noqa: F401

__all__ = ["view"]
