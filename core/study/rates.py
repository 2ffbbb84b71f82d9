"""Learning rates of a study that searches them: how much of an effect is rate, how much part.

The effect of a variant at the learning rate that the study sets has two parts. What is left when
the variant and the baseline each have their best rate is the effect of the part; the rest came from
a rate that suits one of them less.

The sensitivity of a model is the mean, over the rates that are tried, of its loss above that at its
best rate. A loss counts at most as much as that of the first step (Wortsman et al., 2023,
https://arxiv.org/abs/2309.14322). It depends on the range of rates, which is stated with it.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pandas as pd

from core.experiments.training.plan import BASELINE
from core.experiments.training.sentences import decimals_of, format_points
from core.measure.intervals import Interval, Paired, interval, paired
from core.measure.verdicts import CHANGE
from core.settings.wording import fixed
from core.study.database.schema import ENDED
from core.study.database.store import Store, StoredRun
from core.study.file import read, search_of
from core.study.imports import import_curves
from core.study.plan import is_null
from core.study.shipped import shipped_curves, study_of
from core.study.tables import Name, find_source, group_by_rate
from core.train.match import choose_rate, count_rates

RULE = (
    "For each seed, the best rate of a model is that with the least training loss at the end. As"
    " set: both models at the rate that the study sets. From the part: each at its best rate. From"
    " the rate: what remains. Sensitivity: mean loss above that at the best rate, over all rates"
    " tried, in nats. A loss counts at most as much as that of the first step (Wortsman et al.,"
    " 2023). A model that never learns is hardly sensitive. Intervals are 95 % over seeds, each by"
    " itself, not corrected for several variants."
)


@dataclass(frozen=True)
class RateLine:
    """Effect of a variant on a task, split into rate and part; differences are shares.

    best, best_base: rates chosen and on how many seeds ("0.003 on 4"). rates: that were tried.
    sensitivity: of the variant and of the baseline, in nats; more: their paired difference.
    """

    task: str
    variant: str
    as_set: Paired
    part: Paired
    rate: Paired
    best: str
    best_base: str
    rates: tuple[float, ...]
    sensitivity: Interval
    base_sensitivity: Interval
    more: Paired


@dataclass(frozen=True)
class _Model:
    """What each seed of a model has: accuracy at the set and at the best rate, sensitivity."""

    as_set: dict[int, float]
    tuned: dict[int, float]
    sensitivity: dict[int, float]
    best: list[float]
    rates: tuple[float, ...]


def shipped_rates(name: str) -> list[RateLine]:
    """Return the lines of a built-in study (key) from its curves; StudyError or OSError."""
    study = read(study_of(name))
    if search_of(study.source) == "none":
        return []
    with closing(Store(":memory:")) as store:
        import_curves(store, study, shipped_curves(name), certain=False)
        study_id = store.find(study.name)
        assert study_id is not None
        return measure_rates(store, study_id)


def measure_rates(store: Store, study: int) -> list[RateLine]:
    """Return a line for each variant of a stored study; [] if it searches no learning rates."""
    if search_of(find_source(store, study)) == "none":
        return []
    models = _read_models(store, study)
    lines = []
    for (task_name, variant), model in models.items():
        base = models.get((task_name, BASELINE))
        if variant == BASELINE or is_null(variant) or base is None:
            continue
        as_set = _differences(model.as_set, base.as_set)
        part = _differences(model.tuned, base.tuned)
        zero = dict.fromkeys(as_set, 0.0)
        lines.append(
            RateLine(
                task_name,
                variant,
                paired(as_set, zero, CHANGE),
                paired(part, zero, CHANGE),
                paired(as_set, part, (-2.0, 2.0)),
                count_rates(model.best),
                count_rates(base.best),
                model.rates,
                interval(model.sensitivity.values(), (0.0, math.inf)),
                interval(base.sensitivity.values(), (0.0, math.inf)),
                paired(model.sensitivity, base.sensitivity),
            )
        )
    return lines


def _differences(values: Mapping[int, float], base: Mapping[int, float]) -> dict[int, float]:
    """Return the differences of two models by seed, of seeds that both have."""
    return {seed: values[seed] - base[seed] for seed in values if seed in base}


def _read_models(store: Store, study: int) -> dict[Name, _Model]:
    """Return (task, model) -> its numbers by seed; seeds with an open rate are left out."""
    accuracy = store.results(study)
    losses = store.late_losses(study)
    first_losses = _read_first_losses(store, study)
    models: dict[Name, _Model] = {}
    grids = group_by_rate(store.runs(study, spec=False), store.specs(study))
    for (task_name, name, seed), grid in grids.items():
        if any(run.state not in ENDED for run in grid.values()):
            continue
        by_rate = {rate: losses.get(run.id, math.inf) for rate, run in grid.items()}
        best = choose_rate(by_rate)
        model = models.setdefault((task_name, name), _Model({}, {}, {}, [], tuple(sorted(by_rate))))
        as_set = next((run for run in grid.values() if run.variant == name), None)
        if as_set is not None:
            model.as_set[seed] = accuracy.get(as_set.id, math.nan)
        model.tuned[seed] = accuracy.get(grid[best].id, math.nan)
        model.sensitivity[seed] = _measure_sensitivity(by_rate, grid, first_losses)
        model.best.append(best)
    return models


def _measure_sensitivity(
    losses: Mapping[float, float], grid: Mapping[float, StoredRun], first: Mapping[int, float]
) -> float:
    """Return the mean loss of one seed above that at its best rate, at most the first step's.

    NaN if no run of this seed has a loss.
    """
    capped = [min(loss, first.get(grid[rate].id, math.nan)) for rate, loss in losses.items()]
    return sum(capped) / len(capped) - min(capped) if capped else math.nan


def _read_first_losses(store: Store, study: int) -> dict[int, float]:
    """Return run id -> loss of its first logged step."""
    first: dict[int, float] = {}
    for row in store.rows(study):
        first.setdefault(row.run, row.loss)
    return first


def describe_split(line: RateLine) -> str:
    """Describe how an effect splits: "−12.0 points as set: −10.0 from the rate, −2.0 …"."""
    fine = decimals_of([line.as_set.mean, line.rate.mean, line.part.mean])
    points = [format_points(gap.mean, fine) for gap in (line.as_set, line.rate, line.part)]
    return (
        f"{points[0]} points as set: {points[1]} from the rate, {points[2]} from the part (95 % CI"
        f" {format_points(line.part.low, fine)} to {format_points(line.part.high, fine)})."
    )


def format_split(gap: Paired) -> str:
    """Format an effect in points with its interval: "−12.0 (−14.1 to −9.9)"."""
    fine = decimals_of([gap.mean])
    low, high = format_points(gap.low, fine), format_points(gap.high, fine)
    return f"{format_points(gap.mean, fine)} ({low} to {high})"


def describe_range(lines: Sequence[RateLine]) -> str:
    """Describe the rates over which sensitivities are means: "Rates from 0.001 to 0.009."."""
    rates = sorted({rate for line in lines for rate in line.rates})
    return f"Rates from {rates[0]:g} to {rates[-1]:g}." if rates else ""


def format_interval(gap: Interval | Paired, decimals: int = 3) -> str:
    """Format a mean with its interval: "0.120 (0.080 to 0.160)"."""
    mean, low, high = (fixed(value, decimals) for value in gap[:3])
    return f"{mean} ({low} to {high})"


def rate_table(lines: Sequence[RateLine]) -> pd.DataFrame:
    """Return a line per variant and task: effects (shares) and sensitivities with intervals."""
    rows = []
    for line in lines:
        row: dict[str, object] = {"task": line.task, "variant": line.variant}
        named: dict[str, Interval | Paired] = {
            "as_set": line.as_set,
            "rate": line.rate,
            "part": line.part,
            "sensitivity": line.sensitivity,
            "baseline_sensitivity": line.base_sensitivity,
            "more_sensitive": line.more,
        }
        for name, gap in named.items():
            row |= {name: gap.mean, f"{name}_low": gap.low, f"{name}_high": gap.high}
        row |= {
            "seeds": line.part.n,
            "best_rate": line.best,
            "baseline_best_rate": line.best_base,
            "lowest_rate": line.rates[0],
            "highest_rate": line.rates[-1],
        }
        rows.append(row)
    return pd.DataFrame(rows)
