"""The page "Depth": its settings (context.py), its views, and what stands around them."""

# Importing a view enters it in the menu.
from ui.depth import gradients, grid, passes  # noqa: F401
from ui.depth.context import view

view.arrange("statistics attention play gradients grid")
