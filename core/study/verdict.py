"""Verdicts of comparisons as one JSON document, for scripts and other programs.

Every field is described in verdict.schema.json beside this file (JSON Schema, draft 2020-12).
Accuracies and effects are shares from 0 to 1, and null stands where there is no number.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from core.experiments.training.plan import BASELINE, Plan
from core.experiments.training.results import Runs, diverged, summary
from core.measure.intervals import LEVEL, wilson
from core.measure.power import LEAST_SEEDS
from core.measure.verdicts import DIFFERENCE, EQUIVALENT, UNDECIDED
from core.settings.wording import count
from core.study.conditions import collect_known, format_mixed
from core.study.curves import MADE, Curves, Made, made_by, read_curves
from core.study.database.schema import ENDED
from core.study.database.store import Store
from core.study.file import describe_guards, looks_of, read
from core.study.plan import Study, StudyError
from core.study.shipped import ALONE, curves_of, shipped, study_of, table_of
from core.study.summary import read_summary
from core.study.tables import made_of, summary_with_guards
from core.train import Row

SCHEMA = "verdict/1"  # raised with every change of the fields
MEANS = "means"  # what is compared
LEARNT = "learnt"

CORRECTION = (
    "p and intervals are corrected for all variants of a task (Holm). The chance of any false"
    " difference is at most 5 % per task, not per study. Each interval has the level of its Holm"
    " step, so it is wider than a 95 % CI by itself."
)
LEAST = f"A verdict needs {LEAST_SEEDS} seeds."

Document = dict[str, Any]
Cell = Mapping[str, Any]  # line of a summary: column -> value


def study_document(store: Store, study: int) -> Document:
    """Return the verdicts of a stored study as a Document; StudyError if it is gone."""
    entry = next((entry for entry in store.studies() if entry.id == study), None)
    if entry is None:
        raise StudyError(["The study has been deleted in the meantime."])
    table = summary_with_guards(store, study)
    provenance = made_of(store.runs(study, *ENDED, spec=False))
    return _build_study_document(table, entry.name, entry.question, entry.source, provenance)


def shipped_document(name: str) -> Document:
    """Return the verdicts of a built-in study (key) from its summary; StudyError or OSError."""
    study = read(study_of(name))
    table = read_summary(table_of(name))
    provenance = find_provenance(name, study)
    return _build_study_document(table, study.name, study.question, study.source, provenance)


def training_document(runs: Runs, plan: Plan, provenances: Sequence[Made]) -> Document:
    """Return the verdicts of the page Training's comparison; runs not ended count as missing.

    No numbers until all runs have ended. One provenance is of some of the runs.

    Args:
        runs: Rows of the compared runs, by (model, seed).
        plan: Plan of the comparison.
        provenances: Versions and devices that trained the runs.
    """
    has_ended = {key: _has_ended(rows, plan.training.steps) for key, rows in runs.items()}
    ended = {key: rows if has_ended[key] else [] for key, rows in runs.items()}
    missing = {
        arm.name: sum(not has_ended[arm.name, seed] for seed in plan.seeds) for arm in plan.arms
    }
    table = summary(ended, plan)
    table = table.assign(
        task=plan.training.task,
        of=plan.training.task,
        missing=table.variant.map(missing),
        mixed=format_mixed(collect_known(provenances)),
    )
    together = {
        name: list({value for provenance in provenances for value in provenance[name]})
        for name in MADE
    }
    return _build_document(table, plan.guards, together)


def write_document(document: Document) -> str:
    """Return a document as JSON text, indented, with a newline at its end."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def has_missing_runs(document: Document) -> bool:
    """Return whether some comparison misses runs: not trained or failed, but not diverged."""
    comparisons = document["comparisons"]
    return any(any(comparison["missing"].values()) for comparison in comparisons)


def _has_ended(rows: list[Row], steps: int) -> bool:
    """Return whether a run reached its last step, or diverged."""
    return bool(rows) and (rows[-1].step == steps or bool(diverged(rows)))


def find_provenance(name: str, study: Study) -> Made:
    """Return what trained a built-in study (its key): name in MADE -> values, () without curves.

    Its runs may stand in the curves of other studies. Files that are missing or damaged are left
    out: the summary has all numbers without them.
    """
    others = [other for other in (*shipped, *ALONE) if other != name]
    left = {run.hash for run in study.runs}
    used: list[Curves] = []
    for key in (name, *others):
        with suppress(OSError, StudyError):
            curves = read_curves(curves_of(key))
            if left & curves.hashes():
                used.append(curves)
                left -= curves.hashes()
        if not left:
            break
    return made_by(used)


def _build_study_document(
    table: pd.DataFrame, name: str, question: str, toml_text: str, provenance: Made
) -> Document:
    """Return the verdicts of a study, given its summary, TOML text and what trained it."""
    guards = describe_guards(toml_text)
    return _build_document(table, guards, provenance, name, question, looks_of(toml_text))


