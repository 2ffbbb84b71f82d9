"""What can be taken away from the page "Training" beside its tables and pictures: scripts, and every model."""

from collections.abc import Callable
from functools import partial

from core.checkpoints import own
from core.checkpoints.zips import zipped
from core.experiments.training.plan import Plan
from core.experiments.training.results import last
from core.export.slug import slug
from core.export.training import training_script
from ui.kit import takeaway
from ui.kit.jobs import StartedTrainings
from ui.training.finished import FinishedTrainings
from ui.training.take_apart import trained_models


def scripts(planned: Plan) -> dict[str, Callable[[], str]]:
    """Label -> what writes the script."""
    return {label: partial(training_script, flavour, planned) for label, flavour in takeaway.FLAVOURS.items()}


def models(trainings: StartedTrainings | FinishedTrainings | None) -> dict:
    """Every trained model as a file: label -> (name of the file, what makes it)."""
    files = {}
    for arm, seed in trained_models(trainings) if trainings else []:
        state, accuracy = trainings.states[arm, seed], last(trainings.runs[arm, seed])
        name = f"{state.training.task}: {arm}, seed {seed}"
        files[f"Model: {arm}, seed {seed}"] = (f"{slug(name)}.zip", partial(_packed, state, name, accuracy))
    return files


def _packed(state, name, accuracy) -> bytes:
    return zipped(own.write_trained(state, name, accuracy))
