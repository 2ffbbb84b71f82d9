"""The page "One block": its settings (context.py), its views, and what stands around them."""

# Importing a view enters it in the menu.
from ui.block import attention, compare, cost, neurons, positions, stages, text  # noqa: F401
from ui.block.context import view

view.arrange("attention compare steps stages norm neurons change heads pairs positions text cost")
