"""The page "Trained model": its settings (context.py), its views, and what stands around them."""

# Importing a view enters it in the menu.
from ui.trained import attention, knockout, parts, without, words  # noqa: F401
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
