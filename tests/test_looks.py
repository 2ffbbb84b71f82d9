"""Looks at more seeds, where a comparison is undecided."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.experiments.training.plan import BASELINE
from core.measure.verdicts import UNDECIDED, Facts, compare_in_looks
from core.study import __main__ as command
from core.study.database.schema import DONE, runs
from core.study.database.store import Store
from core.study.file import parse, read_looks
from core.study.looks import add_next_look, enrol_needed, find_look
from core.study.plan import describe_plan
from core.study.tables import summary_table
from core.train.budget import format_duration
from tests.holm import _t_interval, _t_test, verdict
from tests.studies import TEXT, fill

FACTS = Facts(0.0, 1000)  # every run learnt it
LOOKS = (3, 5, 8)
SEEDS = 'seeds = "3, 5, 8"'


def by_seed(values) -> dict[int, float]:
    return dict(enumerate(values))


def compare_slowly(several: dict, looks) -> dict:
    """Return (mean, low, high, n, p) at the look that decided each: Holm's steps with SciPy."""
    expected = {}
    left = dict(several)
    n_equivalent = 0
    for n in looks:
        gaps = {
            key: np.array([values[seed] - base[seed] for seed in range(n)]).round(6)
            for key, (values, base) in left.items()
        }
        alone = {key: _t_test(gap, FACTS.answers) for key, gap in gaps.items()}
        p = 0.0
        for step, key in enumerate(sorted(alone, key=alone.get)):
            factor = len(looks) * (len(alone) + n_equivalent - step)
            if p < 0.05:
                level = 1 - 0.05 / factor
            p = max(p, min(1.0, factor * alone[key]))
            low, high = _t_interval(gaps[key], level, FACTS.answers)
            expected[key] = gaps[key].mean(), max(-1, low), min(1, high), n, p
        kinds = {
            key: verdict(*expected[key][4:], *expected[key][1:3], FACTS.margin) for key in left
        }
        left = {key: pair for key, pair in left.items() if kinds[key] == UNDECIDED}
        n_equivalent += sum(kind == "equivalent" for kind in kinds.values())
    return expected


def test_one_variant_is_tested_at_a_third_of_the_error_at_each_look():
    generator = np.random.default_rng(3)
    for effect in (0.0, 0.01, 0.03, 0.08):
        values = by_seed(0.5 + effect + generator.normal(0, 0.02, 8))
        base = by_seed(np.full(8, 0.5))
        looked = compare_in_looks({"a": (values, base)}, FACTS, LOOKS)
        gap = looked.differences["a"]
        assert gap.n == looked.seeds["a"]
        expected = compare_slowly({"a": (values, base)}, LOOKS)["a"]
        assert gap[:5] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_decided_variants_keep_their_look():
    base = by_seed([0.9] * 8)
    several = {
        "clear": (by_seed([0.1, 0.11, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9]), base),
        "equal": (by_seed([0.901, 0.9, 0.899, 0.1, 0.1, 0.1, 0.1, 0.1]), base),
        "open": (by_seed([0.88, 0.95, 0.86, 0.93, 0.9, 0.85, 0.96, 0.9]), base),
    }
    facts = FACTS._replace(margin=0.05)
    looked = compare_in_looks(several, facts, LOOKS)
    assert looked.seeds == {"clear": 3, "equal": 3, "open": 8}
    verdicts_by_name = {key: gap.verdict for key, gap in looked.differences.items()}
    assert verdicts_by_name == {"clear": "difference", "equal": "equivalent", "open": UNDECIDED}
    assert [gap.n for gap in looked.differences.values()] == [3, 3, 8]
    # Until the next look is complete, the one before stands.
    for missing in ("open", "baseline"):
        first, second = (dict(side) for side in several["open"])
        del (first if missing == "open" else second)[4]
        partly = compare_in_looks({**several, "open": (first, second)}, facts, LOOKS)
        assert partly.differences["open"].n == 3 and partly.seeds["open"] == 5


def test_variant_that_diverges_gets_no_more_seeds():
    base = by_seed([0.9, 0.91, 0.9])
    several = {"diverges": (by_seed([math.nan] * 3), base)}
    looked = compare_in_looks(several, FACTS, LOOKS)
    assert looked.seeds == {"diverges": 3} and looked.differences["diverges"].n == 0


@given(
    some.lists(
        some.lists(some.integers(400, 600).map(lambda n: n / 1000), min_size=8, max_size=8),
        min_size=2,
        max_size=4,
    )
)
def test_looks_match_scipy(models):
    base, *others = map(by_seed, models)
    several = {index: (model, base) for index, model in enumerate(others)}
    looked = compare_in_looks(several, FACTS, LOOKS)
    expected = compare_slowly(several, LOOKS)
    assert list(looked.differences) == list(several)
    if all(not abs(line[-1] - 0.05) < 1e-6 for line in expected.values()):
        for key, gap in looked.differences.items():
            assert gap[:5] == pytest.approx(expected[key], rel=1e-6, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("5, 10, 20", (5, 10, 20)),
        ("3,4", (3, 4)),
        ("5", ()),
        ("2, 5", ()),
        ("10, 5", ()),
        ("5, 5", ()),
        ("5, 200", ()),
        ("3, 4, 5, 6, 7, 8", ()),
        ("5, ten", ()),
        (5, ()),
        (None, ()),
    ],
)
def test_looks_are_read(text, looks):
    assert read_looks(text) == looks


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "studies.sqlite"))


