"""Ladder of a study with sizes: the effect of a variant at each size of the dial.

A study with sizes = [1, 2, 3, 4] trains each of its tasks at each of these sizes. Does an effect
hold in larger models? core/measure/trends.py states the rule of the verdict.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.experiments.training.plan import BASELINE, Plan
from core.experiments.training.results import facts_of
from core.experiments.training.sentences import decimals_of, format_margin, format_points
from core.measure.intervals import Interval
from core.measure.power import LEAST_SEEDS
from core.measure.trends import (
    FLIPS,
    GROWS,
    LEAST_SIZES,
    SHRINKS,
    STEADY,
    UNTOLD,
    Effects,
    Trend,
    judge_trend,
    measure_trends,
    predict_effect,
)
from core.model.variants import difference
from core.settings.wording import count, number
from core.study.database.store import Store
from core.study.file import LOOKS, looks_of, margin_of, parse, quote, read
from core.study.imports import open_shipped
from core.study.plan import TRAINING, Run, Study, without_rate
from core.study.shipped import study_of
from core.study.summary import lines, select_variants
from core.study.tables import Name, list_seed_differences, summary_with_guards
from core.tasks import task
from core.train import Training
from core.train.dial import DIAL, USUAL, model_size, name_at_size, split_size

LADDER = (1, 2, 3, 4)  # sizes of a ladder; the fifth can be predicted
VERDICTS = (FLIPS, GROWS, SHRINKS, STEADY, UNTOLD)
RULE = (
    "Each seed that all sizes have gives a line through its effects; the mean slope is tested over"
    " seeds (t-test). The first that is true is the verdict. Flips: the variant differs at two"
    " sizes, with opposite signs. Steady: between every two sizes the effect changes by less than"
    " the margin, with the whole interval. Grows: the slope and the mean effect over all sizes"
    " differ from 0, with the same sign. Shrinks: with opposite signs. p and intervals are"
    " corrected for all variants of a task (Holm) and for looks. The prediction continues the line,"
    " as if no ceiling came near. Larger models see fewer tokens per parameter here: what changes"
    " with size may come from that."
)


@dataclass(frozen=True)
class Rung:
    """Effect of a variant at one size: mean difference (share), its interval, verdict and seeds.

    parameters: of the baseline of this size. tokens: that it is trained on, for each parameter.
    """

    size: int
    mean: float
    low: float
    high: float
    verdict: str
    by_seed: Mapping[int, float]
    parameters: int
    tokens: float


@dataclass(frozen=True)
class Ladder:
    """Effects of a variant on a task at every size, their trend, and its verdict.

    predicted: the effect at the size after the last one, from the trend; None at the end of the
    dial.
    """

    task: str
    variant: str
    rungs: tuple[Rung, ...]
    trend: Trend
    verdict: str
    margin: float
    predicted: Interval | None

    @property
    def next_size(self) -> int:
        """Size for which the effect is predicted."""
        return self.rungs[-1].size + 1


def write_ladder(plan: Plan) -> str:
    """Write the text of a study that trains a plan's models at sizes 1 to 4 of the dial.

    Learning rates are searched at every size. The settings of the plan are kept, without width,
    heads, layers and steps, which follow from the size. An FFN width that was set stays.
    """
    first, *others = plan.arms
    variants = {
        arm.name: difference(arm.config, first.config)
        | _find_changes(arm.training or plan.training, plan.training)
        for arm in others
    }
    base = difference(first.config, task[plan.training.task].config())
    training = _find_changes(plan.training, Training(task=plan.training.task))
    sized = {*model_size(USUAL), "seed", "padding", "steps"}
    tables = {
        "base": {name: value for name, value in base.items() if name not in sized},
        "training": {name: value for name, value in training.items() if name not in sized},
    }
    study_name = f"{task.label(plan.training.task)} at several sizes"
    toml_lines = [
        f"name = {quote(study_name)}",
        f"question = {quote('Do these effects hold at other sizes?')}",
        f"tasks = {quote([plan.training.task])}",
        f"seeds = {quote(LOOKS)}",
        f"sizes = {quote(LADDER)}",
        f"search = {quote('three')}",
    ]
    for name, values in tables.items():
        if values:
            toml_lines += ["", f"[{name}]", *_write_values(values)]
    toml_lines += ["", "[variants]"] if variants else []
    toml_lines += [
        f"{quote(name)} = {{ {', '.join(_write_values(changes))} }}"
        for name, changes in variants.items()
    ]
    return "\n".join(toml_lines) + "\n"


def _find_changes(training: Training, base: Training) -> dict[str, Any]:
    """Return the settings of a training that differ from another one."""
    return {
        name: getattr(training, name)
        for name in TRAINING
        if getattr(training, name) != getattr(base, name)
    }


def _write_values(values: Mapping[str, Any]) -> list[str]:
    """Write settings as lines of TOML: name = value."""
    return [f"{name} = {quote(value)}" for name, value in values.items()]


def read_sizes(toml_text: str) -> tuple[int, ...]:
    """Return the sizes of the dial at which a study's text trains its tasks; () for none."""
    return tuple(sorted(tomllib.loads(toml_text).get("sizes", ())))


