"""The page "Studies": what it looks at (context.py), its views (views/), and what stands around them, a file each.

Whoever imports any of it has every view in the menu.
"""

# isort: off
from ui.studies.context import view
from ui.studies import views

__all__ = ["view", "views"]
