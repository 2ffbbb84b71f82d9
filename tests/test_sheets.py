"""Tables as CSV: no text is a formula to a spreadsheet, numbers stay numbers, and everything is read back as it was; and names of files."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from core.experiments.trained.comparison import read as read_family
from core.experiments.training.plan import BASELINE
from core.export.sheets import harmless, original, read_csv, slug, write_csv
from core.study import __main__ as command
from core.study.database.store import Store
from core.study.shipped import table_of
from core.study.summary import NUMBERS, TEXTS, read_summary
from core.study.tables import TABLES, export, judged_table, summary_table
from core.teaching.claims import read_values
from tests.studies import TEXT, fill, study
from tests.test_model_page import opened
from tests.test_page import fine
from tests.test_study_tables import score
from ui.kit.server.downloads import OFFERS

EVIL = ["=1+1", "+1", "-norm", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''-1", '=HYPERLINK("http://x","y")']
FINE = ["− norm", "norm", "'quoted'", "", "a=1", " =1", "1", "−1", "漢字"]


@pytest.mark.parametrize("text", EVIL)
def test_a_text_that_is_a_formula_gets_a_mark(text):
    assert harmless(text) == f"'{text}" and original(harmless(text)) == text


@pytest.mark.parametrize("cell", [*FINE, -1, -1.5, 0.0, None, True, np.float64(-2), float("-inf")])
def test_everything_else_is_written_as_it_is(cell):
    assert harmless(cell) is cell


@given(some.text(alphabet="='-@+\t; ab1\"", max_size=8))
def test_every_text_is_read_back_as_it_was(text):
    assert original(harmless(text)) == text
    assert harmless(text)[:1] not in ("=", "+", "-", "@", "\t", "\r")


@given(some.lists(some.text(alphabet="='-@+;,\" ab1", max_size=9), min_size=1, max_size=4))
@example(['x;"=1+1', 'n;"=2+2;', 'y;"=HYPERLINK("http://e.example","z");', "x; =1", "x;'\"=1"])
def test_no_cell_is_a_formula_where_semicolons_part_them(texts):
    written = write_csv(pd.DataFrame({"said": texts, "n": 1.0})).removeprefix("\ufeff")
    for cells in [*csv.reader(io.StringIO(written), delimiter=";"), *(line.split(";") for line in written.split("\n"))]:
        assert not any(cell[:1] in ("=", "+", "-", "@") for cell in cells)


@pytest.mark.parametrize("kind", [object, "str", "category"])
def test_a_table_is_written_without_formulas_and_with_its_numbers(kind):
    table = pd.DataFrame(
        {"=word": pd.Series(EVIL, dtype=kind), "number": -np.arange(1.0, 12), "whole": -np.arange(11), "yes": True}
    )
    table["mixed"] = [-1, -2.5, "-x", None, *[0] * 7]
    before = table.copy()
    rows = list(csv.reader(io.StringIO(write_csv(table).removeprefix("\ufeff"), newline="")))
    assert rows[0] == ["'=word", "number", "whole", "yes", "mixed"]
    assert [row[0] for row in rows[1:]] == [f"'{text}" for text in EVIL]
    assert [row[1] for row in rows[1:]] == [f"{-n:.1f}" for n in range(1, 12)]
    assert [row[4] for row in rows[1:5]] == ["-1", "-2.5", "'-x", ""]
    pd.testing.assert_frame_equal(table, before)  # the table itself is left as it was
    again = read_csv(io.StringIO(write_csv(table), newline=""), ["=word"])
    assert list(again.number) == list(table.number)


def test_a_written_table_without_texts_is_that_of_pandas():
    table = pd.DataFrame({"a": [1.5, -2, np.nan], "b": [1, 2, 3], "c": ["x", "− norm", None]})
    assert write_csv(table) == "\ufeff" + table.to_csv(index=False)


MARKED = pd.DataFrame({"variant": ["− norm", "café", "漢字"], "value": [1.5, -2.0, 0.25]})
MARK = b"\xef\xbb\xbf"  # by which Excel knows that a file is UTF-8


@pytest.mark.parametrize("quoted", [False, True])
def test_a_written_table_begins_with_one_byte_order_mark_and_is_read_with_it(tmp_path, quoted):
    table = MARKED.assign(note="line\r" if quoted else "line")  # with \r, every text stands in quotes
    write_csv(table, tmp_path / "a.csv")
    data = (tmp_path / "a.csv").read_bytes()
    assert data == write_csv(table).encode() and data.count(MARK) == 1 and data.startswith(MARK)
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as opened:
        assert next(csv.reader(opened)) == ["variant", "value", "note"]
    for written in (data, data.removeprefix(MARK)):
        (tmp_path / "b.csv").write_bytes(written)
        pd.testing.assert_frame_equal(read_csv(tmp_path / "b.csv", ["variant", "note"]), table)
        pd.testing.assert_frame_equal(read_csv(io.StringIO(written.decode()), ["variant", "note"]), table)


@pytest.mark.parametrize("name", ["ablation_matrix", "claims", "family"])
def test_a_table_that_the_project_reads_may_begin_with_a_byte_order_mark(tmp_path, name):
    readers = {"ablation_matrix": read_summary, "claims": read_values, "family": read_family}
    data = table_of(name).read_bytes()
    found = []
    for mark in (b"", MARK):
        (tmp_path / "a.csv").write_bytes(mark + data.removeprefix(MARK))
        found.append(readers[name](tmp_path / "a.csv"))
    assert len(found[0]) > 10
    if name == "claims":
        assert found[0] == found[1]
    else:
        pd.testing.assert_frame_equal(*found)


# Studies

NAMES = ["-norm", "=1+1", "'-norm", "@x", "+ 2 heads"]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ABLATION_DATABASE_URL", raising=False)
    return Store("studies.sqlite")


def called(capsys, *given) -> tuple[int, str, str]:
    code = command.main(list(given))
    return (code, *capsys.readouterr())


def test_variants_that_are_called_like_formulas_survive_the_way_out_and_back(store, capsys):
    text = TEXT.partition("[variants]")[0] + "[variants]\n"
    text += "".join(f'"{name}" = {{n_layers = {n + 2}}}\n' for n, name in enumerate(NAMES))
    number = fill(store, study(text=text), score)
    assert called(capsys, "export", "made up", "--summary", "x.csv", "--csv", "c")[0] == command.COMPLETE
    for path in ("x.csv", "c/summary.csv", "c/runs.csv", "c/rows.csv"):
        assert open(path, "rb").read(3) == MARK
        cells = [cell for row in csv.reader(open(path, newline="", encoding="utf-8-sig")) for cell in row]
        assert {f"'{name}" for name in NAMES} <= set(cells)
        assert not [cell for cell in cells if cell[:1] in ("=", "@", "+") or (cell[:1] == "-" and not _number(cell))]
    read = read_summary("x.csv")
    pd.testing.assert_frame_equal(read, judged_table(store, number), check_dtype=False)
    code, out, _ = called(capsys, "check", "made up", "--with", "x.csv")
    assert code == command.COMPLETE and out.startswith("12 cells: 12 the same to the last digit, 0 not")


def _number(text: str) -> bool:
    try:
        return bool(float(text)) or True
    except ValueError:
        return False


def test_a_summary_has_the_columns_that_are_read(store):
    assert set(summary_table(store, fill(store, study(), score)).columns) == {*TEXTS, *NUMBERS}


def test_every_study_is_exported_into_a_folder_of_its_own(store, capsys, tmp_path):
    names = ["norm v1.5", "norm v1.6", "..", "研究", "実験"]
    numbers = [fill(store, study(name), score) for name in names]
    (tmp_path / "out").mkdir()
    code, out, _ = called(capsys, "export", *names, names[0], "--csv", "out/tables", "--parquet", "out/tables")
    assert code == command.COMPLETE and len(out.split()) == len(names) * 2 * 4
    folders = [slug(name, number) for name, number in zip(names, numbers)]
    assert folders == ["norm_v1_5_1", "norm_v1_6_2", "table_3", "table_4", "table_5"]
    assert sorted(each.name for each in (tmp_path / "out" / "tables").iterdir()) == sorted(folders)
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["tables"]
    for folder, name in zip(folders, names):
        assert f'name = "{name}"' in (tmp_path / "out" / "tables" / folder / "study.toml").read_text()


def test_the_tables_of_another_study_are_not_overwritten(store, capsys, tmp_path):
    for name in ("one", "two"):
        fill(store, study(name), score)
    assert called(capsys, "export", "one", "--csv", "c")[0] == command.COMPLETE
    before = (tmp_path / "c" / "runs.csv").read_bytes()
    code, _, errors = called(capsys, "export", "two", "--csv", "c")
    assert (
        code == command.MISTAKE
        and errors == "c has tables already, those of “one”: name another folder for “two”, or remove them.\n"
    )
    assert (tmp_path / "c" / "runs.csv").read_bytes() == before
    assert called(capsys, "export", "one", "--csv", "c", "--parquet", "c")[0] == command.COMPLETE  # its own, again
    (tmp_path / "c" / "study.toml").unlink()
    code, _, errors = called(capsys, "export", "one", "--csv", "c")
    assert code == command.MISTAKE and "no file that says of which study" in errors
    assert called(capsys, "export", "two", "--csv", "d")[0] == command.COMPLETE


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_is_exported_is_every_table_and_the_file(store, tmp_path, kind):
    number = fill(store, study(), score)
    made = export(store, number, tmp_path / "x", kind)
    assert [path.name for path in made] == ["study.toml", *(f"{name}.{kind}" for name in TABLES)]
    assert made[0].read_text(encoding="utf-8") == study().source


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is cut short, or no CSV table"),
        (b"a,b\n1", "is cut short"),
        (b"a,b\n1,2\n", "has no column task, of, variant, link"),
        (b'"\n', "is no CSV table"),
        (b"\xff\xfe\n", "is no CSV table"),
    ],
)
def test_a_file_that_is_no_summary_is_refused_in_words(data, words, store, tmp_path, capsys):
    fill(store, study(), score)
    (tmp_path / "x.csv").write_bytes(data)
    code, _, errors = called(capsys, "check", "made up", "--with", "x.csv")
    assert code == command.MISTAKE and words in errors and "Traceback" not in errors


def test_names_of_files_are_plain_and_different_where_numbers_are():
    for name in ("..", "/", "../../etc/passwd", "a\x00b", "CON", "研究", "", "x" * 300, "−norm", "\u202e"):
        made = slug(name, 7)
        assert made.endswith("_7") and set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789_") and len(made) < 70
    assert slug("norm v1.5") == slug("norm v1 5") and slug("norm v1.5", 1) != slug("norm v1 5", 2)
    assert BASELINE == slug(BASELINE)


# Pages


@pytest.mark.parametrize(
    "page, params",
    [
        ("pages/1_One_block.py", {"text": "=1+1 @sum -x +y", "view": "tokens"}),
        ("pages/2_Depth.py", {"text": "=1+1 @sum -x +y", "show": "attention"}),
    ],
    ids=str,
)  # fmt: skip
def test_no_table_of_a_page_holds_a_formula(page, params):
    app = opened(page, **params)
    app.session_state["take_away"] = True
    offers = fine(app.run()).session_state[OFFERS]
    texts = [offer.write() for offer in offers.values() if offer.mime == "text/csv"]
    assert all(text.startswith("\ufeff") and text.count("\ufeff") == 1 for text in texts)
    tables = [list(csv.reader(io.StringIO(text.removeprefix("\ufeff")))) for text in texts]
    cells = [cell for table in tables for row in table for cell in row]
    assert {"'=", "'@", "'-", "'+"} <= {cell[:2] for cell in cells}
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not _number(cell)]