def stored_ladders(store: Store, study: int, source: str) -> list[Ladder]:
    """Return the ladders of a stored study, given its id and text; [] without sizes.

    Raises:
        StudyError: this version does not support the text.
    """
    if not read_sizes(source):
        return []
    table = summary_with_guards(store, study)
    return build_ladders(table, list_seed_differences(store, study), parse(source))


def shipped_ladders(name: str) -> list[Ladder]:
    """Return the ladders of a built-in study (key) from its curves; StudyError or OSError."""
    source = read(study_of(name)).source
    if not read_sizes(source):
        return []
    with open_shipped(name) as (store, study_id):
        return stored_ladders(store, study_id, source)


def build_ladders(
    table: pd.DataFrame, differences: Mapping[Name, Mapping[int, float]], study: Study
) -> list[Ladder]:
    """Build a ladder for each task and variant, in the order of the study.

    Args:
        table: Summary of the study (core.study.tables.summary_with_guards).
        differences: (task, variant) -> seed -> difference (core.study.tables).
        study: The study.
    """
    runs = {
        (run.task, without_rate(run.variant, run.training.learning_rate)): run for run in study.runs
    }
    rungs: dict[Name, list[Rung]] = {}
    for line in lines(select_variants(table)):
        task_name, size = split_size(line.task)
        if size is None or not differences.get((line.task, line.variant)):
            continue
        base = table[(table.task == line.task) & (table.variant == BASELINE)].iloc[0]
        training = runs[line.task, BASELINE].training
        tokens = training.steps * training.batch * training.length
        rungs.setdefault((task_name, line.variant), []).append(
            Rung(
                size,
                line.difference,
                line.difference_low,
                line.difference_high,
                line.verdict,
                differences[line.task, line.variant],
                int(base.parameters),
                tokens / base.parameters,
            )
        )
    ladders = []
    for name in dict.fromkeys(task_name for task_name, _ in rungs):
        of_task = {variant: several for (other, variant), several in rungs.items() if other == name}
        ladders += _build_task(name, of_task, runs, study.source)
    return ladders


def _build_task(
    name: str, rungs: Mapping[str, Sequence[Rung]], runs: Mapping[Name, Run], source: str
) -> list[Ladder]:
    """Build the ladders of one task, whose trends are corrected together."""
    effects: dict[str, Effects] = {
        variant: {rung.size: rung.by_seed for rung in several} for variant, several in rungs.items()
    }
    first = next(iter(rungs.values()))[0].size
    training = runs[name_at_size(name, first), BASELINE].training
    answers = facts_of(training).answers
    trends = measure_trends(effects, answers, max(1, len(looks_of(source))))
    margin = margin_of(source, name_at_size(name, first))
    ladders = []
    for variant, several in rungs.items():
        ordered = tuple(sorted(several, key=lambda rung: rung.size))
        trend = trends[variant]
        verdict = judge_trend(trend, [(rung.verdict, rung.mean) for rung in ordered], margin)
        following = ordered[-1].size + 1
        predicted = None
        if following in DIAL and trend.n:
            predicted = predict_effect(effects[variant], following, trend.n)
        ladders.append(Ladder(name, variant, ordered, trend, verdict, margin, predicted))
    return ladders


