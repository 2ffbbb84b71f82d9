"""A study's tables, progress, links and picture, against plain pandas, NumPy and SciPy.

The stored values serve as a reference, too.
"""

import json
import math
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as some
from scipy import stats
from sqlalchemy import update

from core.experiments.training import results, sentences
from core.experiments.training.plan import BASELINE, Trial, otherwise
from core.experiments.training.plan import plan as planned
from core.model.variants import lineup
from core.settings import process
from core.settings.device import Machine
from core.settings.process import new_owner
from core.settings.setting import ConfigError
from core.study import tables
from core.study.__main__ import Agreement, compare_summaries
from core.study.database import schema
from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING, STOPPED
from core.study.database.store import Report, Store, progress_of
from core.study.file import parse
from core.study.file import read as read_file
from core.study.picture import describe_cell, matrix_svg
from core.study.plan import SETTINGS, TaskSetup, is_null, plan_arms, plan_runs
from core.study.tables import compare_studies, load_stored, row_table, run_table, summary_table
from core.study.training_link import read_query
from core.tasks import task
from core.train import Row, Training
from core.train.settings import Learner, Removed
from core.workers.pool import ProcessPool
from tests.databases import database, postgresql  # noqa: F401  (fixtures)
from tests.holm import verdicts
from tests.studies import TEXT, fill, rows_of, study

NAN = math.nan
ROOT = Path(__file__).parent.parent
SCATTERED = study(old="seeds = 3", new="seeds = [17, 3, 0, 1000]")
HERE = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def score(run) -> float:
    """Return a synthetic accuracy, different for each run."""
    return round(0.5 + 0.3 * math.sin(len(run.variant) * 7 + len(run.task) + run.seed), 3)


def is_close(first: float, other: float) -> bool:
    return (math.isnan(first) and math.isnan(other)) or first == pytest.approx(
        other, rel=1e-6, abs=1e-9
    )


def student(values, low: float, high: float) -> tuple[float, float, float, int]:
    """Return mean and 95 % interval by SciPy, clipped to possible values."""
    values = np.array([value for value in values if not math.isnan(value)])
    if len(values) == 0:
        return NAN, NAN, NAN, 0
    mean = values.mean()
    if len(values) == 1:
        return mean, NAN, NAN, 1
    if np.ptp(values) == 0:
        return mean, values[0], values[0], len(values)
    ends = stats.t.interval(0.95, len(values) - 1, loc=mean, scale=stats.sem(values))
    return mean, max(low, ends[0]), min(high, ends[1]), len(values)


def compare(pairs: dict, study_) -> dict:
    """Return verdicts on pairs of one task, computed with SciPy.

    Args:
        pairs: (task, variant) -> (values, base).
        study_: Study that says what the task is.
    """
    name = next(iter(pairs))[0]
    training = next(run.training for run in study_.runs if run.task == name)
    return verdicts(pairs, *results.facts_of(training))


OUTCOMES = some.one_of(
    some.integers(0, 200).map(lambda n: n / 200),
    some.sampled_from([0.5, 1.0, NAN, QUEUED, RUNNING, FAILED, STOPPED]),
)


def ends(study_) -> some.SearchStrategy:
    """Draw an outcome for every run of a study: any, or the same for all."""
    count = len(study_.runs)
    return some.one_of(
        some.lists(OUTCOMES, min_size=count, max_size=count),
        OUTCOMES.map(lambda outcome: [outcome] * count),
    )


def by_run(study_, outcomes):
    actual = {run.hash: outcome for run, outcome in zip(study_.runs, outcomes)}
    return lambda run: actual[run.hash]


def accuracies(study_, outcomes) -> dict:
    """Return {(task, variant): {seed: accuracy}}, NaN where there is none."""
    built = {}
    for run, outcome in zip(study_.runs, outcomes):
        built.setdefault((run.task, run.variant), {})[run.seed] = (
            NAN if isinstance(outcome, str) else outcome
        )
    return built


# The summary


