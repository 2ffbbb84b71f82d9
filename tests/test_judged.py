"""What is compared on the page Training: the run whose training ends with the lowest loss, and each model by the time it took."""

import dataclasses
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from core.experiments.training.judged import at_an_end, judged, rates
from core.experiments.training.plan import Arm, Plan, Trial, otherwise, plan
from core.experiments.training.results import summary
from core.model.config import Config
from core.model.variants import Variant, ablation, apply
from core.settings.device import Machine
from core.tasks import task
from core.train import Row, Training, train
from core.train.match import choose, late_loss, match, search

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
def test_every_model_is_trained_at_as_many_rates(kind):
    made, many = planned(search=kind), {"none": 1, "three": 3, "five": 5}[kind]
    found = list(made.trainings())
    assert len(found) == len({(name, seed) for name, _, _, seed in found}) == 3 * 3 * many
    for arm in made.arms:
        ways = made.ways(arm)
        tried = sorted(way.learning_rate for way in ways.values())
        assert ways[arm.name] == SHORT and len(tried) == many and tried[many // 2] == 0.03
        for less, more in zip(tried, tried[1:]):
            assert more / less == pytest.approx(3, rel=0.01)
        for name, way in ways.items():
            assert dataclasses.replace(way, learning_rate=0.03) == SHORT
            assert name == arm.name or name.endswith(f"learning rate {way.learning_rate:g}")


@given(some.lists(some.tuples(some.integers(1, 40), some.floats(0, 10)), max_size=12), some.integers(1, 40))
@example([(9, 1.0), (10, 3.0)], 10)  # nine tenths of the way is not late
def test_a_late_loss_is_the_mean_of_the_last_tenth(losses, end):
    late = [loss for step, loss in losses if end * 0.9 + 1e-9 < step <= end]
    found = late_loss(losses, end)
    assert found == (pytest.approx(sum(late) / len(late)) if late else math.inf)


@given(
    some.dictionaries(
        some.sampled_from([0.001, 0.003, 0.01, 0.03]), some.sampled_from([0.5, 1.0, math.inf]), min_size=1
    )
)
def test_the_rate_of_the_least_loss_is_chosen_the_lowest_of_equals(losses):
    rate = choose(losses)
    assert all(losses[rate] < loss or (losses[rate] == loss and rate <= other) for other, loss in losses.items())


@given(some.data())
@settings(max_examples=60)
def test_what_is_compared_is_the_run_at_the_chosen_rate(data):
    """Runs that have come to different steps: the choice is made where all of a model's runs of a seed have come, each seed by itself."""
    made = planned(search="three", seeds=2)
    steps, runs = [1, 5, 10, 15, 20], {}
    for name, _, _, seed in made.trainings():
        many = data.draw(some.integers(1, 5))
        rows = [row(step, 0.5, loss=data.draw(some.integers(0, 20)) / 4) for step in steps[:many]]
        lost = data.draw(some.integers(0, 5)) == 0
        gone = row(rows[-1].step + 1, math.nan, "diverged at step 2", math.inf)
        runs[name, seed] = [*rows, gone] if lost else rows
    found = judged(runs, made)
    for arm in made.arms:
        ways = made.ways(arm)
        for seed in (0, 1):
            here = {name: runs[name, seed] for name in ways}
            going = {name: rows for name, rows in here.items() if not rows[-1].note}
            end = min((rows[-1].step for rows in going.values()), default=0)
            worth = {}
            for name, rows in going.items():
                late = [each.loss for each in rows if 0.9 * end + 1e-9 < each.step <= end]
                worth[sum(late) / len(late), ways[name].learning_rate] = name
            name = worth[min(worth)] if worth else min(ways, key=lambda each: ways[each].learning_rate)
            assert found.names[arm.name, seed] == name and found.runs[arm.name, seed] == runs[name, seed]
        told = rates(made, found.names)[arm.name]
        assert sum(int(each.split(" on ")[1]) for each in told.split(", ")) == 2


@pytest.mark.parametrize("best", ["", ", learning rate 0.01", ", learning rate 0.09"])
def test_a_best_rate_at_an_end_of_those_tried_is_told(best):
    made = planned(search="three")
    runs = {
        (name, seed): [row(20, 0.5, loss=float(name not in (f"− FFN{best}", "baseline", "− norm")))]
        for name, _, _, seed in made.trainings()
    }
    assert at_an_end(made, judged(runs, made).names) == ["− FFN"] * bool(best)


def test_a_curve_stands_at_the_baselines_steps_as_far_as_it_had_come_by_then():
    made = planned(match="time")
    arm = next(arm for arm in made.arms if arm.name == "− FFN")
    assert arm.training.steps > SHORT.steps and arm.note.startswith(f"{arm.training.steps} steps")
    runs = {(name, seed): list(train(config, way, seed, CPU)) for name, config, way, seed in made.trainings()}
    found = judged(runs, made).runs
    for seed in range(3):
        assert [each.step for each in found["− FFN", seed]] == [each.step for each in runs["baseline", seed]]
        for each in found["− FFN", seed]:
            by_then = each.step if each.step == 1 else each.step * arm.training.steps / SHORT.steps
            newest = [own for own in runs["− FFN", seed] if own.step <= by_then + 1e-9][-1]
            assert each == newest._replace(step=each.step)
        assert found["− FFN", seed][-1].accuracy == runs["− FFN", seed][-1].accuracy
    table = summary(found, made)
    assert set(table.guards) == {"equal estimated training time"} and table.note[0] == ""


def test_one_that_diverged_is_lost_at_the_time_it_was():
    slow = Arm("slow", Config(), 1, frozenset({"slow"}), training=dataclasses.replace(SHORT, steps=10, every=2))
    made = Plan((Arm("baseline", Config(), 0, frozenset()), slow), SHORT, Trial(seeds=1, match="time"), CPU)
    own = [row(1, 0.1), row(2, 0.2), row(4, 0.4), row(5, math.nan, "diverged at step 5")]
    runs = {("baseline", 0): [row(step, 0.5) for step in (1, 5, 10, 15, 20)], ("slow", 0): own}
    kept = judged(runs, made).runs["slow", 0]
    assert [(each.step, each.accuracy) for each in kept[:-1]] == [(1, 0.1), (5, 0.2)]
    assert kept[-1].step == 10 and kept[-1].note == "diverged at step 5"


@pytest.mark.parametrize(("steps", "lost_at"), [(58, 29), (116, 58), (140, 70)])
def test_a_row_at_the_very_step_is_taken(steps, lost_at):
    """50 · (58 / 100) is less than 29 in floats, and 29 / (58 / 100) more than 50."""
    plain = dataclasses.replace(SHORT, steps=100, every=10)
    longer = Arm("it", Config(), 1, frozenset({"it"}), training=dataclasses.replace(plain, steps=steps, every=1))
    made = Plan((Arm("baseline", Config(), 0, frozenset()), longer), plain, Trial(seeds=1, match="time"), CPU)
    every_step = [row(step, step / 1000) for step in range(1, steps + 1)]
    runs = {("baseline", 0): [row(1, 0.5)], ("it", 0): every_step}
    due = [1, *range(10, 101, 10)]
    taken = [round(1000 * each.accuracy) for each in judged(runs, made).runs["it", 0]]
    assert taken == [1, *(step * steps // 100 for step in due[1:])]
    runs["it", 0] = [*every_step[: lost_at - 1], row(lost_at, math.nan, "diverged")]
    assert judged(runs, made).runs["it", 0][-1].step == 50


@pytest.mark.parametrize("part", ablation)
@pytest.mark.parametrize("kind", [each for each in match if each != "nothing"])
def test_guards_go_together(part, kind):
    """Held equal and searched at once: every rate has the widths and steps that make the model as dear."""
    first = task["recall"].config()
    variants = [Variant("baseline", first), Variant("it", apply(ablation[part], first), 1)]
    alone = plan(variants, Training(task="recall"), Trial(match=kind), CPU)[0]
    made = plan(variants, Training(task="recall"), Trial(match=kind, search="three"), CPU)[0]
    assert made.arms == alone.arms
    for arm in made.arms:
        assert {way.steps for way in made.ways(arm).values()} == {(arm.training or made.training).steps}
    assert len(made.guards) == 2 and alone.guards == made.guards[:1]


@pytest.mark.parametrize("kind", otherwise)
def test_the_baseline_can_be_trained_once_more_in_another_way(kind):
    training = dataclasses.replace(SHORT, decay="linear", warmup=5)
    made, notes = plan(BOTH, training, Trial(seeds=2, otherwise=kind), CPU)
    alone = plan(BOTH, training, Trial(seeds=2), CPU)[0]
    assert made.arms[:3] == alone.arms and not notes
    more = made.arms[3:]
    assert len(more) == (kind != "nothing")
    for arm in more:
        assert arm.config == made.arms[0].config and arm.colour not in [each.colour for each in alone.arms]
        assert arm.name == otherwise.label(kind)
        (way,) = made.ways(arm).values()
        changes = otherwise[kind]
        assert changes and way == dataclasses.replace(training, **changes)
