"""The picture of the block agrees with the model that ran, whatever is switched."""

import re
import xml.etree.ElementTree as ET

import pytest

from core.experiments.forward import forward
from core.figures.drawing import block_svg, describe
from core.model.config import Config
from core.model.parts import MENUS
from tests.test_cost import configs

TOKENS = ["a", "b", "<script>", "d"]


def drawn(config, layer=0):
    svg = block_svg(forward(config, TOKENS), layer)
    root = ET.fromstring(svg)  # well-formed, or this raises
    return svg, " ".join(root.itertext())


@pytest.mark.parametrize("config", list(configs(25)), ids=str)
def test_what_ran_is_what_is_drawn(config):
    svg, words = drawn(config)
    seen = forward(config, TOKENS)
    for name, there in (
        ("Attention", config.attention),
        ("Feed-forward", config.ffn),
    ):
        assert (f"{name}: off" in words) == (not there)
    cuts = (config.attention and not config.residual_attention) + (config.ffn and not config.residual_ffn)
    assert words.count("residual off") == cuts
    assert svg.count('class="sum"') == config.attention + config.ffn - cuts
    norms = ("ln1" in seen.sites) + ("ln2" in seen.sites)
    assert words.count(config.norm) == (norms if config.norm != "none" else 0) or config.norm == "none"
    assert words.count("no norm") == (config.attention + config.ffn if config.norm == "none" else 0)
    assert f"{len(TOKENS)} × {config.d_model}" in words
    if config.attention:
        assert f"{config.n_heads} head" in words and f" × {config.d_head} softmax" in words
        assert (f"/√{config.d_head}" in words) == config.scale
        assert ("causal" in words) == (config.mask == "causal")
    if config.ffn:
        assert MENUS["activation"].label(config.activation) in words
        assert f"{config.d_model} → {config.d_ff} → {config.d_model}" in words


def test_pre_and_post_norm_stand_in_another_order():
    for placement, first in (("pre", "LayerNorm"), ("post", "Attention")):
        _, words = drawn(Config(placement=placement))
        order = re.findall(r"LayerNorm|Attention", words)
        assert order[0] == first


def test_only_what_differs_from_the_defaults_is_marked():
    assert "changed" not in drawn(Config())[0]
    assert "changed" not in drawn(Config(d_model=128))[0]  # what only follows is not marked
    for change in ({"d_head": 8}, {"d_head": 16, "d_model": 128}, {"d_ff": 256, "d_model": 128}):
        assert "changed" in drawn(Config(**change))[0]
    for change in ({"norm": "RMSNorm"}, {"mask": "causal"}, {"d_ff": 100}, {"ffn": False}, {"residual_ffn": False}):
        assert "changed" in drawn(Config(**change))[0]


def test_the_sentence_for_those_who_cannot_see_it():
    assert describe(Config()) == ("A transformer block: attention, then feed-forward network; LayerNorm before each.")
    odd = describe(Config(attention=False, residual_ffn=False, norm="none"))
    assert odd == "A transformer block: no attention, then feed-forward network without residual; no norm."