def check_summary(table, study_, outcomes):
    values = accuracies(study_, outcomes)
    assert list(zip(table.task, table.variant)) == list(values)
    off_by = {}
    for name in {name for name, _ in values}:
        several = [cell for cell in values if cell[0] == name and cell[1] != BASELINE]
        base = values[name, BASELINE]
        off_by |= compare({cell: (values[cell], base) for cell in several}, study_)
    for line in table.itertuples():
        cell = (line.task, line.variant)
        outcomes_of_line = [
            (run, end) for run, end in zip(study_.runs, outcomes) if (run.task, run.variant) == cell
        ]
        mean = student(values[cell].values(), 0, 1)
        assert all(map(is_close, (line.accuracy, line.low, line.high, line.seeds), mean))
        off = off_by.get(cell, (NAN, NAN, NAN, 0, NAN))
        assert all(
            map(is_close, (line.difference, line.difference_low, line.difference_high), off)
        ), cell
        assert is_close(line.p, off[4])
        lost = [end for _, end in outcomes_of_line if not isinstance(end, str) and math.isnan(end)]
        assert line.diverged == len(lost) and line.missing == sum(
            isinstance(end, str) for _, end in outcomes_of_line
        )
        took = [1.0 + run.seed for run, end in outcomes_of_line if not isinstance(end, str)]
        assert is_close(line.seconds, np.mean(took) if took else NAN)
        run = outcomes_of_line[0][0]
        learnt = task[run.training.task]
        assert (line.of, line.steps, line.chance, line.best) == (
            run.training.task,
            run.training.steps,
            learnt.chance,
            learnt.best,
        )


@HERE
@given(ends(SCATTERED))
@example([0.5] * len(SCATTERED.runs))
@example([NAN] * len(SCATTERED.runs))
@example([QUEUED] * len(SCATTERED.runs))
@example([0.9 if run.seed == 17 else QUEUED for run in SCATTERED.runs])
@example([NAN if run.variant == BASELINE else 0.25 for run in SCATTERED.runs])
def test_study_summary_matches_numpy_and_scipy(store, outcomes):
    number = fill(store, SCATTERED, by_run(SCATTERED, outcomes))
    check_summary(summary_table(store, number), SCATTERED, outcomes)


def test_summary_is_equal_on_all_databases(database):  # noqa: F811
    store_ = Store(database)
    ends_ = [score(run) for run in SCATTERED.runs]
    ends_[4] = NAN
    ends_[9] = FAILED
    number = fill(store_, SCATTERED, by_run(SCATTERED, ends_))
    check_summary(summary_table(store_, number), SCATTERED, ends_)
    store_.close()


# Runs and rows


def test_tables_have_all_stored_numbers(database):  # noqa: F811
    store_ = Store(database)
    ends_ = [
        [0.25, NAN, RUNNING, QUEUED, FAILED, STOPPED][n % 6] for n in range(len(SCATTERED.runs))
    ]
    number = fill(store_, SCATTERED, by_run(SCATTERED, ends_))
    runs_ = run_table(store_, number)
    rows_ = row_table(store_, number)
    store_.close()
    assert list(rows_.columns) == ["run", "task", "variant", "seed", *Row._fields]
    assert (
        not set(runs_.columns) & {"owner", "heartbeat", "id", "study", "wanted"}
        and runs_.run.is_unique
    )
    names = {
        itertuple.run: (itertuple.task, itertuple.variant, itertuple.seed)
        for itertuple in runs_.itertuples()
    }
    assert list(names.values()) == [(run.task, run.variant, run.seed) for run in SCATTERED.runs]
    for run, outcome, line in zip(SCATTERED.runs, ends_, runs_.itertuples()):
        rows_of_run = rows_[rows_.run == line.run]
        expected = [] if outcome == QUEUED else rows_of(run, outcome)
        actual = [Row(*item) for item in rows_of_run[list(Row._fields)].itertuples(index=False)]
        assert repr(actual) == repr(expected)
        assert set(zip(rows_of_run.task, rows_of_run.variant, rows_of_run.seed)) <= {
            names[line.run]
        }
        if isinstance(outcome, str):
            state = outcome
        else:
            state = DIVERGED if math.isnan(outcome) else DONE
        assert (line.state, line.hash, line.spec, line.steps) == (state, run.hash, run.spec, 40)
        assert line.step == (expected[-1].step if expected else 0)


# Two studies, and one at two times


