"""The menu of the views of One block, and what is looked at there."""

from dataclasses import dataclass

from core.settings.menu import Menu
from core.settings.setting import dial
from ui.shared.base import Picked

views = Menu("Views")


@dataclass(frozen=True)
class Look(Picked):
    """The same on the page "One block"."""

    view: str = dial("attention", "View", "What to look at.", group="Look", menu=views)
    compare: bool = dial(
        False, "Compare 1, 4 and 8 heads", "The same sentence and width with 1, 4 and 8 heads.", group="Look"
    )
    vector: str = dial("", "Vector", "Numbers of one's own for a norm, as 3.2, −1.5, 0.8.", group="Look")
    apply_dropout: bool = dial(
        False,
        "Apply dropout in this pass",
        "Off: as at test time. On: as in training, from a random stream of its own.",
        group="Look",
    )