def describe_verdict(ladder: Ladder) -> str:
    """Return a ladder's verdict in words: "grows", "steady within ±2 points"."""
    margin = f" within {format_margin(ladder.margin)}" if ladder.verdict == STEADY else ""
    return f"{ladder.verdict}{margin}"


def describe_ladder(ladder: Ladder) -> str:
    """Describe a variant's effects at the first and last size, and its trend, in sentences."""
    first = ladder.rungs[0]
    last = ladder.rungs[-1]
    fine = decimals_of([first.mean, last.mean])
    effects = (
        f"{format_points(first.mean, fine)} points at size {first.size},"
        f" {format_points(last.mean, fine)} at size {last.size}."
    )
    trend = ladder.trend
    if trend.n == 0:
        return f"{effects} A verdict needs {LEAST_SIZES} sizes that share {LEAST_SEEDS} seeds."
    digits = decimals_of([trend.slope, trend.low, trend.high])
    return (
        f"{effects} Slope: {format_points(trend.slope, digits)} points per size (corrected 95 % CI"
        f" {format_points(trend.low, digits)} to {format_points(trend.high, digits)}, {trend.n}"
        " seeds)."
    )


def describe_sizes(ladders: Sequence[Ladder]) -> str:
    """Describe the baseline at each size in a sentence: parameters, tokens per parameter."""
    rungs = {rung.size: rung for ladder in ladders for rung in ladder.rungs}
    ordered = [rungs[size] for size in sorted(rungs)]
    sizes = ", ".join(str(rung.size) for rung in ordered)
    parameters = "; ".join(f"{rung.parameters:,}" for rung in ordered)
    tokens = "; ".join(number(rung.tokens, 2) for rung in ordered)
    return (
        f"The baseline at sizes {sizes} has {parameters} parameters, and sees {tokens} tokens per"
        " parameter."
    )


def count_ladders(ladders: Sequence[Ladder]) -> str:
    """Describe how many ladders have each verdict: "Of 4 effects, 1 shrinks, 3 are steady."."""
    if not ladders:
        return "No effect has been measured at any size yet."
    verbs = {
        FLIPS: ("flips", "flip"),
        GROWS: ("grows", "grow"),
        SHRINKS: ("shrinks", "shrink"),
        STEADY: ("is steady", "are steady"),
        UNTOLD: ("cannot be told", "cannot be told"),
    }
    counts = {name: sum(ladder.verdict == name for ladder in ladders) for name in VERDICTS}
    parts = [f"{n} {verbs[name][n > 1]}" for name, n in counts.items() if n]
    return f"Of {count(len(ladders), 'effect')}, {', '.join(parts)}."


def ladder_table(ladders: Sequence[Ladder]) -> pd.DataFrame:
    """Return a line per effect and size, with the trend and its verdict; shares.

    The predicted size has verdict "predicted", and no seeds.
    """
    rows = []
    for ladder in ladders:
        shared = {
            "slope": ladder.trend.slope,
            "slope_low": ladder.trend.low,
            "slope_high": ladder.trend.high,
            "slope_p": ladder.trend.p,
            "slope_seeds": ladder.trend.n,
            "trend": ladder.verdict,
        }
        rows += [
            {
                "task": ladder.task,
                "variant": ladder.variant,
                "size": rung.size,
                "difference": rung.mean,
                "difference_low": rung.low,
                "difference_high": rung.high,
                "seeds": len(rung.by_seed),
                "verdict": rung.verdict,
                "parameters": rung.parameters,
                "tokens_per_parameter": rung.tokens,
                **shared,
            }
            for rung in ladder.rungs
        ]
        if ladder.predicted:
            rows.append(
                {
                    "task": ladder.task,
                    "variant": ladder.variant,
                    "size": ladder.next_size,
                    "difference": ladder.predicted.mean,
                    "difference_low": ladder.predicted.low,
                    "difference_high": ladder.predicted.high,
                    "seeds": 0,
                    "verdict": "predicted",
                    **shared,
                }
            )
    return pd.DataFrame(rows)
