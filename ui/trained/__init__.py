"""The page "Trained model": its settings (context.py), its views, and what stands around them."""

# Importing a view enters it in the menu.
from ui.trained import attention, knockout, parts, without, words  # noqa: F401
from ui.trained.context import view

view.arrange("attention words knockout sweep without credit layers steps heads pairs")
