"""Page "Trained model": its context, views and controls."""

# Importing a view enters it in the menu.
from ui.trained import attention, knockout, parts, trained_without, words  # noqa: F401
from ui.trained.context import view

TABS = {
    "Attention": "attention heads pairs",
    "Step by step": "steps",
    "Next token": "words",
    "Logit lens": "layers",
    "Ablation": "knockout sweep without",
    "Contributions": "credit",
}
view.arrange(" ".join(TABS.values()))
