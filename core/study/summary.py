"""Exported summary of a study: reading, checks, and other arrangements."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from core.experiments.training.plan import BASELINE
from core.export.sheets import read_csv
from core.measure.verdicts import Noise
from core.settings.wording import distinct, shorten
from core.study.plan import NULL_ARMS, StudyError
from core.study.training_link import read_query

TEXTS = ("task", "of", "variant", "link")
NUMBERS = (
    "accuracy",
    "low",
    "high",
    "seeds",
    "diverged",
    "missing",
    "difference",
    "difference_low",
    "difference_high",
    "p",
    "chance",
    "best",
    "parameters",
    "flops",
    "steps",
    "seconds",
)

# Columns that earlier files do not have: on runs that learnt the task, on verdict and noise.
LEARNT = ("learnt", "two_groups", "learnt_accuracy", "learnt_low", "learnt_high")
VERDICT = ("verdict", "margin", "p_uncorrected", "pairs", *Noise._fields, "noise_floor")

# Column on mixed conditions (core.study.conditions); read_summary adds it to files without it.
MIXED = "mixed"

# the columns of a study whose rates were searched
AS_SET = "shared learning rate"
SEARCHED = "tuned per model"


Line = Any  # with its columns as attributes: as many types as columns


def lines(table: pd.DataFrame) -> Iterator[Line]:
    """Iterate over the lines of a summary, one for each task and variant."""
    return iter(table.itertuples())


def read_summary(path: str | Path) -> pd.DataFrame:
    """Read a study's summary from a CSV file; StudyError if incomplete, OSError if unreadable."""
    if not Path(path).read_bytes().endswith(b"\n"):
        raise StudyError([f"{path} is truncated or not a CSV file."])
    try:
        table = read_csv(path, (*TEXTS, MIXED))
    except (ValueError, MemoryError) as error:  # it is no table at all
        raise StudyError([f"{path} is not a CSV file: {shorten(str(error), 120)}."]) from None
    lacking = [name for name in (*TEXTS, *NUMBERS) if name not in table.columns]
    if lacking:
        raise StudyError([f"{path} is not a study summary: it has no column {', '.join(lacking)}."])
    empty = [name for name in TEXTS if table[name].isna().any()]
    wrong = [name for name in NUMBERS if not is_numeric_dtype(table[name]) and len(table)]
    if empty or wrong:
        raise StudyError([f"{path} is incomplete: check column {(empty + wrong)[0]}."])
    if "verdict" in table:
        table["verdict"] = table.verdict.fillna("")  # of a baseline
    # An empty text is read as NaN.
    return table.assign(mixed=table[MIXED].fillna("") if MIXED in table else "")


def is_sparse(table: pd.DataFrame) -> bool:
    """Return whether a summary's lines fill less than a third of its tasks × variants.

    The baseline is a variant; a line counts with or without results.
    """
    return 3 * len(table) < table.task.nunique() * table.variant.nunique()


def select_variants(table: pd.DataFrame) -> pd.DataFrame:
    """Return a summary's lines of variants: neither baselines nor null arms."""
    return table[~table.variant.isin([BASELINE, *NULL_ARMS])]


def in_one_column(table: pd.DataFrame, title: str) -> pd.DataFrame:
    """Return a summary's variants, no baselines, as one task `title`, named "variant: task".

    A further column, cell, has the original (task, variant). Baselines and null arms are left out.
    """
    variants = select_variants(table)
    names = distinct(f"{line.variant}: {line.task}" for line in lines(variants))
    cells = pd.Series(
        list(zip(variants.task, variants.variant)), index=variants.index, dtype=object
    )
    return variants.assign(task=title, variant=names, cell=cells)


def beside_one_rate(searched: pd.DataFrame, others: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return searched cells as task SEARCHED, their partners in `others` (one rate) as AS_SET.

    A table like a summary, a row for each model and task, in the order of the other studies.
    """
    plain = [
        line
        for table in others
        for line in table.to_dict("records")
        if "search" not in read_query(line["link"])
    ]
    line_of = {_link_parameters(line["link"]): line for line in plain}
    variants = dict.fromkeys(line["variant"] for line in plain)
    place = {name: index for index, name in enumerate(variants)}
    # Variants that no other study has come last: they have no place.
    ordered = searched.sort_values("variant", key=lambda names: names.map(place))
    right = in_one_column(ordered, SEARCHED)
    left = [
        line_of[_link_parameters(line.link)] | {"variant": line.variant}
        for line in lines(right)
        if _link_parameters(line.link) in line_of
    ]
    return pd.concat([pd.DataFrame(left).assign(task=AS_SET, rates=""), right], ignore_index=True)


def _link_parameters(link: str) -> frozenset[tuple[str, str]]:
    """Return a link's (name, value) pairs without the search for learning rates and the seeds."""
    pairs = read_query(link).items()
    return frozenset((name, value) for name, value in pairs if name not in ("search", "seeds"))
