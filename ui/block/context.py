"""What the views of the page "One block" share: their menu, what is looked at, and what they are handed."""

from dataclasses import dataclass

from core.experiments.forward import Pass
from core.model.variants import Pins
from core.settings.menu import Menu
from core.settings.setting import setting
from ui.shared.base import Picked

view = Menu("Views of one block")


@dataclass(frozen=True)
class BlockLook(Picked):
    """What is looked at on the page "One block"."""

    view: str = setting("attention", "View", "What to look at.", group="Look", menu=view)
    beside: str = setting("", "Beside", "Which variant stands beside the baseline, as variants names it.", group="Look")
    difference: bool = setting(
        False,
        "Difference",
        "Beside the baseline: by how much the variant differs from it, instead of the variant.",
        group="Look",
    )
    compare: bool = setting(
        False, "Compare 1, 4 and 8 heads", "The same sentence and width with 1, 4 and 8 heads.", group="Look"
    )
    vector: str = setting("", "Vector", "Numbers of one's own for a norm, as 3.2, −1.5, 0.8.", group="Look")
    apply_dropout: bool = setting(
        False,
        "Apply dropout in this pass",
        "Off: as at test time. On: as in training, from a random stream of its own.",
        group="More parts",
    )


@dataclass(frozen=True)
class BlockContext:
    """What the views are handed: the pass of a sentence, what it is compared with, and what is looked at."""

    text: str
    forward_pass: Pass
    pins: Pins
    look: BlockLook
