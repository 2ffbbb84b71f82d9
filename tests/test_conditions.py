"""Comparisons name the versions and devices that they mix, and odd runs are found."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from core.export.sheets import write_csv
from core.settings.device import Machine
from core.settings.setting import ConfigError
from core.study.conditions import (
    CONDITIONS,
    collect_known,
    conditions_of,
    describe_mixed,
    describe_mixed_comparisons,
    describe_mixed_tasks,
    find_odd_runs,
    format_mixed,
    merge_mixed,
)
from core.study.database.schema import DIVERGED, FAILED, QUEUED, RUNNING, STOPPED
from core.study.picture import describe_cell, matrix_svg
from core.study.summary import in_one_column, lines, read_summary
from core.study.tables import compare_studies, load_stored, summary_table, summary_with_guards
from core.workers.job import WorkerPool
from tests.studies import fill, study

HERE = {"torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.7", "device": "CPU (A, B)"}


def run(number=0, task="copy", **changed):
    facts = HERE | {"code": "1", "known": False} | changed
    return SimpleNamespace(id=number, task=task, **facts)


def change(store, number, where="", **columns):
    """Change columns of a study's runs by SQL, as if others had trained them."""
    with store.writing() as connection:
        for name, value in columns.items():
            connection.exec_driver_sql(
                f"UPDATE runs SET {name} = '{value}' WHERE study = {number} {where}"
            )


def score(run) -> float:
    return round(0.5 + 0.3 * math.sin(len(run.variant) * 7 + run.seed), 3)


# Runs


def test_runs_of_equal_conditions_are_not_mixed():
    assert describe_mixed([]) == describe_mixed([run()]) == describe_mixed([run(0), run(1)]) == ""


def test_conditions_that_differ_are_named_in_order():
    runs = [run(), run(device="GPU"), run(torch="2.12.1"), run(torch="2.12.1")]
    assert describe_mixed(runs) == "torch 2.12.1 and 2.13.0; device CPU (A, B) and GPU"
    assert describe_mixed([run(), run(python="3.12.1"), run(python="3.13.0")]) == (
        "python 3.11.7 and 3.12.1 and 3.13.0"
    )
    assert describe_mixed([run(), run(numpy="2.5.0")]) == "numpy 2.4.6 and 2.5.0"


def test_commits_and_empty_values_do_not_count():
    assert describe_mixed([run(), run(code="2"), run(torch="", device="")]) == ""


def test_run_taken_over_counts_with_what_trained_it():
    assert describe_mixed([run(), run(torch="2.12.1", known=True)]) == "torch 2.12.1 and 2.13.0"


def test_texts_merge_into_all_values():
    texts = ["", "torch 1 and 2", "torch 2 and 3; device A and B", "numpy 1 and 2"]
    assert merge_mixed(texts) == "torch 1 and 2 and 3; numpy 1 and 2; device A and B"
    assert merge_mixed(["", ""]) == ""
    assert describe_mixed_comparisons(texts).startswith("3 of 4 comparisons mix conditions: torch")
    assert describe_mixed_comparisons(["", "numpy 1 and 2"]) == (
        "1 of 2 comparisons mixes conditions: numpy 1 and 2."
    )
    assert describe_mixed_comparisons(["", ""]) == describe_mixed_comparisons([]) == ""


def test_tasks_of_different_conditions_are_not_compared():
    ours = [run(task="copy"), run(task="copy")]
    theirs = [run(task="reverse", torch="2.12.1")]
    assert describe_mixed_tasks(ours + theirs) == ""
    assert describe_mixed_tasks([*ours, *theirs, run(task="reverse", numpy="2.5.0")]) == (
        "torch 2.12.1 and 2.13.0; numpy 2.4.6 and 2.5.0"
    )


def test_file_with_several_values_tells_nothing_of_a_run():
    one = {name: ["x"] for name in CONDITIONS}
    several = one | {"torch": ["x", "y"], "device": ["z"]}
    assert format_mixed(collect_known([one, several])) == "device x and z"
    assert format_mixed(collect_known([several])) == ""


def test_odd_runs_differ_from_conditions_here():
    runs = [
        run(1),
        run(2, torch="2.12.1"),
        run(3, code="other"),
        run(4, device="GPU"),
        run(5, torch="", numpy="", python="", device=""),
    ]
    assert find_odd_runs(runs, HERE) == [2, 4]
    assert find_odd_runs(runs, HERE | {"numpy": "3.0"}) == [1, 2, 3, 4]  # none is of here


def test_conditions_of_workers_are_those_that_the_store_gets(store):
    pool = WorkerPool(1)
    here = conditions_of(pool, Machine("cpu"))
    number = store.enrol(study()).study
    store.claim(number, "me|1|a", 1, pool.versions())
    (stored,) = store.runs(number, RUNNING)
    for name in ("torch", "numpy", "python"):
        assert getattr(stored, name) == here[name] != ""
    assert here["device"] == pool.device(Machine("cpu"))[1]
    missing = next(name for name in ("mps", "cuda") if name not in Machine().choices("device"))
    with pytest.raises(ConfigError, match=missing):
        conditions_of(pool, Machine.anywhere(missing))


