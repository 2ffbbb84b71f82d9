"""Of a study in which each model was trained at several learning rates: for each seed the run whose rate was chosen
(core.train.search.choose)."""

import math
from collections.abc import Mapping, Sequence

from core.study.database.queries import Line
from core.study.database.schema import ENDED
from core.study.file.guards import without_rate
from core.study.plan import read_settings
from core.tasks import task
from core.train.search import choose

Name = tuple[str, str]  # of a cell: task, variant


def chosen(
    runs: Sequence[Line], last: Mapping[int, float], specs: Mapping[Name, str]
) -> dict[Name, list[tuple[Line, float]]]:
    """(task, model) -> (run, its rate) for each seed that can be judged. last: run -> accuracy at its end, but for what diverged."""
    grids: dict[Name, dict[float, dict[int, Line]]] = {}
    guessing = {}
    for run in runs:
        training = read_settings(specs[run.task, run.variant])[1]
        model = run.task, without_rate(run.variant, training.learning_rate)
        grids.setdefault(model, {}).setdefault(training.learning_rate, {})[run.seed] = run
        guessing[run.task] = task[training.task].chance
    return {model: _of_each_seed(grid, last, guessing[model[0]]) for model, grid in grids.items()}


def _of_each_seed(
    grid: Mapping[float, Mapping[int, Line]], last: Mapping[int, float], guessing: float
) -> list[tuple[Line, float]]:
    """grid: rate -> seed -> run. A seed on which one of the rates is not trained to the end is left out."""
    ended = {
        rate: {seed: last.get(run.id, math.nan) for seed, run in of.items() if run.state in ENDED}
        for rate, of in grid.items()
    }
    return [(grid[rate][seed], rate) for seed, rate in choose(ended, guessing).items()]
