"""The page "Lessons": what it looks at (context.py) and its views (views/).

Whoever imports any of it has every view in the menu.
"""

# isort: off
from ui.lessons.context import view
from ui.lessons import views

__all__ = ["view", "views"]
