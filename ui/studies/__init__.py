"""The page "Studies": its settings (context.py), its views, and what stands around them."""

# Importing a view enters it in the menu.
from ui.studies import views  # noqa: F401
from ui.studies.context import view

view.arrange("matrix curves runs compare source")
