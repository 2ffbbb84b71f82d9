"""What can be taken away from the page "Trained model" besides its tables and pictures: a script, the model."""

from core.checkpoints import Opened, files, own
from core.checkpoints.tokens import Words
from core.experiments.trained.comparison import compared
from core.export.script import Script
from core.export.scripts import (
    ELSEWHERE,
    family_script,
    folder_call,
    knockout_script,
    member_call,
)
from core.export.sheets import slug
from ui.shared import models
from ui.trained.context import TrainedContext


def script(context: TrainedContext) -> Script:
    """Write the script of the open view."""
    look = context.look
    if look.taken == "without":
        return family_script(look.compared, look.part if compared[look.compared].split else "")
    return knockout_script(
        opening_call(look.model),
        context.cuts,
        look.mode,
        look.texts,
        look.taken,
        text=look.prompt,
        token=context.after + 1 if look.taken == "words" else 1,
        sampling=context.sampling,
    )


def opening_call(name: str) -> str:
    """Write the call that opens a model; the place of one that does not ship stays private."""
    member = models.of_the_family().get(name)
    if member:
        return member_call(*member)
    folder = files.folders().get(name)
    if folder and folder.is_relative_to(files.ROOT):
        return folder_call(folder.relative_to(files.ROOT).as_posix())
    return ELSEWHERE


def model_file(opened: Opened) -> dict:
    """A model of the lab's own as a file: label -> (name of the file, what makes it)."""
    if not isinstance(opened.tokens, Words):
        return {}
    return {
        "This model: weights and configuration": (
            f"{slug(opened.name)}.zip",
            lambda: own.zipped(own.write(opened.model, opened.name, opened.task, **opened.about)),
        )
    }
