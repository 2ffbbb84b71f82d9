"""Trained without a part or ablated after training: the family's results over seeds.

A model that was trained without a part could learn to do without it; one from which it is ablated
after training could not. These are two questions: whether the part is needed to learn the task,
and whether a model that has it has come to rely on it.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from core.checkpoints.family import SEEDS, WHOLE, label, members
from core.checkpoints.opened import CheckpointError, Opened
from core.experiments.trained.knockout import bench
from core.experiments.trained.tables import LEAST, attention_to_subject, join_neighbours
from core.measure.intervals import (
    ANYTHING,
    LARGEST,
    Paired,
    clip_interval,
    correct_together,
    excludes_zero,
    interval,
    paired,
)
from core.settings.menu import Menu
from core.settings.wording import count

TABLE = Path(__file__).parent.parent.parent.parent / "results" / "family.csv"
TEXTS = ("member", "how", "meter", "at")
NUMBERS = ("seed", "steps", "value", "n")
# values of the column `how`
TRAINED = "trained without it"
CUT = "cut afterwards"
SHOWN = {TRAINED: "changed before training", CUT: "changed after training"}  # on screen
FEW = 3  # seeds up to which it is said what they cannot show
COMPARED = ["value", "low", "high", "seeds", "difference", "p", "clear"]
ONE_SEED = "One seed per model, so significance cannot be tested."


# (rows of one model) -> number. within, differences: what it can be; worse: the sign of a change
# for the worse; does: in words, what such a change does; logarithmic: whether logarithms are
# compared; split: whether it is compared at every distance, for one part alone.
compared: Menu[Any] = Menu(
    "What is compared",
    axis="accuracy",
    within=(0.0, 1.0),
    differences=(-1.0, 1.0),
    worse=-1,
    logarithmic=False,
    split=False,
)
removed: Menu[str] = Menu("What the family was trained without")
compared.add(
    "accuracy",
    lambda rows: float(rows[(rows.meter == "accuracy") & (rows["at"] == "")].value.iloc[0]),
    label="Accuracy",
    help="share of held-out sentences in which the model prefers the correct form (was or were).",
    does="lower accuracy",
)
compared.add(
    "perplexity",
    lambda rows: float(rows[rows.meter == "perplexity"].value.iloc[0]),
    label="Perplexity",
    help="exponential of the mean cross-entropy per token, on held-out sentences.",
    axis="perplexity (log scale)",
    within=(1.0, math.inf),
    differences=ANYTHING,
    worse=1,
    does="raise perplexity",
    logarithmic=True,
)
compared.add(
    "subject",
    lambda rows: float(rows[rows.meter == "subject"].value.max()),  # NaN where there is no head
    label="Attention on the subject",
    help=(
        "attention on the subject from the token before the verb, for the head where it is largest."
    ),
    axis="attention weight on the subject",
    does="reduce attention to the subject",
)
compared.add(
    "distance",
    lambda rows: float((rows.value * rows.n).sum() / rows.n.sum()),
    label="By distance",
    help="accuracy on was and were, by the number of words between subject and verb.",
    does="lower accuracy",
    split=True,
)


for _member in members()[1:]:
    removed.add(
        _member,
        label=label(_member),
        help="trained without it, and removed from the trained baseline.",
    )


def read(path: Path = TABLE) -> pd.DataFrame:
    """Read family.csv: member, how, seed, steps, meter, at, value, n; CheckpointError if bad.

    `make family` writes it.
    """
    try:
        table = pd.read_csv(
            path, keep_default_na=False, na_values={"value": [""]}, dtype=dict.fromkeys(TEXTS, str)
        )
        numeric = all(pd.api.types.is_numeric_dtype(table[name]) for name in NUMBERS)
    except (OSError, ValueError, KeyError):
        table = pd.DataFrame()
        numeric = False
    if table.empty or not numeric or not set(TEXTS) <= set(table):
        raise CheckpointError(
            "The results of these models, results/family.csv, are missing or damaged; make family"
            " recreates them."
        )
    return table


class Measured(NamedTuple):
    """Accuracy of a model on held-out sentences, and its head that most attends to the subject.

    accuracy: share of `sentences` with the right form of the main verb. reader: its name and its
    mean attention to the subject; None without heads.
    """

    accuracy: float
    sentences: int
    reader: tuple[str, float] | None


def describe_member(member: str, how: str, seed: int) -> str:
    """Describe one model's accuracy and its head that reads the subject; "" if it has no rows."""
    measured = _find_measured(member, how, seed)
    if measured is None:
        return ""
    return _describe(measured, None if member == WHOLE else _find_baseline(seed))