@HERE
@given(ends(SCATTERED), ends(SCATTERED))
@example([0.5] * len(SCATTERED.runs), [0.5] * len(SCATTERED.runs))
def test_comparison_matches_scipy_on_common_seeds(store, ours, theirs):
    other = study(
        "other",
        text=TEXT.replace("seeds = 3", "seeds = [3, 17, 2000]")
        .replace('"1 head" = {n_heads = 1}', "")
        .replace('["copy", "reverse"]', '["reverse", "facts"]')
        + "new = {scale = false}\n[task.reverse]\nsteps = 30\n",
    )
    theirs = theirs[: len(other.runs)]
    number = fill(store, SCATTERED, by_run(SCATTERED, ours))
    two = fill(store, other, by_run(other, theirs))
    actual = compare_studies(store, number, two)
    first = accuracies(SCATTERED, ours)
    second = accuracies(other, theirs)
    assert list(zip(actual.task, actual.variant)) == [("reverse", BASELINE), ("reverse", "− norm")]
    shared_by = {
        name: {seed: first[name][seed] for seed in (3, 17)}
        for name in zip(actual.task, actual.variant)
    }
    pairs = {name: (shared, second[name]) for name, shared in shared_by.items()}
    off_by = compare(pairs, SCATTERED)
    for line in actual.itertuples():
        his = second[line.task, line.variant]
        shared = shared_by[line.task, line.variant]
        off = off_by[line.task, line.variant]
        accuracies_of_cell = first[line.task, line.variant]
        assert all(map(is_close, (line.difference, line.low, line.high, line.seeds, line.p), off))
        both = [seed for seed in shared if not math.isnan(accuracies_of_cell[seed] - his[seed])]
        assert is_close(
            line.accuracy, student([accuracies_of_cell[seed] for seed in both], 0, 1)[0]
        )
        assert is_close(line.other_accuracy, student([his[seed] for seed in both], 0, 1)[0])
        assert line.settings == "differ"
    back = compare_studies(store, two, number)
    assert all(map(is_close, back.difference, -actual.difference)) and all(
        map(is_close, back.p, actual.p)
    )


@pytest.fixture
def summary(store):
    number = fill(
        store,
        SCATTERED,
        lambda run: NAN if (run.task, run.variant) == ("copy", "− norm") else score(run),
    )
    return summary_table(store, number)


@pytest.mark.parametrize("end", ["low", "high"])
@pytest.mark.parametrize("accuracy", range(6))
def test_cell_agrees_within_its_interval(summary, accuracy, end):
    line = summary.loc[accuracy]
    has_difference = not math.isnan(line.difference_low)
    value, prefix = ("difference", "difference_") if has_difference else ("accuracy", "")
    if math.isnan(line[value]):
        pytest.raises(
            AssertionError, lambda: check(summary, accuracy, value, 0.5, True)
        )  # it had diverged
        return
    edge = line[prefix + end]
    sign = -1 if end == "low" else 1
    check(summary, accuracy, value, edge + sign * 0.009, True)
    check(summary, accuracy, value, edge + sign * 0.011, False)
    check(summary, accuracy, value, NAN, False)


def check(summary, index, column, value, agrees):
    now = summary.copy()
    now.loc[index, column] = value
    actual = compare_summaries(now, summary)
    line = now.loc[index]
    assert (actual.cells, actual.same, len(actual.off)) == (6, 5, 0 if agrees else 1)
    assert agrees or actual.off[0].startswith(f"{line.task}, {line.variant}: ")


def test_cells_that_appear_vanish_or_diverge_are_named(summary):
    actual = compare_summaries(summary, summary.drop(index=[1]))
    assert actual == Agreement(5, 5, [], new=("copy, − norm",)) and not actual.agrees
    actual = compare_summaries(summary.drop(index=[3]), summary)
    assert actual == Agreement(5, 5, [], missing=("reverse, baseline",)) and not actual.agrees
    now = summary.copy()
    now.loc[5, "diverged"] = 1  # of the same numbers, one seed fewer
    assert compare_summaries(now, summary) == Agreement(6, 5, [])
    now.loc[5, ["difference", "difference_low", "difference_high", "accuracy"]] = NAN
    actual = compare_summaries(now, summary)
    assert actual.same == 5 and actual.off[0].startswith(
        "reverse, 1 head: accuracy has no value now, "
    )
    assert "nan" not in actual.off[0]


# As a comparison of the page "Training"


