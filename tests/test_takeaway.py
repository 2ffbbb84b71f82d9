"""Exported matrices: the table equals a plain loop's, and oversized tables are refused.

The limit is what a spreadsheet can open.
"""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.export.sheets import read_csv, write_csv
from tests.pages import downloads, tables
from tests.test_page import fine, opened
from ui.kit import takeaway
from ui.kit.pages import ONE_BLOCK
from ui.kit.takeaway import MatrixTable

WORDS = some.lists(some.sampled_from(["the", "dog", "=the", "", "漢"]), min_size=1, max_size=4)


@pytest.mark.slow
@given(some.data(), WORDS, WORDS, some.booleans())
def test_matrix_table_matches_plain_loop(data, rows, columns, named):
    titles = data.draw(some.lists(some.sampled_from(["head 1", "head 2"]), min_size=1, max_size=3))
    numbers = some.lists(
        some.sampled_from([0.0, -1.5, 0.1, np.nan]), min_size=len(columns), max_size=len(columns)
    )
    matrices = data.draw(
        some.lists(
            some.lists(numbers, min_size=len(rows), max_size=len(rows)),
            min_size=len(titles),
            max_size=len(titles),
        )
    )
    table = MatrixTable(np.array(matrices), rows, columns if named else None, titles)
    plain = [
        (title, r + 1, row, c + 1, columns[c] if named else str(c + 1), value)
        for title, matrix in zip(titles, matrices)
        for r, row in enumerate(rows)
        for c, value in enumerate(matrix[r])
        if value == value
    ]
    assert [
        tuple(line) for line in table().itertuples(index=False)
    ] == plain and table.n_rows == len(plain)
    if plain:
        repeated = read_csv(io.StringIO(write_csv(table())), ["panel", "row", "column"]).fillna(
            {"panel": "", "row": "", "column": ""}
        )
        assert [tuple(line) for line in repeated.itertuples(index=False)] == plain


def test_oversized_table_is_not_offered(monkeypatch):
    words = " ".join(["dog", "bites"] * 8)
    app = opened(ONE_BLOCK.path, weights="random", text=words)
    every = tables(fine(app))
    (name,) = [item for item in every if item.startswith("Attention maps")]
    rows = every[name].n_rows
    assert rows == len(every[name]()) == 4 * 16 * 16
    offered = lambda: downloads(fine(app.run()))  # noqa: E731
    assert name in offered()
    monkeypatch.setattr(takeaway, "ROWS", rows - 1)
    assert name not in offered()
    messages = [caption.value.replace("\\", "") for caption in app.caption]
    assert any(name in item and "(1,024; limit 1,023)" in item for item in messages), messages
