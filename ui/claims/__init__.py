"""The page "Claims": what it looks at (context.py) and its views (views/).

Whoever imports any of it has every view in the menu.
"""

# isort: off
from ui.claims.context import view
from ui.claims import views

__all__ = ["view", "views"]
