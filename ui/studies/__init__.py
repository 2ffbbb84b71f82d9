"""Page "Studies": its context, views, and the controls that select and start studies."""

# Importing a view enters it in the menu.
from ui.studies import sizes, views  # noqa: F401
from ui.studies.context import view

view.arrange("matrix sizes curves runs compare source")
