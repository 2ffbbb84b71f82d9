"""Matrices as a tidy table: one row per cell, made when somebody asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch


@dataclass(frozen=True)
class MatrixTable:
    """matrices: (panels, rows, columns), NaN where there is nothing: left out. rows, columns: words; titles: of the panels.

    Called it makes the table: panel, row_number, row, column_number, column (numbers from 1), value.
    """

    matrices: Any
    rows: Sequence[str]
    columns: Sequence[str] | None = None
    titles: Sequence[str] | None = None

    def __call__(self) -> pd.DataFrame:
        cells = self._cells()
        panel, row, column = np.nonzero(~np.isnan(cells))
        titles, columns = self.titles or [""] * len(cells), self.columns or [str(n + 1) for n in range(cells.shape[2])]
        return pd.DataFrame(
            {
                "panel": _words(titles, panel),
                "row_number": row + 1,
                "row": _words(self.rows, row),
                "column_number": column + 1,
                "column": _words(columns, column),
                "value": cells[panel, row, column].astype(np.float64),
            }
        )

    @property
    def many(self) -> int:
        """How many rows it has."""
        return int((~np.isnan(self._cells())).sum())

    def _cells(self) -> np.ndarray:
        return torch.as_tensor(self.matrices).numpy()


def _words(words: Sequence[str], at: np.ndarray) -> pd.Categorical:
    """Every word is held once, however many cells it stands beside."""
    codes, known = pd.factorize(np.array(words, dtype=object))
    return pd.Categorical.from_codes(codes[at], known)
