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
from dataclasses import dataclass

import pandas as pd

from core.experiments.training.plan import BASELINE
from core.experiments.training.results import facts_of
from core.experiments.training.sentences import format_points
from core.measure.intervals import Interval, Paired, interval, paired
from core.measure.verdicts import CHANGE
from core.settings.wording import fixed
from core.study.database.schema import ENDED
from core.study.database.store import Store, StoredRun
from core.study.file import read, search_of
from core.study.imports import open_shipped
from core.study.picture import CEILING
from core.study.plan import is_null, read_settings
from core.study.shipped import study_of
from core.study.tables import Name, find_source, group_by_rate
from core.tasks import Task, task
from core.train import Training
from core.train.match import choose_rate, count_rates

RULE = (
    "For each seed, the best rate of a model is that with the least training loss at the end. As"
    " set: both models at the rate that the study sets. Best rates: each at its own; what is left"
    " of the effect comes from the part. From the rate: as set minus best rates. It is positive"
    " where the baseline gains more from its best rate. Sensitivity: mean loss above that at the"
    " best rate, over all rates tried, in nats (the natural unit of cross-entropy). A loss counts"
    " at most as much as that of the first step (Wortsman et al., 2023). At the edge: the lowest or"
    " highest rate tried, so a better one may lie beyond. A model that never learns is hardly"
    " sensitive. Intervals are 95 % over seeds, each by itself, not corrected for several variants."
)
NOT_LEARNT = "variant does not learn at any rate"


@dataclass(frozen=True)
class RateLine:
    """Effect of a variant on a task, split into rate and part; differences are shares.

    as_set: both models at the rate of the study. part: each at its best rate. rate: as_set − part.
    accuracies: of the variant as set and at its best rates, then of the baseline. best, best_base:
    rates chosen and on how many seeds ("0.003 on 4"). rates: that were tried. sensitivity: in nats;
    sensitivity_change: paired difference from the baseline's. notes: warnings in words.
    """

    task: str
    variant: str
    as_set: Paired
    part: Paired
    rate: Paired
    accuracies: tuple[float, float, float, float]
    best: str
    best_base: str
    rates: tuple[float, ...]
    sensitivity: Interval
    base_sensitivity: Interval
    sensitivity_change: Paired
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Model:
    """Accuracy of a model at the set and at the best rate, and its sensitivity, by seed."""

    as_set: dict[int, float]
    tuned: dict[int, float]
    sensitivity: dict[int, float]
    best: list[float]
    rates: tuple[float, ...]


def shipped_rates(name: str) -> list[RateLine]:
    """Return the lines of a built-in study (key) from its curves; StudyError or OSError."""
    if search_of(read(study_of(name)).source) == "none":
        return []
    with open_shipped(name) as (store, study_id):
        return measure_rates(store, study_id)


def measure_rates(store: Store, study: int) -> list[RateLine]:
    """Return a line for each variant of a stored study; [] if it searches no learning rates."""
    if search_of(find_source(store, study)) == "none":
        return []
    models = _read_models(store, study)
    specs = store.specs(study)
    lines = []
    for (task_name, variant), model in models.items():
        base = models.get((task_name, BASELINE))
        if variant == BASELINE or is_null(variant) or base is None:
            continue
        _, training = read_settings(specs[task_name, variant])
        lines.append(_compare(task_name, variant, model, base, training))
    return lines


def _compare(
    task_name: str, variant: str, model: _Model, base: _Model, training: Training
) -> RateLine:
    """Return the line of a variant, on the seeds that all four of its numbers have."""
    least = 1 / facts_of(training).answers
    as_set = _differences(model.as_set, base.as_set)
    part = _differences(model.tuned, base.tuned)
    seeds = [seed for seed in as_set if not math.isnan(as_set[seed] - part.get(seed, math.nan))]
    from_rate = {seed: as_set[seed] - part[seed] for seed in seeds}
    zero = dict.fromkeys(seeds, 0.0)
    parts = (model.as_set, model.tuned, base.as_set, base.tuned)
    set_model, tuned_model, set_base, tuned_base = (
        interval([values[seed] for seed in seeds]).mean for values in parts
    )
    return RateLine(
        task_name,
        variant,
        paired({seed: as_set[seed] for seed in seeds}, zero, CHANGE, least_spread=least),
        paired({seed: part[seed] for seed in seeds}, zero, CHANGE, least_spread=least),
        paired(from_rate, zero, (-2.0, 2.0), least_spread=least),
        (set_model, tuned_model, set_base, tuned_base),
        count_rates(model.best),
        count_rates(base.best),
        model.rates,
        interval(model.sensitivity.values(), (0.0, math.inf)),
        interval(base.sensitivity.values(), (0.0, math.inf)),
        paired(model.sensitivity, base.sensitivity),
        tuple(_list_warnings(model, base, tuned_model, tuned_base, task[training.task])),
    )