def test_stored_runs_have_common_seeds(store):
    def outcome(run):
        if (run.variant, run.seed) == ("1 head", 17):
            return QUEUED
        return FAILED if run.seed == 3 else score(run)

    number = fill(store, SCATTERED, outcome)
    actual = load_stored(store, number, "reverse", ["1 head"])
    assert actual.plan.seeds == [0, 3, 1000] and actual.notes == ()
    assert [(arm.name, arm.colour) for arm in actual.plan.arms] == [(BASELINE, 0), ("1 head", 1)]
    for run in SCATTERED.runs:
        if run.task == "reverse" and run.variant != "− norm" and run.seed != 17:
            outcome = FAILED if run.seed == 3 else score(run)
            assert repr(actual.runs[run.variant, run.seed]) == repr(rows_of(run, outcome))
    assert len(actual.runs) == 6
    alone = load_stored(store, number, "reverse", [])
    assert alone.plan.seeds == [0, 3, 17, 1000] and [arm.name for arm in alone.plan.arms] == [
        BASELINE
    ]


@pytest.mark.parametrize("seeds", [[0], [5], [0, 2**31 - 1], [9, 1, 5], list(range(40))])
def test_stored_numbers_give_training_page_texts(store, seeds):
    parsed = study(old="seeds = 3", new=f"seeds = {seeds}")
    number = fill(
        store,
        parsed,
        lambda run: NAN if (run.variant, run.seed) == ("− norm", seeds[0]) else score(run),
    )
    actual = load_stored(store, number, "copy", ["1 head", "− norm"])
    table = summary_table(store, number)
    lines = table[table.task == "copy"].set_index("variant")
    theirs = results.summary(actual.runs, actual.plan).set_index("variant")
    for name in ["accuracy", "low", "high", "difference", "difference_low", "difference_high", "p"]:
        for variant in lines.index:
            assert is_close(theirs.loc[variant, name], lines.loc[variant, name]), (variant, name)
    assert list(theirs.seeds) == list(lines.loc[theirs.index].seeds)
    assert theirs.diverged.to_dict() == lines.diverged.to_dict()
    sentence = sentences.describe_finding(actual.runs, actual.plan)
    assert f"− norm diverged at step 21, seed {seeds[0]}" in sentence
    assert len(results.every_row(actual.runs, actual.plan)) == 9 * len(seeds)
    for arm in actual.plan.arms:
        steps = [
            step
            for step, _ in results.values_by_step(actual.runs, actual.plan, arm.name, "accuracy")
        ]
        assert steps == ([1, 20] if arm.name == "− norm" and len(seeds) == 1 else [1, 20, 40])


# How far it is


@pytest.mark.parametrize(
    ("outcomes", "words", "true"),
    [
        ([0.5] * 17 + [NAN], "18 runs: 17 done, 1 diverged", {"complete"}),
        ([QUEUED] * 18, "18 runs: 18 queued", {"queued", "open"}),
        ([0.5] * 17 + [STOPPED], "18 runs: 17 done, 1 stopped", {"open"}),
        ([0.5] * 17 + [FAILED], "18 runs: 17 done, 1 failed", {"open"}),
    ],
)
def test_study_progress_is_counted(store, outcomes, words, true):
    actual = progress_of(store, fill(store, study(), by_run(study(), outcomes)))
    assert actual.describe() == words and actual.n_runs == 18 and actual.lost == 0
    assert {
        name for name in ("complete", "running", "queued", "open") if getattr(actual, name)
    } == true
    assert actual.n_ended == sum(end not in (QUEUED, STOPPED) for end in outcomes)


def test_run_is_lost_when_process_is_dead_or_silent(store):
    number = fill(store, study(), lambda run: RUNNING)
    actual = progress_of(store, number)
    assert actual.running and actual.lost == 0 and not actual.open
    host, _, name = new_owner().split("|")
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    of_seed = update(schema.runs).where(schema.runs.c.seed == 0)
    with store.writing() as connection:
        connection.execute(of_seed.values(owner=f"{host}|{child.pid}|{name}"))
    actual = progress_of(store, number)
    assert actual.lost == 6 and actual.running and actual.open
    with store.writing() as connection:
        connection.execute(update(schema.runs).values(heartbeat=time.time() - process.STALE - 1))
    actual = progress_of(store, number)
    assert actual.lost == 18 and not actual.running and actual.open and not actual.complete


# Stop, delete, and when what is stored is another


