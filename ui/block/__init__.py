"""Page "One block": its context, views and controls."""

# Importing a view enters it in the menu.
from ui.block import attention, compare, cost, neurons, positions, stages, text  # noqa: F401
from ui.block.context import view

TABS = {
    "Attention": "attention heads pairs",
    "Step by step": "steps",
    "Activations": "stages norm neurons change",
    "Positions": "positions text",
    "Compare and cost": "compare cost",
}
view.arrange(" ".join(TABS.values()))
