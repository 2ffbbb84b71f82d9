"""The dial that sets width, layers, heads and steps together."""

import pytest

from core.checkpoints import family
from core.model import cost
from core.model.config import Config
from core.tasks import task
from core.train.dial import DIAL, USUAL, find_size, model_size, steps_at
from tests.pages import control, controls, move, move_control, offered, opened, setting
from ui.kit.limits import Limits

BLOCK = "pages/1_One_block.py"
TRAINING = "pages/3_Training.py"
NAMES = ("d_model", "n_heads", "n_layers")


def test_usual_size_matches_shipped_model_and_usual_steps():
    assert {name: getattr(family.BASELINE, name) for name in NAMES} == model_size(USUAL)
    assert all(steps_at(name, USUAL) == task[name].training["steps"] for name in task)
    assert all(steps_at(name, 4) == 2 * task[name].training["steps"] for name in task)


@pytest.mark.parametrize("size", DIAL)
def test_block_weights_grow_with_the_cube_of_the_size(size):
    config = Config(**model_size(size), bias=False, norm="none")
    assert sum(cost.parameters(config).values()) == 12 * 32**2 * size**3
    assert config.d_head == 16 and find_size(config) == size
    assert find_size(config.replace(n_layers=config.n_layers + 1)) is None


def test_dial_of_training_sets_sizes_and_steps():
    app = move_control(opened(TRAINING, task="induction"), "size", "3")
    assert not app.exception and not app.error
    assert {name: setting(app, name) for name in NAMES} == model_size(3)
    assert setting(app, "steps") == steps_at("induction", 3) and setting(app, "d_ff") == 4 * 96
    assert control(app, "size")["value"] == "3"
    app = move_control(app, "size", str(USUAL))
    assert {name: setting(app, name) for name in NAMES} == model_size(USUAL)
    assert setting(app, "steps") == task["induction"].training["steps"]
    app = move(app, n_layers="5").run()
    assert control(app, "size")["value"] == "own" and offered(app, "size")[0] == "own"


@pytest.mark.parametrize("kind", ["trained", "random"])
def test_dial_of_one_block_sets_sizes(kind):
    app = move_control(opened(BLOCK, weights=kind), "size", "5")
    assert {name: setting(app, name) for name in NAMES} == model_size(5)
    assert setting(app, "weights") == kind and not app.exception


def test_model_with_something_removed_has_no_dial():
    assert "size" not in controls(opened(BLOCK, weights="cut"))


def test_link_that_frees_one_size_has_no_dial():
    only = Limits(pages=("block",), moved=("text", "n_layers")).write()
    assert "size" not in controls(opened(BLOCK, weights="random", only=only))