def test_stop_ends_what_is_going_and_leaves_every_result(database):  # noqa: F811
    store_ = Store(database)
    stopped = study()
    other = study("other")
    ends_ = [[0.5, RUNNING, QUEUED, STOPPED, FAILED, NAN][n % 6] for n in range(18)]
    number = fill(store_, stopped, by_run(stopped, ends_))
    second = fill(store_, other, by_run(other, ends_))
    before = store_.runs(second)
    rows = store_.rows(number)
    assert store_.stop(number) == 6
    assert progress_of(store_, number).counts == {DONE: 3, DIVERGED: 3, FAILED: 3, STOPPED: 9}
    assert store_.runs(second) == before and repr(store_.rows(number)) == repr(rows)
    assert store_.stop(number) == 0 and store_.claim(number, "me|1|a", 9) == []
    running = [run.id for run, end in zip(store_.runs(number), ends_) if end == RUNNING]
    report = [Report(run, DONE, [Row(40, 0.1, 1.0, 1.0, 1.0, 1.0)], 40) for run in running]
    # The returned numbers say which runs it lost; nothing is written.
    assert store_.store_reports("another machine|1|made-up", report) == set(running)
    assert repr(store_.rows(number)) == repr(rows)
    assert store_.requeue(number) == 12 and progress_of(store_, number).counts[QUEUED] == 12
    store_.close()


def test_deleting_study_never_reuses_its_number(database):  # noqa: F811
    store_ = Store(database)
    first = fill(store_, study(), score)
    second = fill(store_, study("other"), score)
    ids = {run.id for number in (first, second) for run in store_.runs(number)}
    runs_ = store_.runs(first)
    rows_ = store_.rows(first)
    store_.delete(second)
    assert store_.find("other") is None and [study.id for study in store_.studies()] == [first]
    assert store_.runs(second) == [] and store_.rows(second) == [] and store_.results(second) == {}
    with store_.reading() as connection:  # nothing stays behind that nobody could reach
        assert connection.exec_driver_sql("SELECT count(*) FROM runs").scalar() == len(runs_)
        assert connection.exec_driver_sql("SELECT count(*) FROM rows").scalar() == len(rows_)
    assert store_.runs(first) == runs_ and store_.rows(first) == rows_
    third = store_.enrol(study("other")).study
    assert third > second and not ids & {run.id for run in store_.runs(third)}
    assert {run.state for run in store_.runs(third)} == {QUEUED}
    store_.delete(third)
    store_.delete(third)  # twice is once
    store_.close()


@pytest.fixture(scope="module")
def workers():
    pool = ProcessPool(1)
    yield pool
    pool.close()


def changes_of_a_store(number):
    """Return changes of a store by name, each with whether the summary changes."""
    done = Row(40, 0.5, 0.75, 1.0, 0.01, 0.003)

    def end(state, rows):
        def act(store):
            run = store.runs(number, RUNNING)[0]
            store.store_reports("another machine|1|made-up", [Report(run.id, state, rows, 40, 2.0)])

        return act

    return {
        "a beat": (end(RUNNING, []), False),
        "a row": (end(RUNNING, [Row(30, 0.5, 0.5, 1.0, 0.01, 0.003)]), False),
        "an end": (end(DONE, [done]), True),
        "a divergence": (end(DIVERGED, []), True),
        "a stop": (lambda store: store.stop(number), None),
        "fewer seeds": (lambda store: store.enrol(study(old="seeds = 3", new="seeds = 2")), True),
        "more seeds": (lambda store: store.enrol(study(old="seeds = 3", new="seeds = 4")), True),
        "another name": (lambda store: store.enrol(study(old='"1 head"', new='"one head"')), True),
        "another order": (
            lambda store: store.enrol(study(old='["copy", "reverse"]', new='["reverse", "copy"]')),
            True,
        ),
        "another study": (lambda store: fill(store, study("other"), score), False),
        "the same again": (lambda store: store.enrol(study()), False),
    }


@pytest.mark.parametrize("change", changes_of_a_store(1))
def test_stamp_changes_with_summary(database, change):  # noqa: F811
    store_ = Store(database)
    number = fill(
        store_, study(), lambda run: RUNNING if (run.task, run.seed) == ("copy", 1) else score(run)
    )
    act, differs = changes_of_a_store(number)[change]
    stamp = store_.stamp(number)
    table = summary_table(store_, number)
    assert store_.stamp(number) == stamp
    act(store_)
    if differs is not None:
        assert summary_table(store_, number).equals(table) != differs
        assert (store_.stamp(number) != stamp) == differs
    store_.close()


