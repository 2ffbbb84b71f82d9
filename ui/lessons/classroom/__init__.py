"""The page "Class": what it looks at (context.py), and what students, the projector and the teacher see (views/).

Whoever imports any of it has every view in the menu.
"""

# isort: off
from ui.lessons.classroom.context import view
from ui.lessons.classroom import views

__all__ = ["view", "views"]
