"""CSV tables and file names.

Cells that begin with = + - or @ are written with ' before them, so that no spreadsheet runs them
(OWASP, "CSV Injection"), and read back without it. Files begin with a byte-order mark, which Excel
needs for "−".
"""

import csv
import os
import re
from collections.abc import Collection
from typing import IO, Literal, TypeVar

import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

Cell = TypeVar("Cell")
Path = str | os.PathLike[str]
MARK = "\ufeff"  # the byte-order mark
LONGEST = 60  # letters in the name of a file

# A text that begins with ' and then so gets another one, so that every text is read back as it was.
# Likewise behind a semicolon, which parts cells where the language of the spreadsheet has a comma
# in its numbers; there also behind quotation marks, which are written twice, and so are an empty
# beginning.
SIGN = r"[=+\-@\t\r\n＝＋－＠]"
FORMULA = re.compile(rf"(?:(?<=;)(?=[\"'\s]*{SIGN})|^(?='*{SIGN}))")
WRITTEN = re.compile(rf"(?:(?<=;)'(?=[\"'\s]*{SIGN})|^'(?='*{SIGN}))")


def escape_formula(cell: Cell) -> Cell | str:
    """Return a cell for CSV, a ' before = + - @ … at the start of its text or after ";"."""
    return FORMULA.sub("'", cell) if isinstance(cell, str) else cell


def unescape_formula(cell: Cell) -> Cell | str:
    """Return a cell of a CSV file without the ' that escape_formula() put before it."""
    return WRITTEN.sub("", cell) if isinstance(cell, str) else cell


def slug(name: str, number: int | None = None) -> str:
    """Return a file's stem: a–z, 0–9 and _, shortened, then `number`; "table" if none is left.

    Args:
        name: The name of a table or a study.
        number: A number where two of one name must not be one file.
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if len(plain) > LONGEST:
        plain = plain[: LONGEST + 1].rpartition("_")[0] or plain[:LONGEST]
    return (plain or "table") + (f"_{number}" if number is not None else "")


def write_csv(table: pd.DataFrame, to: Path | None = None) -> str:
    """Write a table as CSV, formulas escaped, to a path and return ""; else return the text.

    Without index.
    """
    renamed = table.rename(columns=escape_formula)
    quoting: Literal[0, 2] = csv.QUOTE_MINIMAL
    for index, kind in enumerate(table.dtypes):
        if not (is_numeric_dtype(kind) or is_bool_dtype(kind) or is_datetime64_any_dtype(kind)):
            column = table.iloc[:, index]
            few = isinstance(kind, pd.CategoricalDtype)  # every text is held once
            cells = (
                column.cat.rename_categories(escape_formula) if few else column.map(escape_formula)
            )
            renamed.isetitem(index, cells)  # type: ignore[arg-type]  # a column may be given, too
            if any(
                "\r" in cell
                for cell in (cells.cat.categories if few else cells)
                if isinstance(cell, str)
            ):
                quoting = (
                    csv.QUOTE_NONNUMERIC
                )  # else it would stand there bare, and begin a new line
    if to is None:
        return MARK + renamed.to_csv(index=False, quoting=quoting)
    renamed.to_csv(to, index=False, quoting=quoting, encoding="utf-8-sig")
    return ""


def read_csv(path: Path | IO[str], texts: Collection[str] = ()) -> pd.DataFrame:
    """Read a CSV table; columns `texts` stay text, without ' marks. OSError, ValueError if bad."""
    table = pd.read_csv(
        path, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(texts, str)
    )
    table = table.rename(columns=unescape_formula)
    for name in texts:
        if name in table:
            # An empty column would turn into numbers.
            table[name] = table[name].map(unescape_formula).astype(table[name].dtype)
    return table
