"""What was measured for every claim, seed by seed: results/claims.csv, which ships."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from core.export.sheets import read_csv, write_csv
from core.study.plan import StudyError
from core.study.shipped import table_of
from core.teaching.claims.claim import Values, claim

FILE = table_of("claims")
COLUMNS = ("claim", "seed", "value")


def write_values(path: Path, values: Mapping[str, Values]) -> None:
    """values: claim -> seed -> number. Raises OSError."""
    rows = [(name, seed, value) for name, each in values.items() for seed, value in each.items()]
    write_csv(pd.DataFrame(rows, columns=list(COLUMNS)), path)


def read_values(path: Path = FILE, whole: bool = True) -> dict[str, dict[int, float]]:
    """Claim -> seed -> number, of every claim that there is; whole: whether none may lack. Raises StudyError for a file that does
    not hold them, OSError."""
    try:
        table = read_csv(path, ("claim",))
        kept: dict[str, dict[int, float]] = {name: {} for name in claim}
        for name, seed, value in table[list(COLUMNS)].itertuples(index=False):
            kept[name][int(seed)] = float(value)
    except (ValueError, KeyError, TypeError, MemoryError):
        raise StudyError([f"{path.name} is no table of claims: make claims makes it again."]) from None
    lacking = [name for name, values in kept.items() if not values]
    if whole and lacking:
        raise StudyError([f"{path.name} has nothing on {lacking[0]}: make claims makes it again."])
    return kept