# Tables of a store


def test_summary_names_mixed_cells(store):
    number = fill(store, study(), score)
    assert set(summary_table(store, number).mixed) == {""}
    change(store, number, torch="2.13.0")
    change(store, number, "AND task = 'copy' AND variant = '1 head' AND seed = 2", torch="2.12.1")
    change(store, number, "AND task = 'reverse' AND variant = 'baseline'", device="GPU")
    table = summary_with_guards(store, number)
    texts = {(line.task, line.variant): line.mixed for line in lines(table)}
    versions = "torch 2.12.1 and 2.13.0"
    devices = "device CPU (made up) and GPU"
    assert texts == {
        ("copy", "baseline"): "",
        ("copy", "− norm"): "",
        ("copy", "1 head"): versions,
        ("reverse", "baseline"): "",
        ("reverse", "− norm"): devices,
        ("reverse", "1 head"): devices,
    }
    for line in lines(table):
        assert (f"Mixed conditions: {line.mixed}." in describe_cell(line)) == bool(line.mixed)
    assert matrix_svg(table).count(f"Mixed conditions: {devices}.") == 2
    assert list(in_one_column(table, "all").mixed) == ["", versions, devices, devices]


@pytest.mark.parametrize("state", [QUEUED, RUNNING, FAILED, STOPPED, DIVERGED])
def test_only_runs_with_a_result_count(store, state):
    outcome = math.nan if state == DIVERGED else state
    parsed = study()
    odd = next(run for run in parsed.runs if (run.variant, run.seed) == ("1 head", 1))
    number = fill(store, parsed, lambda run: outcome if run is odd else score(run))
    other = fill(store, study("other"), score)
    change(store, number, torch="2.13.0")
    change(store, other, torch="2.13.0")
    change(store, number, f"AND hash = '{odd.hash}'", torch="2.12.1")
    expected = "torch 2.12.1 and 2.13.0" if state == DIVERGED else ""
    for table in (summary_table(store, number), compare_studies(store, number, other)):
        mixed = table.set_index(["task", "variant"]).mixed
        assert mixed[odd.task, odd.variant] == expected
        assert set(mixed.drop((odd.task, odd.variant))) == {""}


def test_baseline_with_mixed_seeds_mixes_all_its_comparisons(store):
    number = fill(store, study(), score)
    change(store, number, "AND task = 'copy' AND variant = 'baseline' AND seed = 1", python="3.9")
    mixed = summary_table(store, number).set_index(["task", "variant"]).mixed
    assert all("3.9" in text for text in mixed["copy"]) and set(mixed["reverse"]) == {""}


def test_searched_summary_names_mixed_cells_of_chosen_rates(store):
    searched = study(old="seeds = 3", new='seeds = 3\nsearch = "three"')
    number = fill(store, searched, score)
    change(store, number, torch="2.13.0")
    of_baseline = "AND variant NOT LIKE '1 head%' AND variant NOT LIKE '− norm%'"
    change(store, number, f"AND task = 'copy' {of_baseline}", torch="2.12.1")
    table = summary_with_guards(store, number)
    mixed = table.set_index(["task", "variant"]).mixed
    assert list(mixed["copy"]) == ["", *2 * ["torch 2.12.1 and 2.13.0"]]
    assert set(mixed["reverse"]) == {""}


def test_mixed_conditions_come_back_from_csv(store, tmp_path):
    number = fill(store, study(), score)
    for where in ("", "AND task = 'copy' AND variant = '1 head'"):
        change(store, number, where, numpy="1.0" if where else "2.0")
        table = summary_table(store, number)
        write_csv(table, tmp_path / "summary.csv")
        assert list(read_summary(tmp_path / "summary.csv").mixed) == list(table.mixed)
    assert list(table.mixed) == ["", "", "numpy 1.0 and 2.0", "", "", ""]
    assert pd.read_csv(tmp_path / "summary.csv").mixed.isna().sum() == 5


def test_comparison_of_two_studies_names_conditions_of_both(store):
    number = fill(store, study(), score)
    other = fill(store, study("other", "seeds = 3", "seeds = [1, 2, 7]"), score)
    change(store, number, torch="2.13.0")
    change(store, other, torch="2.13.0")
    change(store, other, "AND seed = 7", torch="0.1")  # which the first has not
    assert set(compare_studies(store, number, other).mixed) == {""}
    change(store, other, "AND task = 'copy' AND variant = '1 head'", torch="2.12.1")
    compared = compare_studies(store, number, other).set_index(["task", "variant"]).mixed
    assert compared["copy", "1 head"] == "torch 2.12.1 and 2.13.0"
    assert sum(compared != "") == 1 and len(compared) == 6


def test_curves_name_conditions_of_shown_runs_only(store):
    number = fill(store, study(), score)
    change(store, number, device="A")
    change(store, number, "AND variant = '1 head'", device="B")
    assert load_stored(store, number, "copy", ["1 head"]).mixed == "device A and B"
    assert load_stored(store, number, "copy", ["− norm"]).mixed == ""
