"""Export: tables as CSV, pictures as SVG or PNG, scripts that print the numbers.

Code that draws a chart notes its table here; nothing is written until somebody asks for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
import torch

from core.export.script import Script
from core.export.sheets import slug, write_csv
from ui.kit.guard import literal
from ui.kit.server.downloads import download_link
from ui.kit.server.scripts import store_script

TABLES = "_tables"  # the key in the session: name -> what makes the table
ROWS = (
    2**20 - 1
)  # of a spreadsheet, beside its head: more would take this server long, and nobody could open it
LABELS = {
    "learning": "Learning curves",
    "played curves": "Curves shown in Play",
}  # of tables; the others are called as their names are
TOO_MANY = (
    "{name}: too many rows for a spreadsheet ({rows:,}; limit {most:,}). Use fewer heads or tokens"
    " to export it."
)
SAID = "_said"  # likewise: what stands above the picture that comes next
CSS = """
.head { font-family: var(--st-font); font-weight: 600; color: var(--st-text-color); }
.list div { display: flex; gap: 6px; align-items: center; margin: 3px 0;
  font-family: var(--st-font); font-size: 14px; }
.list span { flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  color: var(--st-text-color); }
button { font: inherit; cursor: pointer; padding: 1px 9px; border-radius: 4px;
  border: 1px solid var(--st-border-color); background: var(--st-secondary-background-color);
  color: var(--st-text-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
"""
_pictures = st.components.v2.component(
    "ablation_pictures",
    html='<div class="root"><div class="head" hidden>Figures</div><div class="list"></div></div>',
    css=CSS,
    js=store_script((Path(__file__).parent / "pictures.js").read_text()),
)


def clear_tables():
    """Forget the offered tables and the stored sentence of the last run."""
    st.session_state.setdefault(TABLES, {}).clear()  # the same one: see `draw_export`
    st.session_state.pop(SAID, None)


def set_announcement(sentence: str):
    """Store a sentence as part of the next picture's text alternative."""
    st.session_state[SAID] = sentence


def take_announcement() -> str:
    """Return and forget the stored sentence; "" if there is none."""
    return st.session_state.pop(SAID, "")


def offer_table(name: str, make: Callable[[], pd.DataFrame]):
    """Offer a table of this run, made when exported; a second one of the name is numbered."""
    tables = st.session_state.setdefault(TABLES, {})
    unique = name
    n = 1
    while unique in tables:
        n += 1
        unique = f"{name} ({n})"
    tables[unique] = make


def draw_export(
    page_name: str,
    script: Callable[[], Script] | None,
    files: dict[str, tuple[str, Callable[[], bytes]]] | None = None,
    name_prefix: str = "",
    button=None,
):
    """Draw the export button and, while it is open, its menu: code, files, tables, pictures.

    Call it last. `files` has label -> (file name, function that writes it).

    Args:
        page_name: Name of the page, for file names.
        script: Returns the script of the page; None if it has none.
        files: File name and function that writes the file, by label.
        name_prefix: Prefix for the names of tables and pictures; "" for none.
        button: Export button, if it is drawn already.
    """
    button = button or draw_export_button()
    if not button.open:
        # what makes tables holds what they are made of: with many visitors that is a lot to keep
        # for nobody
        clear_tables()
        return
    with button, st.container(gap="xxsmall"):
        if script:
            st.markdown("**Code** that prints the numbers on this page")
            name = slug(page_name)
            download_link("Python script", f"{name}.py", lambda: script().python(), "text/x-python")
            notebook = "application/x-ipynb+json"
            download_link(
                "Jupyter notebook", f"{name}.ipynb", lambda: script().notebook(), notebook
            )
        if files:
            st.markdown("**Files**")
        for label, (name, make) in (files or {}).items():
            download_link(label, name, make, "application/octet-stream")
        if st.session_state.get(TABLES):
            st.markdown("**Tables** as CSV")
        tables = st.session_state.setdefault(TABLES, {})
        for name, make in tables.items():
            rows = getattr(make, "n_rows", 0)
            if rows > ROWS:
                st.caption(literal(TOO_MANY.format(name=name, rows=rows, most=ROWS)))
                continue
            file = "_".join(part for part in (name_prefix, slug(name)) if part) + ".csv"
            # Looked up when it is asked for: while something is trained the page goes on, and these
            # links stand as they are.
            label = LABELS.get(name, name[:1].upper() + name[1:])

            def write(name: str = name, make: Any = make) -> str:
                return write_csv(tables.get(name, make)())

            download_link(label, file, write, "text/csv")
        _pictures(key="pictures", data=name_prefix)


def draw_export_button():
    """Draw the export button (a popover) without its menu; return it for draw_export()."""
    return st.popover(
        "Export", icon=":material/download:", key="take_away", on_change="rerun", width="content"
    )


@dataclass(frozen=True)
class MatrixTable:
    """Matrices as a table, made on call: one row per cell that is not NaN.

    The columns are panel, row_number, row, column_number, column and value; numbers count from 1.

    Args:
        matrices: (panels, rows, columns).
        rows: Name of each row.
        columns: Name of each column; numbers if None.
        titles: Name of each panel; "" if None.
    """

    matrices: Any
    rows: Sequence[str]
    columns: Sequence[str] | None = None
    titles: Sequence[str] | None = None

    def __call__(self) -> pd.DataFrame:
        """Return the table."""
        cells = self._cells()
        panel, row, column = np.nonzero(~np.isnan(cells))
        titles = self.titles or [""] * len(cells)
        columns = self.columns or [str(n + 1) for n in range(cells.shape[2])]
        table = {
            "panel": _word_column(titles, panel),
            "row_number": row + 1,
            "row": _word_column(self.rows, row),
        }
        table |= {"column_number": column + 1, "column": _word_column(columns, column)}
        return pd.DataFrame(table | {"value": cells[panel, row, column].astype(np.float64)})

    @property
    def n_rows(self) -> int:
        """Number of rows: cells that are not NaN."""
        return int((~np.isnan(self._cells())).sum())

    def _cells(self) -> np.ndarray:
        """Return the matrices as an array (panels, rows, columns)."""
        return torch.as_tensor(self.matrices).numpy()


def _word_column(labels: Sequence[str], indices: np.ndarray) -> pd.Categorical:
    """Return a categorical column of labels by index from 0, which stores each label once."""
    codes, unique_words = pd.factorize(np.array(labels, dtype=object))
    return pd.Categorical.from_codes(list(codes[indices]), pd.Index(unique_words))
