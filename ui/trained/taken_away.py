"""What can be taken away from the page "Trained model" beside its tables and pictures: a script of the knock-out, the model."""

from collections.abc import Callable
from functools import partial

from core.checkpoints import Opened, files, own
from core.checkpoints.tokens import Words
from core.checkpoints.zips import zipped
from core.export.knockout import knockout_script
from core.export.slug import slug
from ui.shared import models
from ui.trained.context import TrainedContext


def scripts(context: TrainedContext) -> dict[str, Callable[[], str]]:
    """Label -> what writes the script."""
    look = context.look
    member = models.of_the_family().get(look.model)
    write = partial(knockout_script, folder_of(look.model), context.cuts, look.mode, look.texts, member)
    return {"Python script with core (save it in the repository)": write}


def folder_of(name: str) -> str:
    """Where a script finds it, as seen from the repository; "" for one that lies elsewhere: where, is for nobody to see."""
    folder = files.folders().get(name)
    return folder.relative_to(files.ROOT.parent).as_posix() if folder and folder.is_relative_to(files.ROOT) else ""


def model_file(opened: Opened) -> dict:
    """A model of the lab's own as a file: label -> (name of the file, what makes it)."""
    if not isinstance(opened.tokens, Words):
        return {}
    return {
        "This model: weights and configuration": (
            f"{slug(opened.name)}.zip",
            lambda: zipped(own.write(opened.model, opened.name, opened.task, **opened.about)),
        )
    }
