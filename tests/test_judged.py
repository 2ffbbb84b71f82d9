"""Comparisons on the page Training: the learning rate with the lowest late loss, and cost."""

import dataclasses
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from core.experiments.training.judged import describe_rates, models_at_edge, select_runs
from core.experiments.training.plan import Arm, Plan, Trial, otherwise, plan
from core.experiments.training.results import summary
from core.model.config import Config
from core.model.variants import Variant, ablation, apply
from core.settings.device import Machine
from core.tasks import task
from core.train import Row, Training, train
from core.train.match import choose_rate, late_loss, match, search

SMALL = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_layers": 1}
SHORT = Training(task="copy", steps=20, batch=4, every=5, warmup=0, learning_rate=0.03)
BOTH = [
    Variant("baseline", task["copy"].config(**SMALL)),
    Variant("− FFN", task["copy"].config(**SMALL, ffn=False), 1),
    Variant("− norm", task["copy"].config(**SMALL, norm="none"), 2),
]
CPU = Machine("cpu")


def planned(**trial) -> Plan:
    return plan(BOTH, SHORT, Trial(**{"seeds": 3} | trial), CPU)[0]


def row(step: int, accuracy: float, note: str = "", loss: float = 1.0) -> Row:
    return Row(step, loss, accuracy, 1.0, 0.1, 0.03, note)


