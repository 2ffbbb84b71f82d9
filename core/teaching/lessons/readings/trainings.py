"""Readings of trainings that ship: every curve of every seed, by study, task and variant."""

import math

from core.experiments.training.plan import BASELINE
from core.measure.intervals import Interval
from core.settings.setting import ConfigError
from core.study.plan import StudyError
from core.study.shipped import table_of
from core.study.summary import read_summary
from core.teaching.claims.rule import Evidence
from core.teaching.lessons.readings.reading import Measured, Params, per_seed, reading
from core.train import Row
from core.train.search import late_loss

NAMES = ("study", "task", "variant")


def _named(params: Params) -> tuple[str, str, str]:
    for name in NAMES[:2]:
        if name not in params:
            raise ConfigError(name, f"{name} is missing; a reading of trainings takes study, task and variant.")
    return params["study"], params["task"], params.get("variant", BASELINE)


def _rows(params: Params) -> dict[int, list[Row]]:
    try:
        return {seed: list(rows) for seed, rows in Evidence().curves(*_named(params)).items()}
    except (StudyError, OSError) as error:
        raise ConfigError("study", f"The trainings of this lesson are missing: {error}") from None


@reading(unit="percent", within=(0.0, 1.0), curve="step", takes=NAMES)
def accuracy(params: Params) -> Measured:
    """Accuracy after training: the share of right answers on a test set."""
    curve = {seed: {row.step: row.accuracy for row in rows} for seed, rows in _rows(params).items()}
    return per_seed(Evidence().accuracy(*_named(params)), (0.0, 1.0), curve)


@reading(within=(0.0, math.inf), curve="step", takes=NAMES)
def loss(params: Params) -> Measured:
    """Training loss: mean of the last tenth of the steps, in nats."""
    curve = {seed: {row.step: row.loss for row in rows} for seed, rows in _rows(params).items()}
    ends = {seed: late_loss(each.items(), max(each)) for seed, each in curve.items()}
    return per_seed(ends, (0.0, math.inf), curve)


@reading(unit="percent", within=(0.0, 1.0), takes=("task", "variant"))
def accuracy_at_own_rate(params: Params) -> Measured:
    """Accuracy at its own rate: each seed at the learning rate that suits it best, out of three."""
    table = read_summary(table_of("own_learning_rates"))
    rows = table[(table.task == params.get("task")) & (table.variant == params.get("variant", BASELINE))]
    if len(rows) != 1:
        raise ConfigError("task", "task and variant must be a cell of the study at own learning rates.")
    row = rows.iloc[0]
    return Measured({}, Interval(float(row.accuracy), float(row.low), float(row.high), int(row.seeds)))
