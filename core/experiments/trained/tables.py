"""Tables of ablation effects over texts, and each head's attention to the subject."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd
import torch

from core.experiments.trained.knockout import Bench, Effect, effect
from core.experiments.trained.questions import Questions
from core.measure.intervals import (
    LEVEL,
    Interval,
    Paired,
    accuracy_change,
    correct_together,
    interval,
    paired,
    wilson,
)
from core.model.knockout import Cut

Key = TypeVar("Key")
LEAST = 20  # questions that a figure by distance stands on at least


def tabulate_effects(measured: Effect, baseline: Effect) -> pd.DataFrame:
    """Tabulate effect, whole, without, change (measured − baseline), low, high, p, texts.

    whole, without: means over texts; low, high: 95 % CI, paired by text.
    """
    rows = []
    for name in effect:
        change = compare_texts(measured, baseline, name)
        ends = (result.values[name].mean().item() for result in (baseline, measured))
        rows.append((name, *ends, *change[:3], change.p, change.n))
    return pd.DataFrame(
        rows, columns=["effect", "whole", "without", "change", "low", "high", "p", "texts"]
    )


def compare_texts(measured: Effect, baseline: Effect, name: str, level: float = LEVEL) -> Paired:
    """Compare effect `name` by text, measured − baseline: exact for accuracy, else by t-test."""
    # Weights may be too large for any number.
    finite = measured.values[name].isfinite() & baseline.values[name].isfinite()
    a, other = (
        dict(enumerate(side.values[name].where(finite, math.nan).tolist()))
        for side in (measured, baseline)
    )
    if effect[name].flips:
        return accuracy_change([a[text] - other[text] for text in a], level)
    return paired(a, other, effect[name].bounds, level)


def rank_effects(effects: list[Effect], baseline: Effect) -> pd.DataFrame:
    """Tabulate single ablations, a row per effect, greatest loss of logit difference first.

    Returns cut (as in a link), name, layer, part, head (from 1; 0 for others), effect, change, low,
    high, p (Holm over all parts).
    """
    rows = []
    by = {measured.cuts[0]: measured for measured in effects}
    changes = {}
    for name in effect:
        changes[name] = _compare_all(by, baseline, name)
    for cut in by:
        head = cut.head + 1 if cut.part == "head" else 0
        for name in effect:
            change = changes[name][cut]
            rows.append(
                (cut.write(), cut.name, cut.layer + 1, cut.part, head, name, *change[:3], change.p)
            )
    columns = ["cut", "name", "layer", "part", "head", "effect", "change", "low", "high", "p"]
    table = pd.DataFrame(rows, columns=columns)
    order = table[table.effect == "difference"].sort_values("change").cut.tolist()
    return table.sort_values(
        "cut", key=lambda column: column.map(order.index), kind="stable", ignore_index=True
    )


def _compare_all(effects: dict[Cut, Effect], baseline: Effect, name: str) -> dict[Cut, Paired]:
    """Compare one effect of every ablation with the baseline, Holm-corrected together."""

    def compare(cut: Cut, level: float) -> Paired:
        return compare_texts(effects[cut], baseline, name, level)

    return correct_together(compare, effects)


def accuracy_by_distance(measured: Effect, questions: Questions, least: int = 1) -> pd.DataFrame:
    """Tabulate accuracy by distance: value (median), accuracy, low, high (shares), questions.

    low, high: 95 %, Wilson 1927.

    Args:
        measured: Effect of an ablation, or the baseline.
        questions: The questions that were asked.
        least: Neighbouring distances are joined until they have so many questions.
    """
    rows = []
    for values in join_neighbours(sorted(Counter(questions.value.tolist()).items()), least):
        inside = torch.isin(questions.value, torch.tensor(values))
        right = measured.correct[inside]
        value = questions.value[inside].median().item()
        rows.append((value, *wilson(int(right.sum()), len(right)), len(right)))
    return pd.DataFrame(rows, columns=["value", "accuracy", "low", "high", "questions"])


def join_neighbours(counts: Iterable[tuple[Key, int]], least: int) -> list[list[Key]]:
    """Join keys of (key, n), in order, until a group's n is `least`; the rest joins the last."""
    groups: list[list[Key]] = []
    room = least
    for key, n in counts:
        if room >= least:
            groups.append([])
            room = 0
        groups[-1].append(key)
        room += n
    if room < least and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return groups


@dataclass(frozen=True)
class Reading:
    """Attention of a head to the subject, over questions with a distractor noun; from 0."""

    layer: int
    head: int
    verb: Interval  # of the verb's attention
    before: Interval  # of that of the word before it, where the verb is chosen
    even: float  # what an even spread would give, of the verb's


def attention_to_subject(bench: Bench) -> list[Reading]:
    """Return heads' attention to the subject across a distractor noun, strongest first, or [].

    Attention from the verb and from the word before it, averaged over the questions that have a
    distractor noun before the verb.
    """
    q = bench.questions
    if q.subject is None or q.verb is None or q.across is None or not bool(q.across.any()):
        return []
    crossing = q.across.nonzero()[:, 0]
    read = q.verb[crossing] + 1  # how many tokens: a question ends with the verb
    rows = []
    for layer, pattern in enumerate(bench.patterns):
        window = bench.model.config.window_in(layer) or int(read.max())
        even = (
            ((q.verb[crossing] - q.subject[crossing] < window) / read.clamp(max=window).double())
            .mean()
            .item()
        )
        for head in range(pattern.shape[2]):
            before, verb = (
                interval(weights[crossing, head, q.subject[crossing]].double().tolist(), (0.0, 1.0))
                for weights in pattern
            )
            rows.append(Reading(layer, head, verb, before, even))
    return sorted(rows, key=lambda row: -row.verb.mean - row.before.mean)
