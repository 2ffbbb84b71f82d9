"""Of a study in which each model was trained at several learning rates: for each seed the run whose rate was chosen.

It is chosen on the other seeds, so on test sets that are not its own: on which rate they were right most often. So no model is
judged on what its rate was chosen by, and none has more rates to choose from than another.
"""

import math
from collections.abc import Mapping, Sequence

from core.study.database.queries import Line
from core.study.database.schema import ENDED
from core.study.file.guards import without_rate
from core.study.plan import read_settings
from core.tasks import task

Name = tuple[str, str]  # of a cell: task, variant
ENOUGH = 2  # seeds, of which one can be chosen by the other


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
    """grid: rate -> seed -> run. A run that diverged has learnt nothing: it counts with what guessing gets. A seed on which one
    of the rates is not trained to the end is left out, and none is chosen by it."""
    seeds = set.intersection(*({seed for seed, run in of.items() if run.state in ENDED} for of in grid.values()))
    if len(seeds) < ENOUGH:
        return []
    found = []
    for seed in sorted(seeds):
        others = {
            rate: math.fsum(_accuracy(last.get(of[other].id, math.nan), guessing) for other in seeds - {seed})
            for rate, of in grid.items()
        }
        best = min(rate for rate, total in others.items() if total == max(others.values()))
        found.append((grid[best][seed], best))
    return found


def _accuracy(value: float, guessing: float) -> float:
    return guessing if math.isnan(value) else value
