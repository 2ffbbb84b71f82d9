"""A new effect, tensor statistic and pass statistic work everywhere their menus are used."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.checkpoints import files
from core.experiments.block import stages
from core.experiments.depth.depth import Depth, travel
from core.experiments.forward import forward
from core.experiments.trained import tables
from core.experiments.trained.knockout import Bench, effect
from core.experiments.trained.questions import questions
from core.measure.stream_statistics import statistic
from core.measure.tensor_meters import meter
from core.model.config import Config
from core.model.knockout import Cut
from core.settings.device import Machine
from tests.laws.toys import enter, key_of

WORDS = ("the", "dog", "bites", "man")
SMALL = Config(d_model=16, n_heads=2, seed=77)  # of which no other test has results that are kept


def toy_meter(sums):
    """Toy statistic: the span from the lowest number to the highest."""
    return sums.high - sums.low


def toy_statistic(streams):
    """Toy size: twice the root mean square."""
    return 2 * streams.square.sqrt()


def toy_effect(answers, full):
    """Toy effect: how far the right word's score has moved, either way."""
    return (answers.logits_of(answers.right) - full.logits_of(full.right)).abs()


TOYS = [toy_meter, toy_statistic, toy_effect]


@pytest.fixture(
    params=[
        (meter, toy_meter, {}),
        (statistic, toy_statistic, {"question": "How large is the stream in all?"}),
        (effect, toy_effect, {"distance": True}),
    ],
    ids=lambda parameter: parameter[1].__name__,
)
def toy(request):
    menu, part, facts = request.param
    enter(menu, part, **facts)
    yield part
    del menu[key_of(part)], menu._words[key_of(part)]


def only(*parts):
    return pytest.mark.parametrize(
        "toy", parts, indirect=True, ids=lambda parameter: parameter[1].__name__
    )


@only((meter, toy_meter, {}))
def test_stages_measure_new_meter(toy):
    forward_pass = forward(SMALL, WORDS)
    table = stages.stages(forward_pass, 0)
    np.testing.assert_allclose(table.toy_meter, table["max"] - table["min"], rtol=1e-6)


@only((statistic, toy_statistic, {"question": "How large is the stream in all?"}))
def test_passes_measure_new_statistic(toy):
    values = travel(SMALL, WORDS, Machine("cpu"), Depth(passes=3)).values
    index = list(statistic).index("toy_statistic"), list(statistic).index("rms")
    np.testing.assert_allclose(values[:, index[0]], 2 * values[:, index[1]], rtol=1e-6)


@only((effect, toy_effect, {"distance": True}))
def test_ablations_measure_new_effect(toy):
    opened = files.from_folder(files.ROOT / files.SHIPPED)
    bench = Bench(opened, questions(opened, 16))
    table = tables.tabulate_effects(
        bench.effect((Cut(1, "ffn"),), "zero"), bench.baseline
    ).set_index("effect")
    assert table.loc["toy_effect"].whole == 0 < table.loc["toy_effect"].without
    assert set(tables.rank_effects(list(bench.sweep("zero")), bench.baseline).effect) == set(effect)


@pytest.mark.parametrize(
    "page, params",
    [
        ("1_One_block", {"view": "stages"}),
        ("2_Depth", {"show": "statistics"}),
        ("2_Depth", {"show": "grid"}),
        ("5_Trained_model", {"taken": "knockout", "out": "1.ffn"}),
        ("5_Trained_model", {"taken": "sweep"}),
    ],
    ids=str,
)
def test_views_that_show_it_open(toy, page, params):
    app = AppTest.from_file("../../app.py", default_timeout=60)
    app.switch_page(f"pages/{page}.py")
    ranked = (
        {"rank_by": toy.__name__} if toy is toy_effect and params.get("taken") == "sweep" else {}
    )
    coloured = (
        {"grid_statistic": toy.__name__}
        if toy is toy_statistic and params.get("show") == "grid"
        else {}
    )
    fresh = (
        {"texts": f"{24 + 8 * TOYS.index(toy)}"}
        if "taken" in params
        else {"seed": f"{77 + TOYS.index(toy)}"}
    )
    for name, value in (
        params | ranked | coloured | fresh
    ).items():  # fresh: nothing that is kept from before
        app.query_params[name] = value
    app.run()
    assert not app.exception and not app.error, [
        element.value for element in (*app.exception, *app.error)
    ]
