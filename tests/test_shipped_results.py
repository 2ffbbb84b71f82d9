"""What ships as measured: each table is of its study, the picture is of its table, every cell opens its experiment and has its curves."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.experiments.training.plan import BASELINE
from core.study.curves import read_curves
from core.study.file import read
from core.study.file.shipped import CLAIMED, curves_of, shipped, study_of, table_of
from core.study.link import parameters, query
from core.study.picture import STYLE, matrix_svg
from core.study.plan import MODEL, TRAINING

ROOT = Path(__file__).parent.parent
TABLE = pd.read_csv(table_of("ablation_matrix"))
STUDIES = {name: read(study_of(name)) for name in (*shipped, *CLAIMED)}
KEPT = 1 << 20  # bytes of a study's curves at most
of_each_study = pytest.mark.parametrize("name", shipped)


@of_each_study
def test_the_menu_and_the_makefile_say_what_the_file_says(name):
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"SHIPPED := {' '.join(shipped)}\n" in made
    asks = shipped.help(name)
    assert STUDIES[name].question.endswith(asks[1:]) and STUDIES[name].name.replace(" ", "_").replace("-", "_") == name


@of_each_study
def test_the_table_has_every_cell_of_the_study_and_its_link(name):
    table, study = pd.read_csv(table_of(name)), STUDIES[name]
    first = {run.task: run for run in study.runs if run.variant == BASELINE}
    seeds = {(run.task, run.variant): [] for run in study.runs}
    for run in study.runs:
        seeds[run.task, run.variant].append(run.seed)
    links = {}
    for run in study.runs:
        base, machine = first[run.task], {"device": run.machine.device, "dtype": run.machine.dtype}
        made = parameters(run.config, run.training, (base.config, base.training), seeds[run.task, run.variant], machine)
        links[run.task, run.variant] = query(made)
    assert dict(zip(zip(table.task, table.variant), table.link)) == links
    assert (table.seeds + table.diverged == 5).all() and (table.missing == 0).all()


@pytest.mark.parametrize("name", STUDIES)
def test_the_curves_have_every_run_of_the_study_and_end_where_its_table_does(name):
    curves, ends = read_curves(curves_of(name)), {}
    for run in STUDIES[name].runs:
        rows = curves.rows(run)
        assert [row.step for row in rows] == [n for n in range(1, rows[-1].step + 1) if run.training.due(n) or n == rows[-1].step]  # fmt: skip
        ends.setdefault((run.task, run.variant), []).append(rows[-1])
    assert curves_of(name).stat().st_size < KEPT
    for line in pd.read_csv(table_of(name)).itertuples() if name in shipped else ():
        last = ends.pop((line.task, line.variant))
        assert np.nanmean([row.accuracy for row in last] or [np.nan]) == pytest.approx(line.accuracy, nan_ok=True)
        assert sum(bool(row.note) for row in last) == line.diverged
    assert not ends or name in CLAIMED


@pytest.mark.parametrize("variant", [name for name in TABLE.variant.unique() if name != BASELINE])
def test_every_part_has_a_task_that_needs_it_and_one_that_does_not(variant):
    lines = TABLE[TABLE.variant == variant]
    assert ((lines.difference <= -0.3) & (lines.p < 0.05)).any()
    assert (lines.difference.abs() < 0.02).any()


NO_PARTS = set(
    "d_model n_heads d_ff n_layers d_head matched padding init dropout bias mask length steps batch learning_rate weight_decay every".split()
)  # sizes, and how long, on what and from where it is trained


@pytest.mark.parametrize("setting", sorted((MODEL | TRAINING).keys() - NO_PARTS))
def test_every_part_has_a_row_and_so_has_every_entry_of_its_menu(setting):
    asked = {
        getattr(of, setting)
        for name in shipped
        for run in STUDIES[name].runs
        for of in (run.config, run.training)
        if hasattr(of, setting)
    }
    menu = set((MODEL | TRAINING)[setting].menu or ()) - {"gelu_tanh"}  # which is GELU to three digits
    assert len(asked) > 1 and menu <= asked


def test_the_picture_is_of_the_table():
    assert (ROOT / "docs" / "ablation_matrix.svg").read_text(encoding="utf-8") == matrix_svg(TABLE, style=STYLE) + "\n"
