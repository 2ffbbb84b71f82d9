"""A new task works everywhere the menu of tasks is used."""

import contextlib
import io

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.experiments.training.plan import Trial, plan
from core.export.scripts import make_training_script
from core.model.variants import lineup
from core.settings.device import Machine
from core.study.file import parse
from core.tasks import task
from core.tasks.task import register_task, uniform
from core.train import Training, stack, start, train
from core.train.settings import Learner, Removed
from tests.laws.toys import toy_task
from ui.training import view as views

SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1}
SHORT = {"steps": 3, "batch": 4, "warmup": 0}
STUDY = """
name = "toy"
question = "Does it need attention?"
seeds = 2
tasks = ["toy_task"]
[training]
steps = 3
[variants]
"without" = { attention = false }
"""


@pytest.fixture(autouse=True)
def toy():
    register_task(
        label="Toy task",
        help="the word before.",
        mask="causal",
        length=6,
        lengths=range(2, 17),
        vocabulary=("a", "b", "c", "d"),
        marginal=uniform(),
        needs="attention",
        without={"attention": False},
        model={"d_model": 16, "n_heads": 2, "position": "learned"},
        training={"steps": 20, "batch": 8, "learning_rate": 3e-3},
    )(toy_task)
    yield
    del task["toy_task"], task._words["toy_task"]


def test_settings_follow_it_until_they_are_given():
    assert Training(task="toy_task").steps == 20 and Training(task="toy_task").length == 6
    learner = Learner(task="toy_task")
    removed = Removed(task="toy_task")
    assert learner.plain() == task["toy_task"].config()
    assert removed.changes == [{"attention": False}]
    assert Learner.read(learner.write())[0] == learner


def test_training_alone_equals_training_stacked():
    config = task["toy_task"].config(**SMALL)
    training = Training(task="toy_task", **SHORT)
    alone = [list(train(config, training, seed)) for seed in (0, 1)]
    together = stack.chunk([start(config, training, seed) for seed in (0, 1)], 60.0)
    for rows, (_, others) in zip(alone, together, strict=True):
        assert [row.step for row in rows] == [row.step for row in others]
        np.testing.assert_allclose(
            [row.loss for row in rows], [row.loss for row in others], atol=1e-4
        )


def test_its_script_runs():
    variants, _ = lineup(task["toy_task"].config(**SMALL), Removed(task="toy_task"))
    planned, _ = plan(variants, Training(task="toy_task", **SHORT), Trial(seeds=1), Machine("cpu"))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(
            compile(make_training_script(planned).python(), "script", "exec"),
            {"__name__": "__main__"},
        )
    assert "# accuracy" in printed.getvalue()


def test_studies_may_name_it():
    study = parse(STUDY)
    assert {run.training.task for run in study.runs} == {"toy_task"} and len(study.runs) == 4


@pytest.mark.parametrize("view", views)
def test_page_offers_it(view):
    app = AppTest.from_file("../../app.py", default_timeout=60)
    app.switch_page("pages/3_Training.py")
    app.query_params["task"] = "toy_task"
    app.query_params["trained"] = view
    app.run()
    assert not app.exception and not app.error, [
        element.value for element in (*app.exception, *app.error)
    ]


def test_drawn_data_match_description():
    tokens, targets = toy_task(torch.Generator().manual_seed(0), 3, 6, ("a", "b", "c", "d"))
    assert tokens.shape == targets.shape == (3, 6) and torch.equal(targets[:, 1:], tokens[:, :-1])
