"""Page "Training": its context, views and controls."""

# Importing a view enters it in the menu.
from ui.training import answers, curves, interactions  # noqa: F401
from ui.training.context import view

view.arrange("learning play answers attention steps together")
