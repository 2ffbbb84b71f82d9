"""Page "Depth": its context and views."""

# Importing a view enters it in the menu.
from ui.depth import gradients, grid, passes  # noqa: F401
from ui.depth.context import view

view.arrange("statistics attention play gradients grid")
