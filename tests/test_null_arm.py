"""Null arms of a study: the baseline with other seeds or rewritten: its distance is noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from core.experiments.training.plan import BASELINE
from core.study import __main__ as command
from core.study.database.store import Store
from core.study.file import parse
from core.study.picture import describe, matrix_svg
from core.study.plan import NULL, NULL_ARMS, NULL_SEEDS, REWRITTEN, StudyError, pair_seed
from core.study.tables import load_stored, summary_table
from core.study.verdict import study_document
from tests.holm import corrected
from tests.studies import TEXT, fill
from tests.verdict_documents import find_problems

WITH_NULL = TEXT.replace("seeds = 3", "seeds = 5\nnull = true")


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "studies.sqlite"))


def noisy(run) -> float:
    """Return an accuracy that depends on the seed, the initial order and the task alone."""
    is_reversed = run.training.initial_order == "reversed"
    generator = np.random.default_rng([run.seed, len(run.task), is_reversed])
    return round(0.5 + generator.normal(0, 0.05), 6)


def test_null_arms_repeat_the_baseline():
    study = parse(WITH_NULL)
    plain = parse(WITH_NULL.replace("null = true", ""))
    assert study.runs[: len(plain.runs)] == plain.runs
    null = study.runs[len(plain.runs) :]
    assert {(run.task, run.variant, run.seed) for run in null} == {
        (name, variant, first + seed)
        for name in ("copy", "reverse")
        for variant, first in ((NULL, NULL_SEEDS), (REWRITTEN, 0))
        for seed in range(5)
    }
    base = {run.task: run for run in plain.runs if run.variant == BASELINE}
    for run in null:
        assert run.config.with_seed(0) == base[run.task].config.with_seed(0)
        expected = base[run.task].training
        if run.variant == REWRITTEN:
            expected = replace(expected, initial_order="reversed")
        assert run.training == expected
    assert len({run.hash for run in study.runs}) == len(study.runs)


def test_null_arm_of_searched_study_has_every_rate():
    study = parse(WITH_NULL.replace("null = true", 'null = true\nsearch = "three"'))
    rates = {run.training.learning_rate for run in study.runs if run.variant.startswith(BASELINE)}
    base_rates = {
        run.training.learning_rate
        for run in study.runs
        if run.variant == BASELINE or run.variant.startswith("learning rate")
    }
    assert rates == base_rates and len(rates) == 3


def test_null_arm_gets_the_seeds_of_the_first_look():
    study = parse(WITH_NULL.replace("seeds = 5", 'seeds = "3, 5"'))
    null = [run for run in (*study.runs, *study.later) if run.variant in NULL_ARMS]
    assert {pair_seed(run.variant, run.seed) for run in null} == {0, 1, 2} and all(
        run in study.runs for run in null
    )


def test_noise_floor_and_verdict_match_scipy(store):
    study = parse(WITH_NULL)
    table = summary_table(store, fill(store, study, noisy)).set_index(["task", "variant"])
    raw = {}
    for name in ("copy", "reverse"):
        accuracies = {
            variant: [
                noisy(run) for run in study.runs if (run.task, run.variant) == (name, variant)
            ]
            for variant in (BASELINE, *NULL_ARMS)
        }
        floors = []
        for arm in NULL_ARMS:
            gaps = np.subtract(accuracies[arm], accuracies[BASELINE])
            test = stats.ttest_1samp(gaps, 0)
            raw[name, arm] = test.pvalue
            ends = test.confidence_interval(0.95)
            floors.append((ends.high - ends.low) / 2)
            assert table.difference[name, arm] == pytest.approx(gaps.mean())
            assert table.seeds[name, arm] == 5
        for variant in (BASELINE, *NULL_ARMS, "− norm", "1 head"):
            assert table.noise_floor[name, variant] == pytest.approx(max(floors))
    together = dict(zip(raw, corrected(list(raw.values()))))
    for key, p in together.items():
        assert table.p[key] == pytest.approx(p)
    # The variants are corrected for each other alone, as without a null arm.
    plain = parse(WITH_NULL.replace("null = true", "").replace('"made up"', '"plain"'))
    other = summary_table(store, fill(store, plain, noisy)).set_index(["task", "variant"])
    for key in other.index:
        assert table.p[key] == pytest.approx(other.p[key], nan_ok=True)
    assert other.noise_floor.isna().all()


def test_verdicts_of_a_script_have_the_noise_floor(store):
    number = fill(store, parse(WITH_NULL), noisy)
    document = study_document(store, number)
    assert find_problems(document) == []
    table = summary_table(store, number).set_index(["task", "variant"])
    for comparison in document["comparisons"]:
        key = comparison["task"], comparison["variant"]
        assert comparison["noise_floor"] == pytest.approx(table.noise_floor[key])
    assert {comparison["variant"] for comparison in document["comparisons"]} >= set(NULL_ARMS)


def test_matrix_draws_noise_floor(store):
    table = summary_table(store, fill(store, parse(WITH_NULL), noisy))
    svg = matrix_svg(table)
    compared = table[table.variant != BASELINE]
    assert svg.count('class="floor"') == len(compared) and "Noise floor: ±" in svg
    without = matrix_svg(table, intervals=False)
    assert all(arm in svg and arm not in without for arm in NULL_ARMS)
    plain = table.assign(noise_floor=math.nan)
    assert 'class="floor"' not in matrix_svg(plain)


def test_curves_pair_the_null_arm_with_the_baseline(store):
    number = fill(store, parse(WITH_NULL), noisy)
    stored = load_stored(store, number, "copy", list(NULL_ARMS))
    assert stored.plan.seeds == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("arm", NULL_ARMS)
def test_check_fails_for_null_arm_that_differs(arm, store, tmp_path, capsys):
    study = parse(WITH_NULL)
    url = str(tmp_path / "studies.sqlite")
    summary = str(tmp_path / "summary.csv")
    fill(store, study, lambda run: noisy(run) + 0.4 * (run.variant == arm))
    command.main(["export", "made up", "--summary", summary, "--database", url])
    arguments = ["check", "made up", "--with", summary, "--database", url]
    assert command.main(arguments) == command.INCOMPLETE
    assert f"the null arm “{arm}” differs from the baseline" in capsys.readouterr().out
    fill(store, study, noisy)
    command.main(["export", "made up", "--summary", summary, "--database", url])
    assert command.main(arguments) == command.COMPLETE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (WITH_NULL.replace("null = true", 'null = "yes"'), "null is “yes”"),
        (WITH_NULL.replace("seeds = 5", "seeds = [0, 1000000]"), "below 1,000,000"),
        (TEXT + f'"{NULL}" = {{norm = "none"}}\n', "cannot be called"),
        (TEXT + f'"{REWRITTEN}" = {{norm = "none"}}\n', "cannot be called"),
    ],
)
def test_mistakes_with_null_arm_are_named(text, problem):
    with pytest.raises(StudyError) as caught:
        parse(text)
    assert problem in str(caught.value)


def test_null_arm_is_not_called_the_worst_variant(store):
    study = parse(WITH_NULL)
    fill(store, study, lambda run: 0.1 if run.variant in NULL_ARMS else 0.5)
    text = describe(summary_table(store, store.find(study.name)))
    assert "worst variant of each task: " in text
    assert not any(name in text for name in NULL_ARMS)
