"""Published blocks as settings: the numbers of their papers, and their choices one by one."""

import pytest
import torch

from core.experiments.depth.grid import simplify_config
from core.model.config import Config
from core.model.cost import parameters
from core.model.published import CHOICES, GPT2, find_published, list_choices, published
from core.model.transformer import Transformer
from core.model.variants import apply
from tests.test_gpt_neo_bloom_nanochat import nanochat
from tests.test_published_models import gemma3, gpt_oss, llama, olmo2, qwen3

transformers = pytest.importorskip("transformers")

# Blocks whose function is compared with Hugging Face's, as settings of those tests.
COMPARED = {
    "llama3": llama,
    "qwen3": qwen3,
    "gemma3": gemma3,
    "olmo2": olmo2,
    "gpt_oss": gpt_oss,
    "nanochat": nanochat,
}
# Settings that those tests choose otherwise.
FREE = {"bias", "window", "n_kv_heads", "logit_cap"}
# Width, heads, key-value heads and d_ff of the published models (config.json of each; for gpt-oss
# d_ff of four experts).
SIZES = {
    "gpt2": (768, 12, 12, 3072),
    "llama3": (4096, 32, 8, 14336),
    "qwen3": (4096, 32, 8, 12288),
    "gemma3": (1152, 4, 1, 6912),
    "olmo2": (4096, 32, 32, 11008),
    "gpt_oss": (2880, 64, 8, 4 * 2880),
    "nanochat": (1280, 10, 10, 5120),
}
SMALL = [(64, 4), (32, 4), (48, 4), (128, 8)]


def block_of(name: str, d_model: int = 64, n_heads: int = 4) -> Config:
    sizes = {"d_model": d_model, "n_heads": n_heads}
    return Config(**sizes | published[name].settings_at(Config(**sizes)))


@pytest.mark.parametrize("name", COMPARED)
def test_settings_are_those_compared_with_hugging_face(name):
    compared = COMPARED[name]()[1]
    block = block_of(name)
    for field in ({*CHOICES} - FREE) | {"mask", "qk_norm_joint", "global_every", "global_first"}:
        expected = getattr(compared, field)
        if field == "global_every" and name == "gemma3":
            expected = 2  # as its `differs` says
        if field == "activation" and name == "gemma3":
            expected = "geglu_tanh"  # compared with the exact GELU
        assert getattr(block, field) == expected, field
    for field in ("window", "logit_cap", "local_rope_base"):
        assert (getattr(block, field) > 0) == (getattr(compared, field) > 0), field


@pytest.mark.parametrize("name", published)
def test_proportions_are_those_of_the_published_model(name):
    width, heads, kv_heads, d_ff = SIZES[name]
    block = published[name]
    shape = Config(d_model=8 * heads, n_heads=heads)
    assert block.width_at(shape) == round(8 * heads * d_ff / width)
    assert block_of(name, 8 * heads, heads).n_kv_heads == kv_heads


@pytest.mark.parametrize(
    "name, config, field",
    [
        ("gpt_oss", "GptOssConfig", "bias"),
        ("gemma3", "Gemma3TextConfig", "tied"),
        ("nanochat", "NanoChatConfig", "logit_cap"),
        ("nanochat", "NanoChatConfig", "norm_eps"),
        ("gpt_oss", "GptOssConfig", "norm_eps"),
        ("gemma3", "Gemma3TextConfig", "norm_eps"),
        ("gpt2", "GPT2Config", "norm_eps"),
    ],
)
def test_values_are_hugging_faces_defaults(name, config, field):
    theirs = {
        "bias": "attention_bias",
        "tied": "tie_word_embeddings",
        "logit_cap": "final_logit_softcapping",
        "norm_eps": "layer_norm_epsilon" if name == "gpt2" else "rms_norm_eps",
    }[field]
    assert getattr(block_of(name), field) == getattr(getattr(transformers, config)(), theirs)


@pytest.mark.parametrize("name", [name for name in published if name != "gpt2"])
def test_block_without_its_choices_is_gpt2(name):
    plain = block_of(name)
    for change in list_choices(name, plain):
        plain = apply(change, plain)
    gpt2 = Config(**GPT2, mask="causal", d_ff=plain.d_ff, norm_eps=plain.norm_eps)
    gpt2 = gpt2.replace(n_layers=plain.n_layers, tied=plain.tied)
    assert simplify_config(plain, 10, 2)[0] == simplify_config(gpt2, 10, 2)[0]
    assert (plain.norm_gain, plain.logit_cap) == (gpt2.norm_gain, gpt2.logit_cap)


@pytest.mark.parametrize("name", published)
def test_each_choice_changes_the_model(name):
    block = block_of(name).replace(n_layers=2)
    choices = list_choices(name, block)
    assert choices
    tokens = torch.randint(0, 8, (1, 10), generator=torch.Generator().manual_seed(0))
    model = Transformer(block, "abcdefgh")
    for change in choices:
        other = Transformer(apply(change, block), "abcdefgh")
        if "norm_gain" in change:  # gains start at one
            assert len(list(other.parameters())) > len(list(model.parameters()))
        else:
            assert (other(tokens) - model(tokens)).abs().max() > 1e-4, change


@pytest.mark.parametrize("d_model, n_heads", SMALL)
@pytest.mark.parametrize("name", published)
def test_another_activation_keeps_the_parameters(name, d_model, n_heads):
    block = block_of(name, d_model, n_heads)
    for change in list_choices(name, block):
        if "activation" in change:
            before, after = (parameters(c)["ffn"] for c in (block, apply(change, block)))
            assert after == pytest.approx(before, rel=0.02)


@pytest.mark.parametrize("d_model, n_heads", SMALL)
@pytest.mark.parametrize("name", published)
def test_open_block_is_found_at_any_size(name, d_model, n_heads):
    block = block_of(name, d_model, n_heads)
    assert find_published(block.replace(n_layers=3, seed=5)) == name
    for change in list_choices(name, block):
        if change != {"qk_norm": False}:  # Qwen 3 without it differs from Llama 3 in numbers only
            assert find_published(apply(change, block)) is None, change
        assert find_published(apply(change, block)) != name


@pytest.mark.parametrize("change", [{"mask": "none"}, {"ffn": False}, {"parallel": True}, {}])
def test_other_blocks_are_no_published_one(change):
    block = block_of("gpt2") if change else Config()
    assert find_published(block.replace(**change)) is None
