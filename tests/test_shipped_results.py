"""What ships as measured: the table is of the study that ships, the picture is of the table, every cell opens its experiment."""

from pathlib import Path

import pandas as pd
import pytest

from core.experiments.training.plan import BASELINE
from core.study.file import read
from core.study.link import parameters, query
from core.study.picture import STYLE, matrix_svg

ROOT = Path(__file__).parent.parent
TABLE = pd.read_csv(ROOT / "results" / "ablation_matrix.csv")
STUDY = read(ROOT / "studies" / "ablation_matrix.toml")


def test_the_table_has_every_cell_of_the_study_and_its_link():
    first = {run.task: run for run in STUDY.runs if run.variant == BASELINE}
    seeds = {(run.task, run.variant): [] for run in STUDY.runs}
    for run in STUDY.runs:
        seeds[run.task, run.variant].append(run.seed)
    links = {}
    for run in STUDY.runs:
        base, machine = first[run.task], {"device": run.machine.device, "dtype": run.machine.dtype}
        made = parameters(run.config, run.training, (base.config, base.training), seeds[run.task, run.variant], machine)
        links[run.task, run.variant] = query(made)
    assert dict(zip(zip(TABLE.task, TABLE.variant), TABLE.link)) == links
    assert (TABLE.seeds + TABLE.diverged == 5).all() and (TABLE.missing == 0).all()


@pytest.mark.parametrize("variant", [name for name in TABLE.variant.unique() if name != BASELINE])
def test_every_part_has_a_task_that_needs_it_and_one_that_does_not(variant):
    lines = TABLE[TABLE.variant == variant]
    assert ((lines.difference <= -0.3) & (lines.p < 0.05)).any()
    assert (lines.difference.abs() < 0.02).any()


def test_the_picture_is_of_the_table():
    assert (ROOT / "docs" / "ablation_matrix.svg").read_text(encoding="utf-8") == matrix_svg(TABLE, style=STYLE) + "\n"
