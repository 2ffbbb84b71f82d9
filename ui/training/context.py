"""Context of Training: menu of views, look, and what views receive."""

from dataclasses import dataclass
from typing import Any

from core.settings.menu import Menu
from core.settings.setting import Settings, setting
from ui.kit.jobs import StartedTrainings
from ui.training.finished import FinishedTrainings

view: Menu[Any] = Menu("Views of training")


@dataclass(frozen=True)
class TrainingLook(Settings):
    """View settings of Training, counted from 1; larger values mean the last."""

    trained: str = setting("learning", "View", "What to look at.", group="Look", menu=view)
    trained_layer: int = setting(
        1, "Layer", "Layer, numbered from 1.", group="Look", low=1, high=100, step=1
    )
    trained_head: int = setting(
        0,
        "Head",
        "Head, numbered from 1. 0 = mean over heads.",
        group="Look",
        low=0,
        high=64,
        step=1,
    )
    sequence: int = setting(
        0,
        "Sequence",
        "Test sequence. 0 = one where the models disagree.",
        group="Look",
        low=0,
        high=64,
        step=1,
    )
    begin: bool = setting(
        False, "Begin", "Start training when the link is opened.", group="Look", once=True
    )


@dataclass(frozen=True)
class TrainingContext:
    """Context of Training's views: the running or finished training, and the look."""

    trainings: StartedTrainings | FinishedTrainings
    look: TrainingLook

    def empty_views(self) -> set[str]:
        """Return the keys of the views that have nothing to show."""
        empty = set()
        if isinstance(self.trainings, FinishedTrainings) and not self.trainings.states:
            empty |= {"answers", "attention"}
        if len(self.trainings.plan.parts) < 2:
            empty.add("together")
        return empty
