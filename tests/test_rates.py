"""Effects split into learning rate and part, and sensitivity: plain loops over made-up runs."""

import math

import numpy as np
import pytest
from scipy import stats

from core.study.file import parse
from core.study.plan import NULL_ARMS
from core.study.rates import (
    describe_range,
    describe_split,
    format_split,
    measure_rates,
    rate_table,
    shipped_rates,
)
from core.study.shipped import name_in_links
from tests.studies import TEXT, fill, late_loss
from tests.test_studies_page import good, opened, store, texts, url  # noqa: F401

SEARCHED = TEXT.replace("seeds = 3", 'seeds = 4\nsearch = "three"\nnull = true')
FIRST_LOSS = 3.0  # of the made-up rows


def score(run) -> float:
    """Return a made-up accuracy that depends on variant, seed and learning rate."""
    return round(0.5 + 0.4 * math.sin(len(run.variant) + 7 * run.seed + 1000 * late_loss(run)), 4)


@pytest.fixture
def lines(store):  # noqa: F811
    return measure_rates(store, fill(store, parse(SEARCHED), score))


def rates_of(task, variant):
    """Return {seed: {rate: run}} of a model of the made-up study, by its settings."""
    changes = {"baseline": {}, "− norm": {"norm": "none"}, "1 head": {"n_heads": 1}}[variant]
    grids = {}
    for run in parse(SEARCHED).runs:
        is_plain = not run.variant.startswith(NULL_ARMS) and run.task == task
        expected = {"norm": "LayerNorm", "n_heads": 2} | changes
        if is_plain and all(getattr(run.config, key) == value for key, value in expected.items()):
            grids.setdefault(run.seed, {})[run.training.learning_rate] = run
    assert {len(grid) for grid in grids.values()} == {3}
    return grids


def test_effects_are_those_of_plain_loops(lines):
    assert [(line.task, line.variant) for line in lines] == [
        (task, variant) for task in ("copy", "reverse") for variant in ("− norm", "1 head")
    ]
    for line in lines:
        several = rates_of(line.task, line.variant)
        base = rates_of(line.task, "baseline")
        set_rate = sorted(base[0])[1]
        as_set = []
        tuned = []
        for seed in range(4):
            best = [
                min(
                    grid[seed].values(),
                    key=lambda run: (late_loss(run), run.training.learning_rate),
                )
                for grid in (several, base)
            ]
            as_set.append(score(several[seed][set_rate]) - score(base[seed][set_rate]))
            tuned.append(score(best[0]) - score(best[1]))
        assert line.as_set.mean == pytest.approx(np.mean(as_set))
        assert line.part.mean == pytest.approx(np.mean(tuned))
        rate = np.subtract(as_set, tuned)
        assert line.rate.mean == pytest.approx(np.mean(rate))
        expected = stats.ttest_1samp(rate, 0.0).confidence_interval(0.95)
        assert (line.rate.low, line.rate.high) == pytest.approx(
            (max(expected.low, -2), min(expected.high, 2))
        )
        assert line.as_set.mean == pytest.approx(line.rate.mean + line.part.mean)
        assert line.rates == tuple(sorted(base[0]))


def test_sensitivity_is_the_mean_loss_above_the_best(lines):
    for line in lines:
        expected = []
        for grid in rates_of(line.task, line.variant).values():
            losses = [min(late_loss(run), FIRST_LOSS) for run in grid.values()]
            expected.append(np.mean(losses) - min(losses))
        assert line.sensitivity.mean == pytest.approx(np.mean(expected))
        assert line.sensitivity.low >= 0 and line.sensitivity.n == 4


def test_diverged_run_has_the_loss_of_its_first_step(store):  # noqa: F811
    def diverges(run):
        return math.nan if run.training.learning_rate > 0.004 else score(run)

    (line, *_) = measure_rates(store, fill(store, parse(SEARCHED), diverges))
    expected = []
    for grid in rates_of(line.task, line.variant).values():
        losses = [
            FIRST_LOSS if math.isnan(diverges(run)) else late_loss(run) for run in grid.values()
        ]
        expected.append(np.mean(losses) - min(losses))
    assert line.sensitivity.mean == pytest.approx(np.mean(expected))
    assert max(line.rates) > 0.004


def test_seeds_with_an_open_rate_are_left_out(store):  # noqa: F811
    study = parse(SEARCHED)
    open_rate = max(run.training.learning_rate for run in study.runs)
    number = fill(
        store,
        study,
        lambda run: (
            "queued" if run.seed == 3 and run.training.learning_rate == open_rate else score(run)
        ),
    )
    assert {line.part.n for line in measure_rates(store, number)} == {3}


def test_study_with_one_rate_has_no_lines(store):  # noqa: F811
    assert measure_rates(store, fill(store, parse(TEXT), score)) == []


def test_words_follow_from_the_numbers(lines):
    line = lines[0]
    assert describe_split(line).startswith(
        f"{100 * line.as_set.mean:.1f} points as set, {100 * line.part.mean:.1f} at the best rates"
        " of both; ".replace("-", "−")
    )
    first, middle, last = (f"{rate:g}" for rate in line.rates)
    assert describe_range(lines) == f"Rates tried: {first}, {middle}, {last}."
    assert line.accuracies[0] - line.accuracies[2] == pytest.approx(line.as_set.mean)
    assert line.accuracies[1] - line.accuracies[3] == pytest.approx(line.part.mean)
    table = rate_table(lines)
    assert table.part.tolist() == [line.part.mean for line in lines]
    assert set(table.seeds) == {4}


def test_cost_of_post_norm_in_a_deep_model_is_the_rate():
    """Without warm-up, post-norm in twelve layers fails as set, and learns at its own rate."""
    line = next(
        line
        for line in shipped_rates("own_learning_rates")
        if (line.task, line.variant) == ("reverse, 12 layers", "post-norm")
    )
    assert line.as_set.high < -0.9 and line.rate.high < -0.9
    assert abs(line.part.mean) < 0.02
    assert line.sensitivity.low > line.base_sensitivity.high and line.sensitivity_change.low > 0
    assert line.notes == ("both at the ceiling", "best rate at the edge")
    assert format_split(line.part) == "same on every seed"


def test_view_shows_rate_and_part(store):  # noqa: F811
    name = name_in_links("own_learning_rates")
    app = good(opened(study=name, shown="rates", of_task="reverse, 12 layers"))
    assert "Most comes from the rate (of 3 variants): post-norm." in texts(app)
    assert "−94.1 points as set, 0.0 at the best rates of both" in texts(app)
    assert "Limits: both at the ceiling, best rate at the edge." in texts(app)
    app = good(opened(study=name, shown="rates", of_task="facts"))
    assert "No variant learns this task at any rate" in texts(app)
    fill(store, parse(TEXT), score)
    app = good(opened(study="made up", shown="rates"))
    assert "trains every model at one learning rate" in texts(app)
