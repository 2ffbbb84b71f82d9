"""What is compared on the page Training: the run at the learning rate that the other seeds chose, and each model by the time it took."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.experiments.training.judged import Judge, judged, rates
from core.experiments.training.plan import Arm, Plan, Trial, plan
from core.experiments.training.results import summary
from core.model.config import Config
from core.model.variants import Variant, ablation, apply
from core.settings.device import Machine
from core.tasks import task
from core.train import Row, Training, train
from core.train.match import match
from core.train.search import choose, search

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


def row(step: int, accuracy: float, note: str = "") -> Row:
    return Row(step, 1.0, accuracy, 1.0, 0.1, 0.03, note)


# The rates


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


@pytest.mark.parametrize("rate", [1e-6, 1000.0])
def test_no_rate_is_tried_that_a_training_cannot_have(rate):
    known = Training.settings()["learning_rate"]
    for kind in search:
        assert all(known.low <= each <= known.high for each in search[kind](rate))


def test_one_seed_has_no_other_that_could_choose():
    made, notes = plan(BOTH, SHORT, Trial(seeds=1, search="three"), CPU)
    assert made.trial.search == "none" and len(list(made.trainings())) == 3
    assert any("it would be chosen on the other seeds" in note for note in notes)


@given(some.data())
@settings(max_examples=200)
def test_a_rate_is_chosen_by_the_other_seeds(data):
    """By trying: for a seed the rate whose mean over the other seeds is highest, guessing where it diverged, the least of equals."""
    values = some.one_of(some.sampled_from([math.nan, 0.25, 0.5, 1.0]), some.floats(0, 1))
    grid = {
        rate: {seed: data.draw(values) for seed in range(4) if data.draw(some.integers(0, 9))}
        for rate in (0.1, 0.01, 0.3)
    }
    chosen = choose(grid, 0.25)
    whole = [seed for seed in range(4) if all(seed in of for of in grid.values())]
    assert list(chosen) == (whole if len(whole) > 1 else [])
    for seed, rate in chosen.items():
        means = {}
        for each, of in grid.items():
            others = [0.25 if math.isnan(of[other]) else of[other] for other in whole if other != seed]
            means[each] = math.fsum(others) / len(others)
        assert means[rate] >= max(means.values()) - 1e-12
        assert all(rate <= each for each in means if means[each] == means[rate])


@given(some.data())
@settings(max_examples=60)
def test_what_is_compared_is_the_run_at_the_chosen_rate(data):
    """Runs that have come to different steps: the choice is made where all of a model's runs have come."""
    made = planned(search="three", seeds=2)
    steps, runs = [1, 5, 10, 15, 20], {}
    for name, _, _, seed in made.trainings():
        rows = [row(step, data.draw(some.integers(0, 4)) / 4) for step in steps[: data.draw(some.integers(1, 5))]]
        lost = data.draw(some.integers(0, 5)) == 0
        runs[name, seed] = [*rows, row(rows[-1].step + 1, math.nan, "diverged at step 2")] if lost else rows
    found = judged(runs, made)
    for arm in made.arms:
        ways, guess = made.ways(arm), task["copy"].chance
        here = {(name, seed): runs[name, seed] for name in ways for seed in (0, 1)}
        step = min((each[-1].step for each in here.values() if not each[-1].note), default=20)
        for seed, other in ((0, 1), (1, 0)):
            worth = {}
            for name, way in ways.items():
                of = here[name, other]
                at = [each.accuracy for each in of if each.step == step]
                worth[way.learning_rate, name] = guess if of[-1].note or not at else at[0]
            best = max(worth.values())
            name = min(key for key in worth if worth[key] == best)[1]
            assert found.names[arm.name, seed] == name and found.runs[arm.name, seed] == runs[name, seed]
        told = rates(made, found.names)[arm.name]
        assert sum(int(each.split(" on ")[1]) for each in told.split(", ")) == 2


def test_before_the_first_numbers_each_model_stands_at_its_own_rate():
    made = planned(search="five")
    runs = {(name, seed): [] for name, _, _, seed in made.trainings()}
    found = judged(runs, made)
    assert set(found.runs) == {(arm.name, seed) for arm in made.arms for seed in range(3)}
    assert all(name == arm for (arm, _), name in found.names.items())


def test_what_is_not_searched_is_compared_as_it_is():
    made = planned()
    runs = {(arm.name, seed): [row(1, 0.5)] for arm in made.arms for seed in range(3)}
    assert judged(runs, made).runs is runs and rates(made, judged(runs, made).names) == {}


# The time


def test_a_curve_stands_at_the_baselines_steps_as_far_as_it_had_come_by_then():
    made = planned(match="time")
    arm = next(arm for arm in made.arms if arm.name == "− FFN")
    assert arm.training.steps > SHORT.steps and arm.note == f"{arm.training.steps} steps"
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
    assert set(table.guards) == {"equal training time"} and table.note[0] == ""


def test_one_that_diverged_is_lost_at_the_time_it_was():
    slow = Arm("slow", Config(), 1, frozenset({"slow"}), training=dataclasses.replace(SHORT, steps=10, every=2))
    made = Plan((Arm("baseline", Config(), 0, frozenset()), slow), SHORT, Trial(seeds=1, match="time"), CPU)
    own = [row(1, 0.1), row(2, 0.2), row(4, 0.4), row(5, math.nan, "diverged at step 5")]
    runs = {("baseline", 0): [row(step, 0.5) for step in (1, 5, 10, 15, 20)], ("slow", 0): own}
    kept = judged(runs, made).runs["slow", 0]
    assert [(each.step, each.accuracy) for each in kept[:-1]] == [(1, 0.1), (5, 0.2), (10, 0.4)]
    assert kept[-1].step == 10 and kept[-1].note == "diverged at step 5"


@pytest.mark.parametrize("part", ablation)
@pytest.mark.parametrize("kind", [each for each in match if each != "nothing"])
def test_guards_go_together(part, kind):
    """Held equal and searched at once: every rate has the widths and steps that make the model as dear."""
    first = task["recall"].config()
    variants = [Variant("baseline", first), Variant("it", apply(ablation[part](), first), 1)]
    alone = plan(variants, Training(task="recall"), Trial(match=kind), CPU)[0]
    made = plan(variants, Training(task="recall"), Trial(match=kind, search="three"), CPU)[0]
    assert made.arms == alone.arms
    for arm in made.arms:
        assert {way.steps for way in made.ways(arm).values()} == {(arm.training or made.training).steps}
    assert len(made.guards) == 2 and alone.guards == made.guards[:1]


# As it goes on


def test_it_is_worked_out_anew_when_there_are_more_rows():
    made = planned(search="three", seeds=2)
    runs = {(name, seed): [row(1, 0.0)] for name, _, _, seed in made.trainings()}
    judge = Judge(made, runs)
    assert judge.now is judge.now
    best = next(name for name in made.ways(made.arms[0]) if name != "baseline")
    before = judge.now
    for name, seed in runs:
        runs[name, seed].append(row(5, float(name == best)))
    assert judge.now is not before and set(judge.now.names[("baseline", seed)] for seed in (0, 1)) == {best}
