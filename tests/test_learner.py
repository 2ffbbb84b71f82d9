"""A task's model and its ablations: unset values follow the task, links store the others."""

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.experiments.training.plan import Trial, plan, showcase
from core.model.config import Config
from core.model.variants import NOTHING, encode, lineup
from core.settings.device import Machine
from core.tasks import task
from core.train import Training
from core.train.settings import Learner, Removed, default_config
from tests.test_variants import value_of

EVERY = pytest.mark.parametrize("name", task)
FIELDS = list(Config.settings())


@st.composite
def given_settings(draw):
    """Draw any task and any settings of its model; invalid ones are repaired as in a link."""
    name = draw(st.sampled_from(list(task)))
    moved = draw(st.lists(st.sampled_from(FIELDS), max_size=5, unique=True))
    values = {field: draw(value_of(field)) for field in moved}
    learner, problems = Learner.repair({"task": name} | values)
    return name, {
        field: getattr(learner, field)
        for field in values.keys() | {problem.field for problem in problems}
    }


@EVERY
def test_at_first_it_is_the_tasks_own_model(name):
    assert Learner(task=name).plain() == task[name].config() == default_config(name)
    assert type(Learner(task=name).plain()) is Config
    assert Learner(task=name).write() == ({} if name == "reverse" else {"task": name})
    assert Learner() == Learner(task="reverse")


@given(given_settings())
def test_link_has_only_changes_from_task_defaults(settings):
    name, values = settings
    learner = Learner(task=name, **values)
    link = learner.write()
    defaults = {f: Learner.settings()[f].follows(learner) for f in FIELDS}
    assert link.keys() - {"task"} == {f for f in FIELDS if getattr(learner, f) != defaults[f]}
    assert ("task" in link) == (name != "reverse")
    assert Learner.read(link) == (learner, [])
    assert link.keys() - {"task"} <= values.keys()


@given(given_settings(), st.sampled_from(list(task)))
def test_new_task_keeps_changes_and_sets_the_rest(settings, other):
    name, values = settings
    link = Learner(task=name, **values).write() | {"task": other}
    learner, problems = Learner.read(link)
    moved = {f: getattr(Learner(task=name, **values), f) for f in link.keys() - {"task"}}
    if not problems:
        assert {f: getattr(learner, f) for f in moved} == moved
        assert learner == Learner(task=other, **moved)
        for f in set(FIELDS) - moved.keys() - {"d_ff", "d_head", "n_kv_heads", "attention_bias"}:
            assert getattr(learner, f) == getattr(task[other].config(), f)


@given(given_settings())
def test_learner_is_a_config(settings):
    name, values = settings
    learner = Learner(task=name, **values)
    assert isinstance(learner, Config) and learner.plain() == Config(
        **{f: getattr(learner, f) for f in FIELDS}
    )
    assert (
        hash(learner) == hash(dataclasses.replace(learner))
        and dataclasses.replace(learner) == learner
    )


@pytest.mark.parametrize(
    ("params", "field", "remaining"),
    [
        ({"task": "chess", "d_model": "128"}, "task", Learner(d_model=128)),
        (
            {"task": "facts", "d_model": "wide", "n_layers": "2"},
            "d_model",
            Learner(task="facts", n_layers=2),
        ),
        ({"task": "facts", "n_heads": "5"}, "n_heads", Learner(task="facts", n_heads=4)),
        (
            {"task": "induction", "d_head": "7"},
            "position",
            Learner(task="induction", d_head=7, position="none"),
        ),
    ],
)
def test_bad_value_is_named_and_rest_kept(params, field, remaining):
    learner, problems = Learner.read(params)
    assert learner == remaining
    assert [problem.field for problem in problems] == [field]
    assert re.match(rf"(The link sets )?{field} ", str(problems[0]))


def test_variants_that_were_chosen_stay_when_the_task_changes():
    chosen = Removed(task="facts", variants="norm-none")
    assert chosen.write() == {"task": "facts", "variants": "norm-none"}
    removed, problems = Removed.read(chosen.write() | {"task": "copy"})
    assert removed.texts == ["norm-none"] and problems == []
    assert Removed(task="facts", variants=NOTHING).texts == []
    assert Removed.read(Removed(task="facts", variants=NOTHING).write()) == (
        Removed(task="facts", variants=NOTHING),
        [],
    )
    as_it_is = Removed(task="facts", variants=encode(task["facts"].without))
    assert as_it_is == Removed(task="facts") and as_it_is.write() == {"task": "facts"}  # it follows


@pytest.mark.parametrize("name", showcase)
def test_presets_are_links_that_train(name):
    link = showcase[name]
    kinds = (Training, Learner, Removed, Trial)
    (training, learner, pins, trial), problems = zip(*(kind.read(link) for kind in kinds))
    assert not any(problems)
    assert link.keys() <= {field for kind in kinds for field in kind.settings()}
    variants, notes = lineup(learner.plain(), pins, padding=0)
    planned, extra = plan(variants, training, trial, Machine(device="cpu"))
    assert notes == extra == [] and len(planned.arms) == 2
    full = {
        field: value
        for settings in (training, learner, pins, trial)
        for field, value in settings.write().items()
    }
    assert all(
        kind.read(full) == (settings, [])
        for kind, settings in zip(kinds, (training, learner, pins, trial))
    )
