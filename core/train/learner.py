"""The model that a task asks for, and what to take out of it first: settings that follow the task until they are moved."""

import dataclasses
from functools import cache

from core.model.config import Config
from core.model.variants import Pins, encode
from core.settings.setting import dial, dials
from core.tasks import task

TASK = dial("reverse", "Task", "What the model has to learn.", group="Task", short="task", menu=task)


@cache
def usual(name: str) -> Config:
    """The full model of a task. Raises ConfigError for a name that is none."""
    return task[TASK.metadata["dial"].check("task", name)].config()


HELP = {
    "dropout": "Share of numbers set to zero at random in every step of training; none when accuracy is measured.",
    "seed": "The first seed; further ones follow it. The same seed gives the same curves to the last bit on one machine; "
    "on another they part after a while, because numbers are rounded in another order.",
}


def _followed(field):
    """The field of Config, with the task's own value until another is given."""
    made = field.metadata["dial"]
    made = dataclasses.replace(made, help=HELP.get(field.name, made.help))
    follows = made.follows or (lambda learner: getattr(usual(learner.task), field.name))
    return dataclasses.field(default=None, metadata={"dial": dataclasses.replace(made, follows=follows)})


Learner = dataclasses.make_dataclass(
    "Learner",
    [*[(f.name, f.type, _followed(f)) for f in dataclasses.fields(Config)], ("task", str, TASK)],
    bases=(Config,),
    frozen=True,
    namespace={
        "__doc__": "A Config in which every setting is the task's own until it is given. Raises ConfigError as Config does.",
        "plain": lambda self: Config(**{name: getattr(self, name) for name in dials(Config)}),
    },
)


@dataclasses.dataclass(frozen=True)
class Removed(Pins):
    """What is compared in training: at first the task's full model with the model that lacks what the task needs."""

    variants: str = dataclasses.field(
        default=None,
        metadata={
            "dial": dataclasses.replace(dials(Pins)["variants"], follows=lambda pins: encode(task[pins.task].without))
        },
    )
    task: str = TASK

    def __post_init__(self):
        usual(self.task)
        if self.variants is None:
            object.__setattr__(self, "variants", dials(self)["variants"].follows(self))
        super().__post_init__()