def _list_warnings(
    model: _Model, base: _Model, accuracy: float, base_accuracy: float, learnt: Task
) -> list[str]:
    """List what limits a comparison at the best rates, in words: ceiling, edge, nothing learnt."""
    warnings = []
    if min(accuracy, base_accuracy) >= learnt.best - CEILING:
        warnings.append("both at the ceiling")
    if _is_at_edge(model) or _is_at_edge(base):
        warnings.append("best rate at the edge")
    if accuracy < learnt.learnt_from:
        warnings.append(NOT_LEARNT)
    return warnings


def _is_at_edge(model: _Model) -> bool:
    """Return whether the rate that most seeds choose is the lowest or highest tried."""
    most_chosen = max(set(model.best), key=model.best.count)
    return most_chosen in (model.rates[0], model.rates[-1])


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

    NaN if no run of this seed has a loss, or a diverged one has no first step.
    """
    capped = [min(loss, first.get(grid[rate].id, math.inf)) for rate, loss in losses.items()]
    return sum(capped) / len(capped) - min(capped) if max(capped) < math.inf else math.nan


def _read_first_losses(store: Store, study: int) -> dict[int, float]:
    """Return run id -> loss of its first logged step."""
    first: dict[int, float] = {}
    for row in store.rows(study):
        first.setdefault(row.run, row.loss)
    return first


def describe_split(line: RateLine) -> str:
    """Describe how an effect splits, and what limits this: "−12.0 points as set, …"."""
    values = [format_points(gap.mean, 1) for gap in (line.as_set, line.part, line.rate)]
    limits = f" Limits: {', '.join(line.notes)}." if line.notes else ""
    sentence = f"{values[0]} points as set, {values[1]} at the best rates of both"
    if line.rate.mean == line.rate.reach == 0:
        return f"{sentence}; nothing comes from the rate on any seed.{limits}"
    low = format_points(line.rate.low, 1)
    high = format_points(line.rate.high, 1)
    return f"{sentence}; {values[2]} come from the rate (95 % CI {low} to {high}).{limits}"


def format_split(gap: Paired) -> str:
    """Format an effect in points with its interval: "−12.0 (−14.1 to −9.9)".

    Where all seeds give 0 to the last answer there is no noise to give an interval.
    """
    if gap.mean == gap.reach == 0:
        return "same on every seed"
    mean, low, high = (format_points(value, 1) for value in gap[:3])
    return f"{mean} ({low} to {high})"


def describe_range(lines: Sequence[RateLine]) -> str:
    """List the rates over which sensitivities are means: "Rates tried: 0.001, 0.003, 0.009."."""
    rates = sorted({rate for line in lines for rate in line.rates})
    return f"Rates tried: {', '.join(f'{rate:g}' for rate in rates)}." if rates else ""


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
            "more_sensitive": line.sensitivity_change,
        }
        for name, gap in named.items():
            row |= {name: gap.mean, f"{name}_low": gap.low, f"{name}_high": gap.high}
        row |= {
            "seeds": line.part.n,
            "accuracy_as_set": line.accuracies[0],
            "accuracy_best": line.accuracies[1],
            "baseline_as_set": line.accuracies[2],
            "baseline_best": line.accuracies[3],
            "best_rate": line.best,
            "baseline_best_rate": line.best_base,
            "lowest_rate": line.rates[0],
            "highest_rate": line.rates[-1],
            "notes": "; ".join(line.notes),
        }
        rows.append(row)
    return pd.DataFrame(rows)