# Links to the page "Training"


def open_link(text: str):
    """Return the plan that the page "Training" would train; fail where the page would complain."""
    params = dict(parse_qsl(urlsplit(text).query, keep_blank_values=True, strict_parsing=True))
    settings, problems = zip(
        *(kind.read(params) for kind in (Training, Learner, Machine, Removed, Trial))
    )
    assert not any(problems), problems
    training, learner, machine, pins, trial = settings
    definition = {name for kind in settings for name in kind.settings()}
    assert set(params) <= definition
    variants, left_out = lineup(learner.plain(), pins, padding=0)
    plan, not_combined = planned(variants, training, trial, machine)
    assert left_out == not_combined == []
    return plan


def linked(runs_, baseline) -> str:
    return tables.link(
        runs_[0].spec, baseline[0].spec if baseline else None, [run.seed for run in runs_]
    )


def opens(runs_, baseline) -> None:
    """Assert that a cell's link opens its trainings, if possible with the baseline."""
    first = runs_[0]
    plan = open_link(linked(runs_, baseline))
    assert plan.trial.match == "nothing" and not plan.trial.together
    assert (plan.arms[-1].training or plan.training) == first.training
    configs = [arm.config.replace(seed=0) for arm in plan.arms]
    assert configs[-1] == first.config.replace(seed=0)
    max_seeds = Trial.settings()["seeds"].high
    seeds = [run.seed for run in runs_]
    assert plan.seeds == list(range(min(seeds), min(max(seeds), min(seeds) + max_seeds - 1) + 1))
    assert plan.machine == first.machine
    if baseline and len(configs) == 2:
        assert (
            configs[0] == baseline[0].config.replace(seed=0)
            and plan.training == baseline[0].training
        )
    else:
        assert len(configs) == 1


@pytest.fixture(scope="module")
def matrix():
    return read_file(ROOT / "studies" / "ablation_matrix.toml")


def test_runs_of_ablation_matrix_open_from_links(matrix):
    cells = {}
    for run in matrix.runs:
        cells.setdefault((run.task, run.variant), []).append(run)
    for (name, variant), several in cells.items():
        first = cells[name, BASELINE]
        opens(several, first)
        # A null arm has the baseline's parts: seeds or order differ, which a link states once.
        alone = variant == BASELINE or is_null(variant)
        assert len(open_link(linked(several, first)).arms) == (1 if alone else 2)
        for run in several:
            opens([run], [first[0]])


def values_of(name: str) -> some.SearchStrategy:
    setting = SETTINGS[name]
    if setting.kind is bool:
        return some.booleans()
    if setting.menu:
        return some.sampled_from(list(setting.menu))
    if setting.kind is int:
        return some.integers(int(setting.low), int(min(setting.high, 64)))
    return some.one_of(
        some.sampled_from([0.012, 1e-05, 0.1 + 0.2, 0.5]), some.floats(setting.low, setting.high)
    ).filter(lambda value: setting.low <= value <= setting.high)


CHANGES = some.lists(some.sampled_from(sorted(SETTINGS)), max_size=4, unique=True).flatmap(
    lambda names: some.fixed_dictionaries({name: values_of(name) for name in names})
)


@settings(max_examples=60)
@given(
    some.sampled_from(list(task)),
    CHANGES,
    CHANGES,
    some.lists(some.integers(0, 60), min_size=1, max_size=4, unique=True),
)
@example("reverse", {}, {"d_head": 7}, [0])
@example("reverse", {"d_head": 8}, {"init": "xavier", "n_heads": 1}, [3])
@example("facts", {"learning_rate": 0.012, "steps": 77}, {"learning_rate": 1e-05}, [0, 1])
@example("induction", {"d_model": 128, "n_heads": 1}, {"dropout": 1e-05}, [1])
@example("copy", {"d_ff": 100}, {"d_model": 64, "d_ff": 256}, [1])
def test_any_variant_opens_from_its_link(name, base, changes, seeds):
    try:
        variants, _ = plan_arms(TaskSetup("named", name, base), {"changed": changes})
    except ConfigError:
        assume(False)
    trained = plan_runs({"named": variants}, seeds, Machine(device="cpu"))
    first = [run for run in trained if run.variant == BASELINE]
    opens(first, first)
    several = [run for run in trained if run.variant == "changed"]
    if several:
        opens(several, first)
        opens(several, [])


