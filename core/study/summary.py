"""The summary of a study, as it was exported: read again, and checked to be whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from core.export.sheets import read_csv
from core.settings.wording import shorten
from core.study.plan import StudyError

TEXTS = ("task", "of", "variant", "link")
NUMBERS = (
    "accuracy", "low", "high", "seeds", "diverged", "missing", "difference", "difference_low", "difference_high", "p",
    "chance", "best", "parameters", "flops", "steps", "seconds",
)  # fmt: skip


Line = Any  # with its columns as attributes: as many types as columns


def lines(table: pd.DataFrame) -> Iterator[Line]:
    """The lines of a summary, one for each task and variant."""
    return iter(table.itertuples())


def read_summary(path: str | Path) -> pd.DataFrame:
    """Raises StudyError for a file that is no summary, or not a whole one; OSError for one that is not there."""
    if not Path(path).read_bytes().endswith(b"\n"):
        raise StudyError([f"{path} is cut short, or no CSV table: its last line does not end."])
    try:
        table = read_csv(path, TEXTS)
    except (ValueError, MemoryError) as error:  # it is no table at all
        raise StudyError([f"{path} is no CSV table: {shorten(str(error), 120)}."]) from None
    lacking = [name for name in (*TEXTS, *NUMBERS) if name not in table.columns]
    if lacking:
        raise StudyError([f"{path} is no summary of a study: it has no column {', '.join(lacking)}."])
    empty = [name for name in TEXTS if table[name].isna().any()]
    wrong = [name for name in NUMBERS if not is_numeric_dtype(table[name]) and len(table)]
    if empty or wrong:
        raise StudyError([f"{path} is no whole summary of a study: look at its column {(empty + wrong)[0]}."])
    return table
