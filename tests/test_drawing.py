"""The block diagram agrees with the model that ran, whatever is switched."""

import re
import xml.etree.ElementTree as ET

import pytest

from core.experiments.forward import forward
from core.figures.drawing import block_svg
from core.model.config import Config
from core.model.knockout import Cut
from core.model.parts import MENUS
from tests.test_cost import configs

TOKENS = ["a", "b", "<script>", "d"]


def draw(config, layer=0):
    svg = block_svg(forward(config, TOKENS), layer)
    root = ET.fromstring(svg)  # well-formed, or this raises
    return svg, " ".join(root.itertext())


@pytest.mark.parametrize("config", list(configs(25)), ids=str)
def test_diagram_shows_what_ran(config):
    svg, words = draw(config)
    forward_pass = forward(config, TOKENS)
    for name, is_drawn in (
        ("Attention", config.attention),
        ("Feed-forward", config.ffn),
    ):
        assert (f"{name}: off" in words) == (not is_drawn)
    cuts = (config.attention and not config.residual_attention) + (
        config.ffn and not config.residual_ffn
    )
    assert words.count("residual off") == cuts
    assert svg.count('class="sum"') == config.attention + config.ffn - cuts
    norms = sum(site in forward_pass.sites for site in ("ln1", "ln1_post", "ln2", "ln2_post"))
    places = 1 + (config.placement == "sandwich")
    assert (
        words.count(config.norm) == (norms if config.norm != "none" else 0) or config.norm == "none"
    )
    assert words.count("no norm") == (
        places * (config.attention + config.ffn) if config.norm == "none" else 0
    )
    assert f"{len(TOKENS)} × {config.d_model}" in words
    if config.attention:
        assert re.search(rf"{config.n_heads} heads? × {config.d_head} ", words)
        assert re.search(r"Attention (\d key-value heads? \([GM]QA\) )?softmax", words)
        assert ("key-value head" in words) == (config.n_kv_heads < config.n_heads)
        for name, is_drawn in (
            ("QK-norm", config.qk_norm),
            (f"window {config.window}", config.window > 0),
        ):
            assert (name in words) == is_drawn
        assert (f"/√{config.d_head}" in words) == config.scale
        assert ("causal" in words) == (config.mask == "causal")
    if config.ffn:
        assert MENUS["activation"].label(config.activation) in words
        assert f"{config.d_model} → {config.d_ff} → {config.d_model}" in words


def test_pre_and_post_norm_stand_in_another_order():
    for placement, first in (("pre", "LayerNorm"), ("post", "Attention")):
        _, words = draw(Config(placement=placement))
        order = re.findall(r"LayerNorm|Attention", words)
        assert order[0] == first


def test_only_what_differs_from_the_defaults_is_marked():
    assert "changed" not in draw(Config())[0]
    assert "changed" not in draw(Config(d_model=128))[0]  # what only follows is not marked
    for change in ({"d_head": 8}, {"d_head": 16, "d_model": 128}, {"d_ff": 256, "d_model": 128}):
        assert "changed" in draw(Config(**change))[0]
    for change in (
        {"norm": "RMSNorm"},
        {"mask": "causal"},
        {"d_ff": 100},
        {"ffn": False},
        {"residual_ffn": False},
    ):
        assert "changed" in draw(Config(**change))[0]


def test_parallel_ffn_reads_attention_input():
    """The wire to its box begins at the stream, above the first sum, and passes attention by."""
    for parallel in (False, True):
        svg, _ = draw(Config(parallel=parallel))
        wires = [
            part.split() for part in re.findall(r'<polyline class="wire" points="([^"]*)"', svg)
        ]
        starts = [
            tuple(map(float, wire[0].split(","))) for wire in wires if wire[0].startswith("58,")
        ]
        assert len(starts) == 2 and (starts[0] == starts[1]) == parallel
        assert any(point.startswith("291,") for wire in wires for point in wire) == parallel


def test_differing_layers_are_shown_and_current_is_marked():
    config = Config(n_layers=6, window=4, global_every=3, position="rope", nope_every=2)
    svg, words = draw(config, layer=2)
    assert "window 4 in layers 1, 2, 4, 5" in words and "positions in layers 1, 3, 5" in words
    rows = [
        re.findall(r'class="layer([^"]*)"', row) for row in re.findall(r"<g><title>.*?</g>", svg)
    ]
    assert [["there" in part.split() for part in row] for row in rows] == [
        [True, True, False, True, True, False],
        [True, False, True, False, True, False],
    ]
    assert all([n for n, part in enumerate(row) if "here" in part.split()] == [2] for row in rows)
    assert "window" not in words.split("Attention")[1].split("weights")[0], (
        "layer 3 sees everything"
    )
    assert "in layers" not in draw(Config(n_layers=6, window=4))[1]


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_heads_stay_in_place_when_one_is_removed(placement):
    """Otherwise the second of two quick clicks would hit another head."""

    def heads(*knocked):
        svg = block_svg(forward(Config(mask="causal", placement=placement), TOKENS), 0, knocked)
        return re.findall(
            r'data-part="1[.]\d"[^>]*><rect class="[^"]*" x="([\d.]+)" y="([\d.]+)"', svg
        )

    places = [heads(*(Cut(0, "head", n) for n in range(count))) for count in range(4)]
    assert len(places[0]) == Config().n_heads and all(place == places[0] for place in places)


LEAST = (
    24 * 300 / 230
)  # units of the drawing: 24 pixels where it is 230 wide, as on a page of 1280 with two of them


def _targets(svg):
    """Return the shorter edge of each part's largest box and whether the part is visible."""
    actual = {}
    for place, shapes in re.findall(r'<g class="part" data-place="([^"]*)"[^>]*>(.*?)</g>', svg):
        boxes = re.findall(
            r'<rect class="([^"]*)" x="[^"]*" y="[^"]*" width="([^"]*)" height="([^"]*)"', shapes
        )
        visible = any(kind != "touch" for kind, *_ in boxes) or "polyline" in shapes
        actual[place] = max(min(float(width), float(height)) for _, width, height in boxes), visible
    return actual


@pytest.mark.parametrize(
    "knocked", [None, (), (Cut(0, "head", 1),)], ids=["settings", "whole", "knocked"]
)
@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(placement="sandwich"),
        Config(placement="post", norm="none"),
        Config(n_heads=16, position="none"),
        Config(attention=False, ffn=False),
    ],
    ids=["pre", "sandwich", "post", "many heads", "off"],
)
def test_clickable_parts_are_visible_and_large_enough(config, knocked):
    targets = _targets(block_svg(forward(config, TOKENS), 0, knocked))
    assert targets
    for place, (least, visible) in targets.items():
        assert visible and least >= LEAST, (place, least)
