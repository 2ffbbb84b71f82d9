"""What can be taken away from the page "Training" besides its tables and pictures: every model."""

from functools import partial

from core.checkpoints import own
from core.experiments.training.results import last
from core.export.sheets import slug
from ui.kit.jobs import StartedTrainings
from ui.training.finished import FinishedTrainings
from ui.training.take_apart import trained_models


def models(trainings: StartedTrainings | FinishedTrainings | None) -> dict:
    """Every trained model as a file: label -> (name of the file, what makes it)."""
    files = {}
    for arm, seed in trained_models(trainings) if trainings else []:
        state, accuracy = trainings.states[arm, seed], last(trainings.runs[arm, seed])
        name = f"{state.training.task}: {arm}, seed {seed}"
        files[f"Model: {arm}, seed {seed}"] = (f"{slug(name)}.zip", partial(_packed, state, name, accuracy))
    return files


def _packed(state, name, accuracy) -> bytes:
    return own.zipped(own.write_trained(state, name, accuracy))
