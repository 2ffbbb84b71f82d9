"""Shipped results: tables, picture and links of cells match their studies.

Every cell has its curves.
"""

import math
import re
import tomllib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

from core.experiments.training.plan import BASELINE
from core.study.curves import read_curves
from core.study.database.store import Store
from core.study.file import read
from core.study.imports import import_curves
from core.study.looks import list_needed_runs
from core.study.picture import STYLE, matrix_svg
from core.study.plan import MODEL, NULL, NULL_ARMS, TRAINING, Run, without_rate
from core.study.shipped import ALONE, curves_of, shipped, shipped_curves, study_of, table_of
from core.study.summary import AS_SET, SEARCHED, beside_one_rate, is_sparse, read_summary
from core.study.tables import look_at_tasks
from core.study.training_link import format_address, link_parameters
from tests.holm import differences

ROOT = Path(__file__).parent.parent
TABLE = read_summary(table_of("ablation_matrix"))
STUDIES = {name: read(study_of(name)) for name in (*shipped, *ALONE)}
KEPT = 1 << 20  # bytes of a study's curves at most
of_each_study = pytest.mark.parametrize("name", shipped)


@cache
def needed_runs(name: str) -> list[Run]:
    """Return the runs of a shipped study, also those of later looks that its results call for."""
    study = STUDIES[name]
    if not study.later:
        return list(study.runs)
    with TemporaryDirectory() as folder:
        store = Store(str(Path(folder) / "shipped.sqlite"))
        import_curves(store, study, shipped_curves(name), certain=False)
        needed = list_needed_runs(study, look_at_tasks(store, store.find(study.name)))
        store.close()
    return needed


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of a summary that are variants: neither baselines nor null arms."""
    return table[~table.variant.isin([BASELINE, *NULL_ARMS])]


@of_each_study
def test_menu_and_makefile_match_study_file(name):
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"SHIPPED := {' '.join(shipped)}\n" in text
    asks = shipped.help(name)
    assert (
        STUDIES[name].question.endswith(asks[1:])
        and STUDIES[name].name.replace(" ", "_").replace("-", "_") == name
    )


@of_each_study
def test_table_has_all_cells_with_links(name):
    table = pd.read_csv(table_of(name))
    study = STUDIES[name]
    first = {run.task: run for run in study.runs if run.variant == BASELINE}
    search = tomllib.loads(study.source).get("search", "none")
    required = [
        run
        for run in needed_runs(name)
        if search == "none" or without_rate(run.variant, run.training.learning_rate) == run.variant
    ]
    seeds = {(run.task, run.variant): [] for run in required}
    for run in required:
        seeds[run.task, run.variant].append(run.seed)
    links = {}
    for run in required:
        base = run if run.variant == NULL else first[run.task]
        machine = {"device": run.machine.device, "dtype": run.machine.dtype}
        several = seeds[run.task, run.variant]
        params = link_parameters(
            run.config, run.training, (base.config, base.training), several, machine, search
        )
        links[run.task, run.variant] = format_address(params)
    assert dict(zip(zip(table.task, table.variant), table.link)) == links
    n_seeds = [len(seeds[line.task, line.variant]) for line in table.itertuples()]
    assert list(table.seeds + table.diverged) == n_seeds and (table.missing == 0).all()
    assert min(n_seeds) >= 5


def best_by_loss(runs):
    """Return each seed's last row at the rate with the lowest loss in the last tenth.

    Args:
        runs: rate -> the rows of each seed.
    """
    chosen = []
    for seed in zip(*(runs[rate] for rate in sorted(runs))):
        late = [
            np.mean([row.loss for row in rows if row.step > 0.9 * rows[-1].step]) for rows in seed
        ]
        worth = [np.inf if rows[-1].note else loss for rows, loss in zip(seed, late)]
        chosen.append(seed[int(np.argmin(worth))][-1])
    return chosen


def test_runs_ship_in_one_file_only():
    files = {name: read_curves(curves_of(name)).hashes() for name in STUDIES}
    assert sum(map(len, files.values())) == len(set.union(*files.values()))
    assert set.union(*files.values()) == {run.hash for name in STUDIES for run in needed_runs(name)}


def test_shipped_runs_never_diverged_by_norm_alone():
    """Divergence is an infinite or NaN loss, gradient or update, not a norm beyond float32."""
    ended = {}
    for name in STUDIES:
        curves = shipped_curves(name)
        ended |= {run.hash: curves.rows(run)[-1] for run in needed_runs(name)}
    diverged = {key: row for key, row in ended.items() if row.note}
    assert diverged and not any(math.isinf(row.gradient_norm) for row in diverged.values())


@pytest.mark.parametrize("name", STUDIES)
def test_shipped_curves_match_table_at_their_end(name):
    curves = shipped_curves(name)
    ends = {}
    search = "\nsearch = " in STUDIES[name].source
    for run in needed_runs(name):
        rows = curves.rows(run)
        assert [row.step for row in rows] == [
            n for n in range(1, rows[-1].step + 1) if run.training.due(n) or n == rows[-1].step
        ]
        model = without_rate(run.variant, run.training.learning_rate) if search else run.variant
        ends.setdefault((run.task, model), {}).setdefault(run.training.learning_rate, []).append(
            rows
        )
    assert curves_of(name).stat().st_size < KEPT
    for line in pd.read_csv(table_of(name)).itertuples() if name in shipped else ():
        last = best_by_loss(ends.pop((line.task, line.variant)))
        assert np.nanmean([row.accuracy for row in last] or [np.nan]) == pytest.approx(
            line.accuracy, nan_ok=True
        )
        assert sum(bool(row.note) for row in last) == line.diverged
    assert not ends or name in ALONE


@pytest.mark.parametrize("variant", compared(TABLE).variant.unique())
def test_parts_have_tasks_that_need_them_and_not(variant):
    lines = TABLE[TABLE.variant == variant]
    assert ((lines.difference <= -0.3) & (lines.p < 0.05)).any()
    assert (lines.difference.abs() < 0.02).any()


NO_PARTS = set(
    "d_model n_heads d_ff n_layers d_head matched padding init dropout ffn_dropout bias"
    " attention_bias norm_eps mask length steps batch learning_rate weight_decay every"
    " initial_order".split()
)  # sizes, and how long, on what and from where it is trained


@pytest.mark.parametrize("setting", sorted((MODEL | TRAINING).keys() - NO_PARTS))
def test_parts_and_menu_entries_have_rows(setting):
    required = {
        getattr(settings, setting)
        for name in shipped
        for run in STUDIES[name].runs
        for settings in (run.config, run.training)
        if hasattr(settings, setting)
    }
    approximations = {"gelu_tanh", "geglu_tanh"}  # GELU and GeGLU to three digits
    menu = set((MODEL | TRAINING)[setting].menu or ()) - approximations
    assert len(required) > 1 and menu <= required


def without_search(link: str) -> str:
    """Return a cell's link without the search for learning rates and the number of seeds."""
    return re.sub("&(search|seeds)=[^&]*", "", link)


