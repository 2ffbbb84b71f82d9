"""The page "Depth" and pins: every view, link and button, without a traceback."""

import re

import pytest

from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth
from core.model.config import Config
from core.model.text import Input
from core.model.variants import Pins, ablation, encode
from core.settings.device import Machine
from tests import pages
from tests.pages import control, legend, link, move_control, press, setting, words
from tests.pages import tables as tables_of
from tests.test_page import fine, moved
from ui.depth.context import DepthLook
from ui.kit.pins import PILLS

KINDS = (Input, Config, Machine, Depth, Pins, DepthLook, Axes)
DEPTH = "pages/2_Depth.py"
BLOCK = "pages/1_One_block.py"


def opened(page=DEPTH, **params):
    return pages.opened(page, **params)


def captions(app) -> str:
    return " ".join(caption.value for caption in app.caption).replace("\\", "")


def names(app) -> list[str]:
    """Return the names in the legend, baseline first."""
    return [n.strip() for n in re.findall(r"●</span> ([^<]*)", legend(app))]


def test_page_opens_on_ten_passes_without_comparison():
    app = fine(opened())
    assert link(app) == {}
    assert setting(app, "passes") == 10
    assert "Random weights" in control(app, "words")["html"]
    assert names(app) == ["Baseline (current settings)"]
    app = fine(opened(variants="norm-none"))
    assert names(app) == ["Baseline (current settings)", "− norm"]
    assert (
        "Random weights, seed 0. All variants share the input and the random initialisation"
        in legend(app)
    )


def test_page_shows_its_question_and_the_next_step():
    assert "when one block is applied 10 times?" in legend(fine(opened()))
    assert "Compare with" in legend(fine(opened()))
    assert "Compare with" not in legend(fine(opened(variants="norm-none")))


@pytest.mark.parametrize(
    ("params", "count", "sentence"),
    [
        ({}, 100, "Norm placement has no effect"),
        ({"grid": "norm-none__residual-both__activation-relu__n_heads-1"}, 1, "1 combination"),
        ({"grid": "norm-RMSNorm"}, 40, ""),
    ],
)
def test_grid_lists_equal_combinations(params, count, sentence):
    app = fine(opened(show="grid", **params))
    text = " ".join(
        [
            *(element.proto.body for element in app.get("html")),
            *(element.value for element in app.markdown),
        ]
    )
    assert re.search(rf"\b{count} variants?, after the last pass", text)
    captions = " ".join(caption.value for caption in app.caption).replace("\\", "")
    assert sentence in captions and bool(sentence) == ("omitted" in captions)


def test_impossible_variant_is_left_out_with_reason():
    app = fine(opened(d_model="72", variants="n_heads-5~norm-none"))
    assert "5 heads skipped" in captions(app) and "must divide" in captions(app)
    assert names(app)[1:] == ["− norm"]
    app = fine(opened(norm="none", variants="norm-none"))
    assert "norm skipped: same as the baseline" in captions(app)


@pytest.mark.parametrize("name", ablation)
def test_click_adds_and_second_click_removes_ablation(name):
    text = encode(ablation[name])
    label = ablation.label(name)
    app = opened(variants="none", position="learned")
    move_control(app, PILLS, [text])
    assert link(fine(app))["variants"] == text
    assert names(app)[1:] == [label]
    move_control(app, PILLS, [])
    assert link(fine(app)) == {"position": "learned"}
    assert len(names(app)) == 1


def offered(app) -> list[str]:
    """Return the options of the row of pills."""
    return words(app, PILLS)


def test_ablations_without_effect_are_not_offered():
    assert "− positions" not in offered(opened())
    assert "− positions" in offered(opened(position="rope"))
    assert "− norm" not in offered(opened(norm="none", variants="none"))


def test_fifth_variant_is_refused_and_four_stay():
    four = [encode(part) for part in ablation.values()][:4]
    app = opened(variants="~".join(four))
    move_control(app, PILLS, [*four, "n_heads-1"])
    assert "up to 4 variants" in fine(app).toast[0].value
    assert link(app)["variants"] == "~".join(four)
    assert control(app, PILLS)["value"] == four
    assert len(names(app)) == 5


def test_pinning_keeps_the_baseline_while_the_sidebar_moves():
    app = press(moved(opened(), d_ff=128), "pin")
    assert link(app) == {"d_ff": "128", "baseline": "d_ff-128"}
    assert names(app) == ["Baseline (d_ff 128)"]
    app = moved(app, n_heads=8, residual_ffn=False)
    assert names(app)[-1] == "now: 8 heads, − residual (FFN)"
    app = press(app, "keep")
    assert link(app)["variants"] == "n_heads-8__residual_ffn-off"
    assert names(app) == ["Baseline (d_ff 128)", "8 heads, − residual (FFN)"]
    app = press(app, "pin")
    assert link(app) == {"d_ff": "128", "variants": "n_heads-8__residual_ffn-off"}
    assert setting(app, "n_heads") == 4


def test_pins_travel_between_pages_with_settings():
    app = moved(opened(variants="ffn-off~scale-off", passes="5"), mask="causal")
    app.query_params.clear()
    app.switch_page(BLOCK).run()
    assert link(fine(app)) == {
        "variants": "ffn-off~scale-off"
    }  # a trained model has settings of its own
    app = press(move_control(app, "weights", "random"), "pin")
    app.query_params.clear()
    app.switch_page(DEPTH).run()
    as_trained = {"n_layers": "2", "position": "rope", "mask": "causal"}
    pinned = as_trained | {
        "variants": "ffn-off~scale-off",
        "baseline": "n_layers-2__position-rope__mask-causal",
    }
    assert link(fine(app)) == pinned | {"passes": "5"}
    assert link(moved(app, seed=3)) == pinned | {"passes": "5", "seed": "3"}


def test_link_reopens_the_same_page():
    app = press(
        moved(opened(show="grid", grid_order="largest"), d_model=32, activation="relu"), "pin"
    )
    app = moved(app, n_heads=2, passes=7, blocks="separate")
    repeated = fine(opened(**link(app)))
    assert link(repeated) == link(app)
    assert {k: setting(repeated, k) for kind in KINDS for k in kind.settings()} == {
        k: setting(app, k) for kind in KINDS for k in kind.settings()
    }


@pytest.mark.parametrize(
    "page, params, tables",
    [
        (
            BLOCK,
            {"view": "stages"},
            {"Statistics of every stage", "Activations at every stage of the block"},
        ),
        (BLOCK, {"view": "neurons"}, {"The strongest hidden units of this token"}),
        (
            BLOCK,
            {"view": "compare"},
            {"Baseline and variants", "Attention of each variant, averaged over its heads"},
        ),
        (BLOCK, {"maps": "one"}, {"Attention map of head 2.1"}),
        (DEPTH, {}, {"statistics"}),
        (
            DEPTH,
            {"show": "gradients"},
            {"gradient curves", "Gradient norm of each parameter tensor; columns are variants"},
        ),
        (DEPTH, {"show": "grid"}, {"RMS of every variant in the grid"}),
    ],
    ids=lambda p: str(sorted(p) if isinstance(p, set) else p)[:40],
)
def test_tables_are_offered_as_csv(page, params, tables):
    app = opened(page, **params)
    offered = tables_of(app)
    assert tables <= set(offered)
    for name, make in offered.items():
        table = make()
        assert len(table) and len(table.to_csv(index=False).splitlines()) > 1, name