def study_with_looks():
    return parse(TEXT.replace("seeds = 3", SEEDS))


def fill_look(store, study, outcome) -> int:
    """Store the results of all runs that the study needs now. Return its id."""
    number = enrol_needed(store, study).study
    wanted = {run.hash for run in store.runs(number, spec=False)}
    runs = tuple(run for run in (*study.runs, *study.later) if run.hash in wanted)

    fill(store, replace(study, runs=runs), outcome)
    return number


def test_expected_times_follow_the_pace_of_finished_runs(store):
    study = study_with_looks()
    assert store.stored(study).pace == store.pace() == 1
    noise = {run.hash: random.Random(run.hash).random() for run in study.runs}
    number = fill_look(store, study, lambda run: noise[run.hash])
    seconds = {}
    for pace in (1, 3):
        with store.writing() as connection:
            connection.execute(runs.update().values(seconds=pace * runs.c.expected))
        seconds[pace] = find_look(store, number).seconds
    assert seconds[3] == pytest.approx(3 * seconds[1]) and seconds[1] > 0
    stored = store.stored(study)
    assert stored.pace == pytest.approx(3)
    alone = sum(run.expected for run in study.later)
    assert f"{format_duration(3 * alone)} more on 1 worker" in describe_plan(study, 1, stored)


def test_study_trains_more_seeds_only_where_it_is_undecided(store):
    study = study_with_looks()
    models = {run.variant for run in study.runs}
    assert {run.seed for run in study.runs} == {0, 1, 2}
    assert {run.seed for run in study.later} == {3, 4, 5, 6, 7}
    noisy = {0: 0.5, 1: 0.62, 2: 0.41, 3: 0.55, 4: 0.48, 5: 0.6, 6: 0.5, 7: 0.44}

    def outcome(run) -> float:
        if run.task == "copy" and run.variant == "1 head":
            return noisy[run.seed]
        if run.variant == "− norm":
            return 0.1 + run.seed / 1000
        return 0.5 + run.seed / 10_000

    number = fill_look(store, study, outcome)
    assert len(store.runs(number)) == 3 * 2 * len(models)
    assert add_next_look(store, number) and not add_next_look(store, number)
    looked = find_look(store, number)
    assert (looked.look, looked.compared, looked.undecided, looked.runs) == (2, 4, 1, 6)
    assert "3 of 4 comparisons decided" in looked.describe()
    more = [run for run in store.runs(number, spec=False) if run.seed > 2]
    assert {(run.task, run.variant, run.seed) for run in more} == {
        ("copy", name, seed) for name in (BASELINE, "1 head") for seed in (3, 4)
    }
    fill_look(store, study, outcome)
    fill_look(store, study, outcome)
    table = summary_table(store, number).set_index(["task", "variant"])
    assert table.seeds["copy", "1 head"] == 8 and table.seeds["copy", "− norm"] == 3
    assert table.verdict["copy", "1 head"] == UNDECIDED
    assert table.verdict["copy", "− norm"] == "difference"
    last = find_look(store, number)
    assert last.look == 3 and last.runs == 0 and "last look" in last.describe()
    assert not add_next_look(store, number)


def test_stopped_study_gets_no_more_seeds(store):
    study = study_with_looks()
    number = fill_look(store, study, lambda run: "stopped" if run.seed == 2 else 0.5)
    assert not add_next_look(store, number)


def test_command_trains_look_after_look(tmp_path, capsys, monkeypatch):
    """One step of training: nothing is learnt, so models stay undecided or are equivalent."""
    monkeypatch.chdir(tmp_path)
    text = TEXT.replace("seeds = 3", 'seeds = "3, 4"\nmargin = 0.1').replace(
        "steps = 40", "steps = 2"
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    database = ["--database", "looks.sqlite"]
    assert command.main(["run", "study.toml", "--workers", "1", *database]) == command.COMPLETE
    assert "Look " in capsys.readouterr().out
    store = Store("looks.sqlite")
    number = store.find("made up")
    runs = store.runs(number, spec=False)
    assert {run.state for run in runs} == {DONE}
    found = find_look(store, number)
    undecided = {
        (line.task, line.variant)
        for line in summary_table(store, number).itertuples()
        if line.verdict == UNDECIDED
    }
    assert found.undecided == len(undecided) and found.runs == 0
    fourth = {(run.task, run.variant) for run in runs if run.seed == 3}
    assert undecided <= fourth and fourth and {run.seed for run in runs} == {0, 1, 2, 3}
