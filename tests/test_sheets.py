"""CSV tables and file names: no formulas, numbers stay numbers, exact round trips."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from core.export.sheets import escape_formula, read_csv, slug, write_csv
from core.study import __main__ as command
from core.study.database.store import Store
from core.study.picture import matrix_svg
from core.study.summary import LEARNT, MIXED, NUMBERS, TEXTS, VERDICT, read_summary
from core.study.tables import TABLES, export, summary_table
from tests.studies import fill, study
from tests.test_study_tables import score

EVIL = [
    "=1+1",
    "+1",
    "-norm",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "'=1",
    "''-1",
    '=HYPERLINK("http://x","y")',
]
FINE = ["− norm", "norm", "'quoted'", "", "a=1", " =1", "1", "−1", "漢字"]


@pytest.mark.parametrize("cell", [*FINE, -1, -1.5, 0.0, None, True, np.float64(-2), float("-inf")])
def test_everything_else_is_written_as_it_is(cell):
    assert escape_formula(cell) is cell


@pytest.mark.parametrize("kind", [object, "str", "category"])
def test_table_is_written_without_formulas(kind):
    table = pd.DataFrame(
        {
            "=word": pd.Series(EVIL, dtype=kind),
            "number": -np.arange(1.0, 12),
            "whole": -np.arange(11),
            "yes": True,
        }
    )
    table["mixed"] = [-1, -2.5, "-x", None, *[0] * 7]
    before = table.copy()
    rows = list(csv.reader(io.StringIO(write_csv(table).removeprefix("\ufeff"), newline="")))
    assert rows[0] == ["'=word", "number", "whole", "yes", "mixed"]
    assert [row[0] for row in rows[1:]] == [f"'{text}" for text in EVIL]
    assert [row[1] for row in rows[1:]] == [f"{-n:.1f}" for n in range(1, 12)]
    assert [row[4] for row in rows[1:5]] == ["-1", "-2.5", "'-x", ""]
    pd.testing.assert_frame_equal(table, before)  # the table itself is left as it was
    repeated = read_csv(io.StringIO(write_csv(table), newline=""), ["=word"])
    assert list(repeated.number) == list(table.number)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ABLATION_DATABASE_URL", raising=False)
    return Store("studies.sqlite")


def called(capsys, *args) -> tuple[int, str, str]:
    code = command.main(list(args))
    return (code, *capsys.readouterr())


def test_summary_has_all_read_columns(store):
    assert set(summary_table(store, fill(store, study(), score)).columns) == {
        *TEXTS,
        *NUMBERS,
        *LEARNT,
        *VERDICT,
        MIXED,
    }


def test_file_without_learnt_runs_is_still_read(store, tmp_path):
    """Read a summary from before 2026-11-29, without columns on runs, verdicts, conditions."""
    new_columns = [*LEARNT, *VERDICT, MIXED]
    table = summary_table(store, fill(store, study(), score)).drop(columns=new_columns)
    write_csv(table, tmp_path / "old.csv")
    old = read_summary(tmp_path / "old.csv")
    assert "runs learnt" not in matrix_svg(old) and len(old) == len(table)
    assert set(old.mixed) == {""} and "Mixed" not in matrix_svg(old)


def test_studies_are_exported_to_own_folders(store, capsys, tmp_path):
    names = ["norm v1.5", "norm v1.6", "..", "研究", "実験"]
    numbers = [fill(store, study(name), score) for name in names]
    (tmp_path / "out").mkdir()
    code, out, _ = called(
        capsys, "export", *names, names[0], "--csv", "out/tables", "--parquet", "out/tables"
    )
    assert code == command.COMPLETE and len(out.split()) == len(names) * 2 * 4
    folders = [slug(name, number) for name, number in zip(names, numbers)]
    assert folders == ["norm_v1_5_1", "norm_v1_6_2", "table_3", "table_4", "table_5"]
    assert sorted(file.name for file in (tmp_path / "out" / "tables").iterdir()) == sorted(folders)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["tables"]
    for folder, name in zip(folders, names):
        assert (
            f'name = "{name}"' in (tmp_path / "out" / "tables" / folder / "study.toml").read_text()
        )


def test_csv_and_parquet_hold_the_same_tables(store, tmp_path):
    number = fill(store, study(), score)
    for kind in ("csv", "parquet"):
        export(store, number, tmp_path, kind)
    for name in TABLES:
        from_csv = pd.read_csv(tmp_path / f"{name}.csv")
        other = pd.read_parquet(tmp_path / f"{name}.parquet")
        texts = [
            column for column in from_csv if from_csv[column].isna().any()
        ]  # CSV has no empty text
        pd.testing.assert_frame_equal(
            from_csv.drop(columns=texts),
            other.drop(columns=texts),
            check_dtype=False,
            rtol=0,
            atol=0,
        )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_export_has_all_tables_and_study_file(store, tmp_path, kind):
    number = fill(store, study(), score)
    paths = export(store, number, tmp_path / "x", kind)
    assert [path.name for path in paths] == ["study.toml", *(f"{name}.{kind}" for name in TABLES)]
    assert paths[0].read_text(encoding="utf-8") == study().source


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a,b\n1,2\n", "has no column task, of, variant, link"),
        (b"\xff\xfe\n", "is not a CSV file"),
    ],
)
def test_file_without_summary_is_refused_in_words(data, words, store, tmp_path, capsys):
    fill(store, study(), score)
    (tmp_path / "x.csv").write_bytes(data)
    code, _, errors = called(capsys, "check", "made up", "--with", "x.csv")
    assert code == command.MISTAKE and words in errors and "Traceback" not in errors


def test_table_has_one_byte_order_mark_read_optionally(tmp_path):
    """Excel needs the mark to recognise UTF-8."""
    table = pd.DataFrame({"variant": ["− norm", "café", "漢字"], "value": [1.5, -2.0, 0.25]})
    mark = b"\xef\xbb\xbf"
    write_csv(table, tmp_path / "a.csv")
    data = (tmp_path / "a.csv").read_bytes()
    assert data == write_csv(table).encode() and data.count(mark) == 1 and data.startswith(mark)
    for written in (data, data.removeprefix(mark)):
        (tmp_path / "b.csv").write_bytes(written)
        pd.testing.assert_frame_equal(read_csv(tmp_path / "b.csv", ["variant"]), table)
        pd.testing.assert_frame_equal(read_csv(io.StringIO(written.decode()), ["variant"]), table)