def describe_opened(opened: Opened) -> str:
    """Describe a model as describe_member() does, measured now on 256 sentences; cached."""

    def measure() -> tuple[str, int]:
        model_bench = bench(opened, 256)
        right = model_bench.baseline.correct
        readers = [
            (f"L{r.layer + 1}H{r.head + 1}", r.before.mean)
            for r in attention_to_subject(model_bench)
        ]
        best = max(readers, key=lambda reader: reader[1], default=None)
        measured = Measured(right.double().mean().item(), len(right), best)
        return _describe(measured, _find_baseline(opened.config.seed)), 1000

    described: str = opened.results.get("described", measure)
    return described


@cache
def _find_measured(member: str, how: str, seed: int) -> Measured | None:
    """Return what the table says of a model; None if it has no rows or is missing."""
    try:
        table = _read_cached()
    except CheckpointError:
        return None
    rows = table[(table.member == member) & (table.how == how) & (table.seed == seed)]
    overall = rows[(rows.meter == "accuracy") & (rows["at"] == "")]
    if overall.empty:
        return None
    heads = rows[rows.meter == "subject"].dropna(subset="value").sort_values("value")
    best = (
        None
        if heads.empty
        else (f"L{heads['at'].iloc[-1].replace('.', 'H')}", heads.value.iloc[-1])
    )
    return Measured(overall.value.iloc[0], overall.n.iloc[0], best)


def _find_baseline(seed: int) -> Measured | None:
    """Return what the table says of the baseline with this seed, or the first one."""
    return _find_measured(WHOLE, TRAINED, seed if seed in SEEDS else SEEDS[0])


def _describe(model: Measured, base: Measured | None) -> str:
    """Describe a model in sentences, beside the baseline if there is one."""
    base_accuracy = f" (baseline: {100 * base.accuracy:.1f} %)" if base else ""
    accuracy = (
        f"Prefers the correct “was” or “were” in {100 * model.accuracy:.1f} % of"
        f" {model.sentences:,} held-out sentences{base_accuracy}."
    )
    if model.reader is None:
        return accuracy
    base_share = f" (baseline: {100 * base.reader[1]:.0f} %)" if base and base.reader else ""
    return (
        f"{accuracy} From the word before the verb, {model.reader[0]} puts"
        f" {100 * model.reader[1]:.0f} % of its attention on the subject, the most of all"
        f" heads{base_share}."
    )


@cache
def _read_cached() -> pd.DataFrame:
    """Read the table that ships, once per process."""
    return read()


