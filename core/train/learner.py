"""The model that a task asks for, and what to take out of it first: settings that follow the task until they are moved."""

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Any

from core.model.config import Config
from core.model.variants import Pins, encode
from core.settings.setting import Setting, setting_like
from core.tasks import task
from core.train.settings import Training

HELP = {
    "dropout": "Share of numbers set to zero at random in every step of training; none when accuracy is measured.",
    "seed": "The first seed; further ones follow it. The same seed gives the same curves to the last bit on one machine. "
    "On another they part after a while, because numbers are rounded in another order.",
}


def known(settings: "Learner | Removed") -> str:
    """The task that settings name. Raises ConfigError for a name that is none."""
    name: str = settings.settings()["task"].check("task", settings.task)
    return name


@cache
def usual(name: str) -> Config:
    """The full model of a task."""
    return task[name].config()


def _followed(name: str, setting: Setting) -> Setting:
    """A setting of Config with the task's own value until another is given."""
    follows = setting.follows or (lambda learner: getattr(usual(known(learner)), name))
    return dataclasses.replace(setting, help=HELP.get(name, setting.help), follows=follows)


@dataclass(frozen=True, init=False)
class Learner(Config):
    """A Config in which every setting is the task's own until it is given. Raises ConfigError as Config does."""

    task: str = setting_like(Training, "task", "reverse")

    def __init__(self, task: str = "reverse", **given: Any):
        unknown = given.keys() - Config.settings().keys()
        if unknown:
            raise TypeError(f"a model has no setting {', '.join(sorted(unknown))}")
        for name in Config.settings():
            object.__setattr__(self, name, given.get(name))
        object.__setattr__(self, "task", task)
        self.__post_init__()

    @classmethod
    @cache
    def settings(cls) -> dict[str, Setting]:
        own = super().settings()
        return {name: own[name] if name == "task" else _followed(name, own[name]) for name in own}

    def plain(self) -> Config:
        """The model's settings without the task's name."""
        return Config(**{name: getattr(self, name) for name in Config.settings()})


@dataclass(frozen=True)
class Removed(Pins):
    """What is compared in training: at first the task's full model with the model that lacks what the task needs."""

    variants: str = setting_like(Pins, "variants", None, follows=lambda pins: encode(task[known(pins)].without))
    task: str = setting_like(Training, "task", "reverse")
