"""A new part of each kind works everywhere without a change in any other file."""

import contextlib
import io

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from core.experiments.block import attention, stages
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.gradients import gradients
from core.experiments.depth.grid import travel_many
from core.experiments.forward import forward
from core.export.scripts import make_block_script
from core.figures.drawing import block_svg, describe_block
from core.model import cost
from core.model.config import Config
from core.model.generate import Sampling, generate
from core.model.parts import MENUS
from core.model.parts.placement import BEFORE
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.tasks import task
from core.train import Training, train
from tests.laws.toys import TOYS, enter, key_of
from ui.block import view as block
from ui.depth import view as depth

WORDS = ("the", "dog", "bites", "man")
SMALL = {"d_model": 16, "n_heads": 2}


@pytest.fixture(params=TOYS)
def toy(request):
    """Yield a setting and its value; the toy part is in the menu during the test."""
    menu = MENUS[request.param]
    part = TOYS[request.param]
    enter(menu, part)
    key = key_of(part)
    yield request.param, key
    del menu[key], menu._words[key]


@pytest.fixture
def config(toy):
    return Config(**SMALL, **dict([toy]))


def test_pass_with_all_experiments(config):
    forward_pass = forward(config, WORDS)
    assert forward_pass.finite
    table = stages.stages(forward_pass, 0)
    assert len(table) == len(set(table.site)) and table.notna().all(axis=None)
    for site in ("ln1", "ln2"):
        before, numbers = stages.token_through_norm(forward_pass, 0, site, 1)
        norm = Transformer(config, WORDS).blocks[0].ln1
        expected = norm(torch.tensor(before.before.to_numpy())[None, None])[0, 0].detach()
        # The norm reads the tensor recorded before it.
        np.testing.assert_allclose(before.after, expected, atol=1e-5)
    steps = attention.list_head_steps(forward_pass, 0, 0)
    assert len(steps) == 10
    svg = block_svg(forward_pass)
    assert svg.startswith("<svg") and describe_block(config) in svg.replace("&#x27;", "'")


def test_diagram_shows_where_it_acted():
    """A norm between the sub-layer and the sum is drawn between their boxes.

    That is below the sub-layer's box and above the point where the branch meets the stream.
    """
    enter(MENUS["placement"], TOYS["placement"])
    try:
        svg = block_svg(forward(Config(**SMALL, placement="toy_placement"), WORDS))
    finally:
        del MENUS["placement"]["toy_placement"], MENUS["placement"]._words["toy_placement"]
    index = [svg.index(word) for word in (">Attention<", ">LayerNorm<", 'class="sum"')]
    assert index == sorted(index)


@pytest.mark.parametrize("name", MENUS["placement"])
def test_placement_calls_each_norm_once_and_adds_once(name):
    """Calling a norm twice would share one gain and record two tensors at one site."""
    part = MENUS["placement"][name]
    calls = []

    def step(label):
        return lambda *tensors: calls.append(label) or tensors[-1]

    norms = [step(place) for place in part.norms]
    x = torch.zeros(1)
    part.read(x, norms)
    n_before = len(calls)
    part.write(x, x, step("add"), norms)
    assert sorted(calls) == sorted([*part.norms, "add"])
    assert calls[:n_before] == [place for place in part.norms if place == BEFORE]


@pytest.mark.parametrize("name", MENUS["placement"])
def test_reported_norm_position_is_computed_position(name):
    order = list(forward(Config(**SMALL, placement=name), WORDS).sites)
    for site, place in zip(("ln1", "ln1_post"), MENUS["placement"][name].norms):
        before = order.index(site) < order.index("z")
        after = order.index(site) > order.index("resid_mid")
        if before:
            assert place == "before"
        elif after:
            assert place == "after"
        else:
            assert place == "on the output of"
    assert ("ln1_post" in order) == (len(MENUS["placement"][name].norms) == 2)


def test_many_passes_side_by_side_and_their_gradients(config):
    depth = Depth(passes=3)
    alone = travel(config, WORDS, Machine("cpu"), depth)
    assert np.isfinite(alone.values[1:]).all()  # before the first pass nothing has attended yet
    both, diverged = travel_many(
        [config, config.replace(residual_ffn=False)], WORDS, Machine("cpu"), depth.plan(config)[1]
    )
    np.testing.assert_allclose(both[0], alone.values, atol=1e-5)
    assert diverged == [None, None]
    actual = gradients(config, WORDS, Machine("cpu"), depth)
    assert np.isfinite(actual.stream).all() and not actual.diverged


def test_cost_matches_parameters(config):
    model = Transformer(config, WORDS)
    assert sum(cost.parameters(config, len(WORDS)).values()) == sum(
        parameter.numel() for parameter in model.parameters()
    )


def test_new_part_learns(toy):
    config = task["copy"].config(**SMALL, n_layers=1, **dict([toy]))
    rows = list(train(config, Training(task="copy", steps=3, batch=4, warmup=0), 0))
    assert rows[-1].step == 3 and np.isfinite(rows[-1].loss)


def test_its_script_runs(toy, config):
    script = make_block_script(config, WORDS, Machine("cpu"))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(script.python(), "script", "exec"), {"__name__": "__main__"})
    assert "# attention" in printed.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page, field, views", [("1_One_block", "view", block), ("2_Depth", "show", depth)]
)
def test_views_show_it(toy, page, field, views):
    for view in views:
        app = AppTest.from_file("../../app.py", default_timeout=60)
        app.switch_page(f"pages/{page}.py")
        app.query_params[toy[0]] = toy[1]
        app.query_params[field] = view
        app.run()
        assert not app.exception and not app.error, (
            view,
            [element.value for element in (*app.exception, *app.error)],
        )


@pytest.mark.parametrize("name", [*MENUS["mask"], key_of(TOYS["mask"])])
def test_mask_descriptions_hold(name):
    mask = MENUS["mask"].get(name, TOYS["mask"])
    visible = mask(6)
    visible = torch.ones(6, 6, dtype=torch.bool) if visible is None else visible
    if name in MENUS["mask"]:
        assert mask.looks_ahead == bool(visible.triu(1).any())
        assert mask.sees_all_before == (
            not mask.looks_ahead and bool(visible.tril().equal(torch.ones(6, 6).tril().bool()))
        )


def test_generation_under_forgetting_mask_matches_without_cache():
    """The newest token needs its mask: it may not attend to all tokens."""
    enter(MENUS["mask"], TOYS["mask"], looks_ahead=False)
    try:
        model = Transformer(Config(**SMALL, n_layers=2, mask="toy_mask"), WORDS)
        cached, anew = (
            list(generate(model, [0, 1, 2, 3], Sampling(words=5), cache=cache))
            for cache in (True, False)
        )
    finally:
        del MENUS["mask"]["toy_mask"], MENUS["mask"]._words["toy_mask"]
    for step, other in zip(cached, anew, strict=True):
        assert step.token == other.token
        np.testing.assert_allclose(step.logits, other.logits, atol=1e-5)
