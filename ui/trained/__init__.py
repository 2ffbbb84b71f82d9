"""The page "Trained model": what it looks at (context.py), its views (views/), and what stands around them, a file each.

Whoever imports any of it has every view in the menu.
"""

# isort: off
from ui.trained.context import view
from ui.trained import views

__all__ = ["view", "views"]