def find_by_t_test(name: str) -> set[tuple[str, str]]:
    """Return the (task, variant) of a shipped study that differ by a t-test, Holm-corrected."""
    accuracies: dict = {}
    for run in needed_runs(name):
        end = shipped_curves(name).rows(run)[-1]
        accuracies.setdefault((run.task, run.variant), {})[run.seed] = end.accuracy
    significant = set()
    for task in {task for task, _ in accuracies}:
        base = accuracies[task, BASELINE]
        gaps = {
            variant: np.array([values[seed] - base[seed] for seed in values]).round(6)
            for (of, variant), values in accuracies.items()
            if of == task and variant not in (BASELINE, *NULL_ARMS)
        }
        gaps = {variant: gap[~np.isnan(gap)] for variant, gap in gaps.items()}
        corrected = differences(gaps, -1, 1)
        significant |= {(task, variant) for variant, line in corrected.items() if line[-1] < 0.05}
    return significant


def test_parts_are_searched_on_most_informative_task():
    """The task has the largest difference of those that a paired t-test found significant.

    That was the rule when they were chosen. If none was, it has the largest difference of all.
    """
    expected = {}
    for name in set(shipped) - {"own_learning_rates"}:
        significant = find_by_t_test(name)
        for variant, cells in compared(pd.read_csv(table_of(name))).groupby("variant"):
            clear = pd.Series([(task, variant) in significant for task in cells.task], cells.index)
            message = cells[clear] if clear.any() else cells
            link = message.link[message.difference.abs().idxmax()]
            expected[variant] = without_search(link)
    table = compared(pd.read_csv(table_of("own_learning_rates")))
    assert {line.variant: without_search(line.link) for line in table.itertuples()} == expected
    assert set(table.guards) == {"learning rate searched"}


def test_searched_cells_stand_beside_single_rate_cells():
    tables = [pd.read_csv(table_of(name)) for name in shipped]
    searched = compared(tables[-1])
    both = beside_one_rate(tables[-1], tables)
    assert list(dict.fromkeys(both.task)) == [AS_SET, SEARCHED] and len(both) == 2 * len(searched)
    for _, pair in both.groupby("variant"):
        left, right = (pair[pair.task == side].iloc[0] for side in (AS_SET, SEARCHED))
        counterpart = searched[
            (searched.task == right.cell[0]) & (searched.variant == right.cell[1])
        ].iloc[0]
        assert (
            right.variant == f"{counterpart.variant}: {counterpart.task}"
            and right.difference == counterpart.difference
        )
        assert without_search(right.link) == without_search(left.link)
    assert is_sparse(tables[-1]) and not any(map(is_sparse, tables[:-1]))


def test_searched_variant_that_no_other_study_has_comes_last():
    tables = [pd.read_csv(table_of(name)) for name in shipped]
    others = [table[table.variant != "value residual"] for table in tables[:-1]]
    both = beside_one_rate(tables[-1], others)
    assert both.variant.iloc[-1].startswith("value residual: ")
    assert not both.variant[both.task == AS_SET].str.startswith("value residual").any()


def test_picture_matches_table():
    assert (ROOT / "docs" / "ablation_matrix.svg").read_text(encoding="utf-8") == matrix_svg(
        TABLE, style=STYLE
    ) + "\n"
