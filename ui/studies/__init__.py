"""Page "Studies": its context, views, and the controls that select and start studies."""

# Importing a view enters it in the menu.
from ui.studies import rates, sizes, views  # noqa: F401
from ui.studies.context import view

view.arrange("matrix sizes rates curves runs compare source")