def _build_document(
    table: pd.DataFrame,
    guards: Iterable[str],
    provenance: Made,
    study: str | None = None,
    question: str = "",
    looks: Sequence[int] = (),
) -> Document:
    """Return a document: study, question, rule, guards, versions, a comparison per non-baseline.

    The keys are those of core/study/verdict.schema.json.

    Args:
        table: The summary (core.study.tables.summary_with_guards).
        guards: Controls against unfair comparison, in words.
        provenance: Versions and devices that trained the runs.
        study: Name of the study; None for a comparison of the page Training.
        question: Its question.
        looks: Numbers of seeds after which models are compared; () for one comparison.
    """
    lines: list[Any] = table.to_dict("records")
    baselines = {line["task"]: line for line in lines if line["variant"] == BASELINE}
    return {
        "schema": SCHEMA,
        "study": study,
        "question": question,
        "rule": {
            "words": describe_rule(looks),
            "level": LEVEL,
            "correction": "Holm",
            "looks": list(looks),
            "least_seeds": LEAST_SEEDS,
        },
        "guards": list(guards),
        "versions": {
            "torch": sorted(provenance["torch"]),
            "numpy": sorted(provenance["numpy"]),
            "python": sorted(provenance["python"]),
            "code": sorted(provenance["code"]),
            "devices": sorted(provenance["device"]),
        },
        "comparisons": [
            _build_comparison(line, baselines[line["task"]])
            for line in lines
            if line["variant"] != BASELINE
        ],
    }


def describe_rule(looks: Sequence[int] = ()) -> str:
    """Describe how verdicts are found, in one text of sentences; () is for one look."""
    sentences = [
        "Accuracies are paired by seed and compared by a t-test.",
        "Some runs of a task may learn it and others not, far apart.",
        "Then the numbers of runs that learnt it are compared, too (Boschloo's exact test).",
        CORRECTION,
        *describe_verdicts().values(),
        LEAST,
    ]
    if looks:
        sentences.append(describe_looks(looks))
    return " ".join(sentences)


def describe_verdicts() -> dict[str, str]:
    """Return DIFFERENCE, EQUIVALENT and UNDECIDED, each with a sentence on what it means."""
    alpha = round(1 - LEVEL, 6)
    return {
        DIFFERENCE: f"A corrected p below {alpha:g} is a difference.",
        EQUIVALENT: (
            "Without one, an interval within the margin means equivalent, if other runs scatter as"
            " these did. Few runs do not exclude rare failures."
        ),
        UNDECIDED: "Otherwise the comparison is undecided.",
    }


def describe_looks(looks: Sequence[int]) -> str:
    """Describe in sentences when comparisons get more seeds, and how p is corrected for that."""
    numbers = ", ".join(map(str, looks))
    return (
        f"Undecided comparisons get more seeds, in {count(len(looks), 'look')} ({numbers})."
        " p is corrected for them, too (Bonferroni)."
    )


def _build_comparison(line: Cell, base: Cell) -> Document:
    """Return a comparison as a dict: effect (variant − baseline, share), p, verdict, ….

    The keys are those of core/study/verdict.schema.json; None for NaN.

    Args:
        line: Line of the variant in a summary.
        base: Line of the baseline.
    """
    compared_by = None
    if not math.isnan(line["p"]):
        compared_by = LEARNT if math.isnan(line["difference_low"]) else MEANS
    sides = {"model": line, "baseline": base}
    return {
        "task": line["task"],
        "task_key": line["of"],
        "variant": line["variant"],
        "n": int(line["pairs"]),
        "accuracy": {side: _describe_accuracy(cell) for side, cell in sides.items()},
        "effect": _number(line["difference"]),
        "low": _number(line["difference_low"]),
        "high": _number(line["difference_high"]),
        "compared_by": compared_by,
        "p": _number(line["p_uncorrected"]),
        "p_corrected": _number(line["p"]),
        "p_exact": _number(line["p_exact"]),
        "p_exact_least": _number(line["p_exact_least"]),
        "learnt": {side: _describe_learnt(cell) for side, cell in sides.items()},
        "verdict": line["verdict"],
        "margin": _number(line["margin"]),
        "noise": {
            "spread": _number(line["spread"]),
            "correlation": _number(line["correlation"]),
            "smallest_effect": _number(line["smallest_effect"]),
            "seeds_for_1_point": _whole_number(line["seeds_for_1"]),
            "seeds_for_5_points": _whole_number(line["seeds_for_5"]),
        },
        "noise_floor": _number(line.get("noise_floor", math.nan)),
        "mixed": line["mixed"].split("; ") if line["mixed"] else [],
        "diverged": {side: int(cell["diverged"]) for side, cell in sides.items()},
        "missing": {side: int(cell["missing"]) for side, cell in sides.items()},
    }


def _describe_accuracy(cell: Cell) -> Document:
    """Return a model's mean accuracy, low, high (shares, or None) and n, its number of runs."""
    return {
        "mean": _number(cell["accuracy"]),
        "low": _number(cell["low"]),
        "high": _number(cell["high"]),
        "n": int(cell["seeds"]),
    }


def _describe_learnt(cell: Cell) -> Document:
    """Return how many runs learnt the task: count and n; share, low, high (None if n is 0)."""
    learnt = int(cell["learnt"])
    n = int(cell["seeds"])
    share, low, high = wilson(learnt, n)
    return {
        "count": learnt,
        "n": n,
        "share": _number(share),
        "low": _number(low),
        "high": _number(high),
    }


def _number(value: float) -> float | None:
    """Return a number for JSON, which has neither NaN nor infinity: None."""
    return float(value) if math.isfinite(value) else None


def _whole_number(value: float) -> int | None:
    """Return a whole number for JSON; None for NaN and infinity."""
    return int(value) if math.isfinite(value) else None
