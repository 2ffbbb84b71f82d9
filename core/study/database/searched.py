"""Of a study in which each model was trained at several learning rates: for each seed the run whose rate was chosen
(core.train.search)."""

import math
from collections.abc import Mapping, Sequence

from core.study.database.queries import Line
from core.study.database.schema import DONE, ENDED
from core.study.file.guards import without_rate
from core.study.plan import read_settings
from core.train.search import choose

Name = tuple[str, str]  # of a cell: task, variant


def chosen(
    runs: Sequence[Line], losses: Mapping[int, float], specs: Mapping[Name, str]
) -> dict[Name, list[tuple[Line, float]]]:
    """(task, model) -> (run, its rate) for each seed; where one of the rates is not trained to the end, a run that is not, and no
    rate (NaN). losses: run -> late_loss, of those that did not diverge."""
    grids: dict[Name, dict[int, dict[float, Line]]] = {}
    for run in runs:
        rate = read_settings(specs[run.task, run.variant])[1].learning_rate
        grids.setdefault((run.task, without_rate(run.variant, rate)), {}).setdefault(run.seed, {})[rate] = run
    return {model: [_of_one_seed(of, losses) for of in seeds.values()] for model, seeds in grids.items()}


def _of_one_seed(runs: Mapping[float, Line], losses: Mapping[int, float]) -> tuple[Line, float]:
    for run in runs.values():
        if run.state not in ENDED:
            return run, math.nan
    rate = choose({rate: losses[run.id] if run.state == DONE else math.inf for rate, run in runs.items()})
    return runs[rate], rate