def summary(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Tabulate a metric: member, label, how, value, low, high, seeds, difference, p, clear.

    value: mean, geometric on a logarithmic axis; low, high: 95 % CI of the difference from the
    baseline, placed around the baseline's value.
    """
    measure = compared[metric]
    onto: Callable[[float], float] = math.log if measure.logarithmic else float
    back: Callable[[float], float] = _capped_exp if measure.logarithmic else float
    values: dict[tuple[str, str], dict[int, float]] = {}
    for key, rows in table.groupby(["member", "how", "seed"], sort=False):
        member, how, seed = map(str, key)
        values.setdefault((member, how), {})[int(seed)] = onto(measure(rows))
    order = [
        (member, how) for member in members() for how in (TRAINED, CUT) if (member, how) in values
    ]
    differences = _compare(
        {key: values[key] for key in order}, lambda key: (WHOLE, TRAINED), measure, back
    )
    lines = [(member, label(member), how, *differences[member, how]) for member, how in order]
    return pd.DataFrame(lines, columns=["member", "label", "how", *COMPARED])


def _capped_exp(x: float) -> float:
    """Return exp(x), capped so that it stays finite."""
    return math.exp(min(x, LARGEST))


def _compare(
    values: dict[tuple[str, str], dict[int, float]],
    baseline_of: Callable[[tuple[str, str]], tuple[str, str]],
    measure: Any,
    back: Callable[[float], float] = float,
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return value, low, high, seeds, difference, p, clear by key; Holm-corrected together.

    Args:
        values: Key to seed to value.
        baseline_of: Returns the key of a key's baseline.
        measure: Entry of the menu compared.
        back: Turns a compared value into the value shown, such as exp for logarithms.
    """

    def compare(key: tuple[str, str], level: float) -> Paired:
        return paired(values[key], values[baseline_of(key)], measure.differences, level)

    gaps = correct_together(compare, [key for key in values if key != baseline_of(key)])
    differences = {}
    for key, by_seed in values.items():
        mean = interval(by_seed.values())
        reference = interval(values[baseline_of(key)].values()).mean
        gap = gaps.get(key, Paired(0.0, math.nan, math.nan, mean.n, math.nan, math.nan))
        low, high = clip_interval(
            back(reference + gap.low), back(reference + gap.high), measure.within
        )
        clear = excludes_zero(gap.low, gap.high)
        differences[key] = (back(mean.mean), low, high, mean.n, gap.mean, gap.p, clear)
    return differences


def merge_distances(table: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Join distances until each group has LEAST sentences: ("6–8", ["6", "7–8"]) and so on."""
    least = table[(table.meter == "accuracy") & (table["at"] != "")].groupby("at").n.min()
    fewest = {str(distance): int(n) for distance, n in least.items()}
    named = []
    for group in join_neighbours(
        sorted(fewest.items(), key=lambda item: _parse_range(item[0])[0]), LEAST
    ):
        low = _parse_range(group[0])[0]
        high = _parse_range(group[-1])[1]
        named.append((f"{low}" if low == high else f"{low}–{high}", group))
    return named


def _parse_range(distances: str) -> tuple[int, int]:
    """Parse the ends of a range of distances: "6–8" becomes (6, 8), "6" (6, 6)."""
    low, _, high = distances.partition("–")
    return int(low), int(high or low)


def compare_by_distance(table: pd.DataFrame, member: str) -> pd.DataFrame:
    """Tabulate accuracy: distance, line, value, low, high, n, seeds, difference, p, clear.

    Distance: words between subject and verb. Up to three lines: the baseline, the member trained
    without its component, and the baseline with that removed after training.

    Returns distance, line, value, low, high, n (sentences), seeds, difference (line − baseline, a
    share), p (Holm-corrected together), clear.
    """
    measure = compared["distance"]
    values = {}
    sentences = {}
    lines = {WHOLE: (WHOLE, TRAINED), TRAINED: (member, TRAINED), CUT: (member, CUT)}
    rows = table[(table.meter == "accuracy") & table.member.isin((WHOLE, member))]
    for name, distances in merge_distances(table):
        for line, (of_member, how) in lines.items():
            selected = rows[
                (rows.member == of_member) & (rows.how == how) & rows["at"].isin(distances)
            ]
            if len(selected):
                values[name, line] = {
                    int(str(seed)): measure(some) for seed, some in selected.groupby("seed")
                }
                sentences[name, line] = int(selected.groupby("seed").n.sum().min())

    differences = _compare(values, lambda key: (key[0], WHOLE), measure)
    table = pd.DataFrame(
        [(*key, *differences[key]) for key in values], columns=["distance", "line", *COMPARED]
    )
    table.insert(5, "n", [sentences[key] for key in values])
    return table


def describe_by_distance(rows: pd.DataFrame) -> str:
    """Describe, in sentences, at how many distances of compare_by_distance() accuracy differs."""
    n_distances = rows.distance.nunique()
    seeds = int(rows.seeds.min())
    if seeds < 2:
        return ONE_SEED
    sentences = []
    of_all = f"of {count(n_distances, 'distance')}"
    for line in (CUT, TRAINED):
        line_rows = rows[rows.line == line]
        lower, higher = (
            int((line_rows.clear & (line_rows.difference * sign > 0)).sum()) for sign in (-1, 1)
        )
        significant = [
            f"significantly {word} at {n} {of_all}"
            for word, n in {"lower": lower, "higher": higher}.items()
            if n
        ]
        if significant:
            sentences.append(f"{' and '.join(significant)} when the model is {SHOWN[line]}")
        elif len(line_rows):
            sentences.append(f"at no distance significantly different when it is {SHOWN[line]}")
    text = f"Compared with the baseline, accuracy is {'; it is '.join(sentences)}."
    if CUT not in set(rows.line):
        text += " It cannot be removed after training: the baseline has no weights for that."
    if seeds <= FEW and not rows[rows.line != WHOLE].clear.all():
        text += format_seed_warning(seeds)
    return text


def describe_summary(summary: pd.DataFrame, metric: str) -> str:
    """Describe a table of summary(): how many changes, after and before training, do harm."""
    measure = compared[metric]
    rows = summary[(summary.member != WHOLE) & summary.value.notna()]
    seeds = int(rows.seeds.min())
    if seeds < 2:
        return ONE_SEED
    harm = rows[rows.clear & (rows.difference * measure.worse > 0)]
    after, before = (int((harm.how == how).sum()) for how in (CUT, TRAINED))
    verb, _, effect_name = measure.does.partition(" ")
    verb = f"{verb}s" if after == 1 else verb
    text = (
        f"{after} of {count((rows.how == CUT).sum(), 'change')} made after training {verb}"
        f" {effect_name} significantly, against {before} of {(rows.how == TRAINED).sum()} made"
        " before training."
    )
    return text + format_seed_warning(seeds) if seeds <= FEW else text


def format_seed_warning(seeds: int) -> str:
    """Return " With 3 seeds only large effects are detectable.", whatever the number is."""
    return f" With {count(seeds, 'seed')} only large effects are detectable."