# The picture

SVG = "{http://www.w3.org/2000/svg}"


def read_cells(svg: str):
    """Return (title, words, href) of a picture's cells by row; None where nothing was trained."""
    built = []
    for item in ElementTree.fromstring(svg):
        if item.tag in (SVG + "a", SVG + "g"):
            words = [text.text for text in item.iter(SVG + "text")]
            built.append((item.find(SVG + "title").text, words, item.get("href")))
    return built


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(" %", ""))


@HERE
@given(ends(SCATTERED))
@example([NAN if run.seed == 3 else 0.5 for run in SCATTERED.runs])
@example([NAN if run.variant == BASELINE else 0.25 for run in SCATTERED.runs])
@example([NAN if (run.variant == BASELINE) == (run.seed == 3) else 0.25 for run in SCATTERED.runs])
@example([0.5 + 1e-5 * (run.variant == BASELINE) for run in SCATTERED.runs])
def test_picture_description_matches_table(store, outcomes):
    table = summary_table(store, fill(store, SCATTERED, by_run(SCATTERED, outcomes)))
    cells = read_cells(matrix_svg(table, links=True))
    lines = [
        line
        for variant in (BASELINE, "− norm", "1 head")
        for line in table[table.variant == variant].itertuples()
    ]
    assert len(cells) == len(lines) == 6
    for line, (title, words, href) in zip(lines, cells):
        assert title == describe_cell(line) and title.startswith(f"{line.task}, {line.variant}: ")
        assert read_query(href) == read_query(line.link)
        base = line.variant == BASELINE
        value, low, high = (
            (line.accuracy, line.low, line.high)
            if base
            else (
                line.difference,
                line.difference_low,
                line.difference_high,
            )
        )
        assert (
            f" {line.diverged} of {line.diverged + line.seeds} seeds diverged." in title
            or not line.diverged
        )
        assert f" {line.missing} not trained yet." in title or not line.missing
        if math.isnan(value):
            nothing = "diverged" if line.diverged else "…"
            assert words == [nothing if math.isnan(line.accuracy) else "no baseline"]
            continue
        is_equivalent = line.verdict == "equivalent"
        assert (
            is_equivalent
            == (words[0] == "=")
            == (not base and -line.margin < low and high < line.margin and line.p >= 0.05)
        )
        words = words[is_equivalent:]
        assert (
            number(words[0]) == pytest.approx(100 * value, abs=0.0501) and ("%" in words[0]) == base
        )
        if line.diverged:
            assert words[1:] == [f"{line.diverged} of {line.diverged + line.seeds} diverged"]
        elif line.two_groups or (not math.isnan(line.p) and math.isnan(low)):
            assert words[1:] == [f"{line.learnt} of {line.seeds} learnt"]
            assert f"{line.learnt} of {line.seeds} runs learnt it (" in title
        elif math.isnan(low) or low == high:
            assert words[1:] == []
            if not base and low == high:  # no noise, so nothing is said to be lost in it
                assert "on every seed" in title and "significant" not in title and "CI" not in title
        else:
            assert [number(word) for word in words[1].split(" to ")] == pytest.approx(
                [100 * low, 100 * high], abs=0.0501
            )


@pytest.mark.parametrize("kind", [kind_name for kind_name in otherwise if kind_name != "nothing"])
def test_training_variants_open_beside_baseline(kind):
    changes = ", ".join(f"{name} = {json.dumps(value)}" for name, value in otherwise[kind].items())
    text = TEXT.replace('["copy", "reverse"]', '["copy"]').replace(
        "steps = 40", 'steps = 40\nwarmup = 5\ndecay = "linear"'
    )
    parsed = parse(text + f'"other way" = {{{changes}}}\n')
    cells = {}
    for run in parsed.runs:
        cells.setdefault(run.variant, []).append(run)
    opens(cells["other way"], cells[BASELINE])
    plan = open_link(linked(cells["other way"], cells[BASELINE]))
    assert plan.trial.otherwise == kind and [arm.name for arm in plan.arms] == [
        BASELINE,
        otherwise.label(kind),
    ]
    assert {run.config.replace(seed=0) for run in parsed.runs if run.variant == BASELINE} == {
        plan.arms[0].config.replace(seed=0)
    }
