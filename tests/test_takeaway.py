"""Matrices that are taken away: their table is that of a plain loop, and none is made that no spreadsheet could open."""

import asyncio
import io
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.export.sheets import read_csv, write_csv
from tests.pages import tables
from tests.test_page import fine, opened
from ui.kit.pages import ONE_BLOCK
from ui.kit.server import lifespan
from ui.kit.store import Session
from ui.kit.takeaway import MatrixTable, in_turn, takeaway

WORDS = some.lists(some.sampled_from(["the", "dog", "=the", "", "漢"]), min_size=1, max_size=4)


@given(some.data(), WORDS, WORDS, some.booleans())
def test_a_table_of_matrices_is_that_of_a_plain_loop(data, rows, columns, named):
    titles = data.draw(some.lists(some.sampled_from(["head 1", "head 2"]), min_size=1, max_size=3))
    numbers = some.lists(some.sampled_from([0.0, -1.5, 0.1, np.nan]), min_size=len(columns), max_size=len(columns))
    matrices = data.draw(
        some.lists(
            some.lists(numbers, min_size=len(rows), max_size=len(rows)), min_size=len(titles), max_size=len(titles)
        )
    )
    made = MatrixTable(np.array(matrices), rows, columns if named else None, titles)
    plain = [
        (title, r + 1, row, c + 1, columns[c] if named else str(c + 1), value)
        for title, matrix in zip(titles, matrices)
        for r, row in enumerate(rows)
        for c, value in enumerate(matrix[r])
        if value == value
    ]
    assert [tuple(line) for line in made().itertuples(index=False)] == plain and made.many == len(plain)
    if plain:
        again = read_csv(io.StringIO(write_csv(made())), ["panel", "row", "column"]).fillna(
            {"panel": "", "row": "", "column": ""}
        )
        assert [tuple(line) for line in again.itertuples(index=False)] == plain


def test_a_table_with_more_rows_than_a_spreadsheet_is_not_offered(monkeypatch):
    words = " ".join(["dog", "bites"] * 8)
    app = opened(ONE_BLOCK.path, weights="random", text=words)
    every = tables(fine(app))
    (name,) = [each for each in every if each.startswith("Attention maps")]
    rows = every[name].many
    assert rows == len(every[name]()) == 4 * 16 * 16
    offered = lambda: [each.label for each in fine(app.run()).get("download_button")]  # noqa: E731
    assert name in offered()
    monkeypatch.setattr(takeaway, "ROWS", rows - 1)
    assert name not in offered()
    said = [each.value.replace("\\", "") for each in app.caption]
    assert any(f"{name}: 1,024 rows, and a spreadsheet has 1,023 at most" in each for each in said), said


def test_one_visitor_makes_few_files_at_a_time(monkeypatch):
    held = Session()
    monkeypatch.setattr(takeaway, "session", lambda: held)
    wait, begun = threading.Event(), threading.Barrier(takeaway.AT_ONCE + 1)

    def long():
        begun.wait(10)
        wait.wait(10)
        return "made"

    made: list[str] = []
    going = [threading.Thread(target=lambda: made.append(in_turn(long)())) for _ in range(takeaway.AT_ONCE)]
    for each in going:
        each.start()
    begun.wait(10)
    with pytest.raises(RuntimeError, match="3 files are being made"):
        in_turn(lambda: "one more")()
    wait.set()
    for each in going:
        each.join()
    assert made == ["made"] * takeaway.AT_ONCE and in_turn(lambda: "one more")() == "one more"


def test_where_many_wait_for_words_on_their_way_no_other_waits(monkeypatch):
    """Whoever asks for a report has it made a second later. Twenty visitors with three each would hold every thread for ten seconds."""
    monkeypatch.setattr(takeaway, "session", Session)
    wait, slept = threading.Event(), threading.Semaphore(0)

    def sleep(seconds):
        assert seconds == 7
        slept.release()
        assert wait.wait(10)

    monkeypatch.setattr(takeaway.time, "sleep", sleep)
    many = lifespan.THREADS // 2
    going = [threading.Thread(target=in_turn(lambda: "report", wait=7)) for _ in range(many)]
    for each in going:
        each.start()
    for _ in range(many):
        assert slept.acquire(timeout=10)
    assert in_turn(lambda: "report", wait=7)() == "report" == in_turn(lambda: "report")()
    wait.set()
    for each in going:
        each.join()
    assert not slept.acquire(blocking=False)


def test_as_many_files_can_wait_as_there_are_threads(monkeypatch):
    monkeypatch.setattr(lifespan.ending, "begin", lambda: None)
    together = threading.Barrier(lifespan.THREADS)

    async def server():
        async with lifespan.lifespan(None):
            await asyncio.gather(*(asyncio.to_thread(together.wait, 30) for _ in range(lifespan.THREADS)))

    asyncio.run(server())
    assert not together.broken


def test_a_large_table_is_made_in_little_memory():
    cells = np.random.default_rng(0).random((15, 256, 256), dtype=np.float32)
    table = MatrixTable(cells, [f"w{n % 40}" for n in range(256)], None, [f"head {n}" for n in range(15)])()
    assert len(table) == table.value.size == cells.size and isinstance(table, pd.DataFrame)
    assert table.memory_usage(deep=True).sum() < 40 * cells.size