@pytest.mark.parametrize("kind", search)
def test_models_train_at_equally_many_rates(kind):
    experiment = planned(search=kind)
    count = {"none": 1, "three": 3, "five": 5}[kind]
    actual = list(experiment.trainings())
    assert len(actual) == len({(name, seed) for name, _, _, seed in actual}) == 3 * 3 * count
    for arm in experiment.arms:
        ways = experiment.ways(arm)
        tried = sorted(way.learning_rate for way in ways.values())
        assert ways[arm.name] == SHORT and len(tried) == count and tried[count // 2] == 0.03
        for less, extra in zip(tried, tried[1:]):
            assert extra / less == pytest.approx(3, rel=0.01)
        for name, way in ways.items():
            assert dataclasses.replace(way, learning_rate=0.03) == SHORT
            assert name == arm.name or name.endswith(f"learning rate {way.learning_rate:g}")


@given(
    some.lists(some.tuples(some.integers(1, 40), some.floats(0, 10)), max_size=12),
    some.integers(1, 40),
)
@example([(9, 1.0), (10, 3.0)], 10)  # nine tenths of the way is not late
def test_late_loss_is_mean_of_last_tenth(losses, end):
    late = [loss for step, loss in losses if end * 0.9 + 1e-9 < step <= end]
    actual = late_loss(losses, end)
    assert actual == (pytest.approx(sum(late) / len(late)) if late else math.inf)


@given(
    some.dictionaries(
        some.sampled_from([0.001, 0.003, 0.01, 0.03]),
        some.sampled_from([0.5, 1.0, math.inf]),
        min_size=1,
    )
)
def test_rate_with_least_loss_wins_lowest_of_ties(losses):
    rate = choose_rate(losses)
    assert all(
        losses[rate] < loss or (losses[rate] == loss and rate <= other)
        for other, loss in losses.items()
    )


@given(some.data())
@settings(max_examples=60)
def test_comparison_uses_run_at_chosen_rate(data):
    """The rate is chosen per seed, at the last step that all the model's runs have reached."""
    experiment = planned(search="three", seeds=2)
    steps = [1, 5, 10, 15, 20]
    runs = {}
    for name, _, _, seed in experiment.trainings():
        count = data.draw(some.integers(1, 5))
        rows = [row(step, 0.5, loss=data.draw(some.integers(0, 20)) / 4) for step in steps[:count]]
        lost = data.draw(some.integers(0, 5)) == 0
        lost_row = row(rows[-1].step + 1, math.nan, "diverged at step 2", math.inf)
        runs[name, seed] = [*rows, lost_row] if lost else rows
    actual = select_runs(runs, experiment)
    for arm in experiment.arms:
        ways = experiment.ways(arm)
        for seed in (0, 1):
            runs_of_seed = {name: runs[name, seed] for name in ways}
            going = {name: rows for name, rows in runs_of_seed.items() if not rows[-1].note}
            end = min((rows[-1].step for rows in going.values()), default=0)
            worth = {}
            for name, rows in going.items():
                late = [row.loss for row in rows if 0.9 * end + 1e-9 < row.step <= end]
                worth[sum(late) / len(late), ways[name].learning_rate] = name
            name = (
                worth[min(worth)]
                if worth
                else min(ways, key=lambda name_of_way: ways[name_of_way].learning_rate)
            )
            assert (
                actual.names[arm.name, seed] == name
                and actual.runs[arm.name, seed] == runs[name, seed]
            )
        message = describe_rates(experiment, actual.names)[arm.name]
        assert sum(int(part.split(" on ")[1]) for part in message.split(", ")) == 2


@pytest.mark.parametrize("best", ["", ", learning rate 0.01", ", learning rate 0.09"])
def test_best_rate_at_edge_is_reported(best):
    experiment = planned(search="three")
    runs = {
        (name, seed): [row(20, 0.5, loss=float(name not in (f"− FFN{best}", "baseline", "− norm")))]
        for name, _, _, seed in experiment.trainings()
    }
    assert models_at_edge(experiment, select_runs(runs, experiment).names) == ["− FFN"] * bool(best)


def test_curve_is_sampled_at_baseline_steps():
    experiment = planned(match="time")
    arm = next(arm for arm in experiment.arms if arm.name == "− FFN")
    assert arm.training.steps > SHORT.steps and arm.note.startswith(f"{arm.training.steps} steps")
    runs = {
        (name, seed): list(train(config, way, seed, CPU))
        for name, config, way, seed in experiment.trainings()
    }
    actual = select_runs(runs, experiment).runs
    for seed in range(3):
        assert [item.step for item in actual["− FFN", seed]] == [
            item.step for item in runs["baseline", seed]
        ]
        for entry in actual["− FFN", seed]:
            by_then = (
                entry.step if entry.step == 1 else entry.step * arm.training.steps / SHORT.steps
            )
            newest = [
                row_of_variant
                for row_of_variant in runs["− FFN", seed]
                if row_of_variant.step <= by_then + 1e-9
            ][-1]
            assert entry == newest._replace(step=entry.step)
        assert actual["− FFN", seed][-1].accuracy == runs["− FFN", seed][-1].accuracy
    table = summary(actual, experiment)
    assert set(table.guards) == {"equal estimated training time"} and table.note[0] == ""


def test_diverged_run_is_lost_at_its_time():
    slow = Arm(
        "slow",
        Config(),
        1,
        frozenset({"slow"}),
        training=dataclasses.replace(SHORT, steps=10, every=2),
    )
    experiment = Plan(
        (Arm("baseline", Config(), 0, frozenset()), slow), SHORT, Trial(seeds=1, match="time"), CPU
    )
    rows = [row(1, 0.1), row(2, 0.2), row(4, 0.4), row(5, math.nan, "diverged at step 5")]
    runs = {("baseline", 0): [row(step, 0.5) for step in (1, 5, 10, 15, 20)], ("slow", 0): rows}
    judged_rows = select_runs(runs, experiment).runs["slow", 0]
    assert [(item.step, item.accuracy) for item in judged_rows[:-1]] == [(1, 0.1), (5, 0.2)]
    assert judged_rows[-1].step == 10 and judged_rows[-1].note == "diverged at step 5"


@pytest.mark.parametrize(("steps", "lost_at"), [(58, 29), (116, 58), (140, 70)])
def test_row_at_exact_step_is_used(steps, lost_at):
    """Rounding in floats gives 50 · (58 / 100) < 29 and 29 / (58 / 100) > 50."""
    plain = dataclasses.replace(SHORT, steps=100, every=10)
    longer = Arm(
        "it",
        Config(),
        1,
        frozenset({"it"}),
        training=dataclasses.replace(plain, steps=steps, every=1),
    )
    experiment = Plan(
        (Arm("baseline", Config(), 0, frozenset()), longer),
        plain,
        Trial(seeds=1, match="time"),
        CPU,
    )
    every_step = [row(step, step / 1000) for step in range(1, steps + 1)]
    runs = {("baseline", 0): [row(1, 0.5)], ("it", 0): every_step}
    due = [1, *range(10, 101, 10)]
    accuracies = [
        round(1000 * item.accuracy) for item in select_runs(runs, experiment).runs["it", 0]
    ]
    assert accuracies == [1, *(step * steps // 100 for step in due[1:])]
    runs["it", 0] = [*every_step[: lost_at - 1], row(lost_at, math.nan, "diverged")]
    assert select_runs(runs, experiment).runs["it", 0][-1].step == 50


@pytest.mark.parametrize("part", ablation)
@pytest.mark.parametrize("kind", [kind_name for kind_name in match if kind_name != "nothing"])
def test_guards_go_together(part, kind):
    """Matched cost and searched rates combine: every rate keeps the matched widths and steps."""
    first = task["recall"].config()
    variants = [Variant("baseline", first), Variant("it", apply(ablation[part], first), 1)]
    alone = plan(variants, Training(task="recall"), Trial(match=kind), CPU)[0]
    experiment = plan(variants, Training(task="recall"), Trial(match=kind, search="three"), CPU)[0]
    assert experiment.arms == alone.arms
    for arm in experiment.arms:
        assert {way.steps for way in experiment.ways(arm).values()} == {
            (arm.training or experiment.training).steps
        }
    assert len(experiment.guards) == 2 and alone.guards == experiment.guards[:1]


@pytest.mark.parametrize("kind", otherwise)
def test_baseline_trains_again_as_training_variant(kind):
    training = dataclasses.replace(SHORT, decay="linear", warmup=5)
    experiment, notes = plan(BOTH, training, Trial(seeds=2, otherwise=kind), CPU)
    alone = plan(BOTH, training, Trial(seeds=2), CPU)[0]
    assert experiment.arms[:3] == alone.arms and not notes
    extra = experiment.arms[3:]
    assert len(extra) == (kind != "nothing")
    for arm in extra:
        assert arm.config == experiment.arms[0].config and arm.colour not in [
            arm.colour for arm in alone.arms
        ]
        assert arm.name == otherwise.label(kind)
        (way,) = experiment.ways(arm).values()
        changes = otherwise[kind]
        assert changes and way == dataclasses.replace(training, **changes)
