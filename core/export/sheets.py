"""Tables as CSV. A spreadsheet takes a cell that begins with = + - or @ for a formula, and runs it: text that does is written
with ' before it (OWASP, "CSV Injection"), and read back without. Numbers stay numbers."""

import csv
import re

import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

# A text that begins with ' and then so gets another one, so that every text is read back as it was.
FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def harmless(cell):
    """A cell as it is written: text that a spreadsheet would run gets a ' before it."""
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


def original(cell):
    """The cell that harmless() was given."""
    return cell[1:] if isinstance(cell, str) and cell.startswith("'") and FORMULA.match(cell) else cell


def write_csv(table: pd.DataFrame, to=None) -> str | None:
    """A table without its index, to a path or a file, or -> text."""
    made, quoting = table.rename(columns=harmless), csv.QUOTE_MINIMAL
    for at, kind in enumerate(table.dtypes):
        if not (is_numeric_dtype(kind) or is_bool_dtype(kind) or is_datetime64_any_dtype(kind)):
            cells = table.iloc[:, at].map(harmless)
            made.isetitem(at, cells)
            if any("\r" in cell for cell in cells if isinstance(cell, str)):
                quoting = csv.QUOTE_NONNUMERIC  # else it would stand there bare, and begin a new line
    return made.to_csv(to, index=False, quoting=quoting)


def read_csv(path, texts=()) -> pd.DataFrame:
    """What write_csv has written. texts: columns that are text whatever stands in them ("NA", "1"). Raises OSError, and ValueError
    for what is no table."""
    table = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(texts, str))
    table = table.rename(columns=original)
    for name in texts:
        if name in table:
            table[name] = table[name].map(original)
    return table
