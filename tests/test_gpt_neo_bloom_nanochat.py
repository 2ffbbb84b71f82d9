"""Core against Hugging Face's GPT-Neo, BLOOM and nanochat, small and with random weights.

Each uses settings that no model of tests/test_published_models.py has: global layers counted from
the first (GPT-Neo), a norm on the embeddings (BLOOM, nanochat) and norms without gains (nanochat).
"""

import pytest
import torch

from core.model.config import Config
from core.model.transformer import Transformer
from tests.test_published_models import EPSILON, SIZES, TOKENS, WORDS, shaken

transformers = pytest.importorskip("transformers")

HEADS = 4
WIDTH = 32
SIZE = WIDTH // HEADS
COMMON = {"d_model": WIDTH, "n_heads": HEADS, "n_layers": 4, "mask": "causal"}


def copy_names(names):
    """Return {our name: function of their tensors} that copies; names: ours -> theirs."""
    return {ours: lambda w, name=name: w[name] for ours, name in names.items()}


def with_biases(names):
    """Return names of weights, and the same of their biases."""
    return {f"{a}.{kind}": f"{b}.{kind}" for a, b in names.items() for kind in ("weight", "bias")}


def gpt_neo():
    """GPT-Neo: layers without and with a window take turns; scores are not scaled."""
    theirs = transformers.GPTNeoForCausalLM(
        transformers.GPTNeoConfig(
            vocab_size=len(WORDS),
            hidden_size=WIDTH,
            num_layers=4,
            num_heads=HEADS,
            intermediate_size=24,
            max_position_embeddings=272,
            attention_types=[[["global", "local"], 2]],
            window_size=3,
            activation_function="gelu_new",
        )
    )
    config = Config(
        **COMMON,
        d_ff=24,
        activation="gelu_tanh",
        position="learned",
        tied=True,
        scale=False,
        window=3,
        global_every=2,
        global_first=True,
    )
    names = {
        "embed": lambda w: w["transformer.wte.weight"],
        "position.weight": lambda w: w["transformer.wpe.weight"],
    }
    copied = {"ln_final": "transformer.ln_f"}
    for layer in range(config.n_layers):
        ours = f"blocks.{layer}"
        them = f"transformer.h.{layer}"
        copied |= {
            f"{ours}.ln1": f"{them}.ln_1",
            f"{ours}.ln2": f"{them}.ln_2",
            f"{ours}.attn.out": f"{them}.attn.attention.out_proj",
            f"{ours}.mlp.w_in": f"{them}.mlp.c_fc",
            f"{ours}.mlp.w_out": f"{them}.mlp.c_proj",
        }
        names[f"{ours}.attn.qkv.weight"] = lambda w, them=them: torch.cat(
            [w[f"{them}.attn.attention.{part}_proj.weight"] for part in "qkv"]
        )
        # They have no biases there.
        names[f"{ours}.attn.qkv.bias"] = lambda w: w["lm_head.weight"].new_zeros(3 * WIDTH)
    return theirs, config, names | copy_names(with_biases(copied))


def bloom():
    """BLOOM: a LayerNorm on the embeddings, ALiBi."""
    theirs = transformers.BloomForCausalLM(
        transformers.BloomConfig(vocab_size=len(WORDS), hidden_size=WIDTH, n_layer=4, n_head=HEADS)
    )
    config = Config(
        **COMMON, activation="gelu_tanh", position="alibi", tied=True, embedding_norm=True
    )

    def by_kind(name):  # theirs are queries, keys and values head by head
        return lambda w: w[name].unflatten(0, (HEADS, 3, SIZE)).transpose(0, 1).flatten(0, 2)

    names = {"embed": lambda w: w["transformer.word_embeddings.weight"]}
    copied = {
        "ln_embed": "transformer.word_embeddings_layernorm",
        "ln_final": "transformer.ln_f",
    }
    for layer in range(config.n_layers):
        ours = f"blocks.{layer}"
        them = f"transformer.h.{layer}"
        copied |= {
            f"{ours}.ln1": f"{them}.input_layernorm",
            f"{ours}.ln2": f"{them}.post_attention_layernorm",
            f"{ours}.attn.out": f"{them}.self_attention.dense",
            f"{ours}.mlp.w_in": f"{them}.mlp.dense_h_to_4h",
            f"{ours}.mlp.w_out": f"{them}.mlp.dense_4h_to_h",
        }
        for kind in ("weight", "bias"):
            names[f"{ours}.attn.qkv.{kind}"] = by_kind(
                f"{them}.self_attention.query_key_value.{kind}"
            )
    return theirs, config, names | copy_names(with_biases(copied))


def nanochat():
    """nanochat: norms without gains, on embeddings and in QK-norm too; ReLU², a cap on logits."""
    theirs = transformers.NanoChatForCausalLM(
        transformers.NanoChatConfig(
            **SIZES,
            **EPSILON,
            final_logit_softcapping=1.5,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        )
    )
    config = Config(
        **COMMON,
        n_kv_heads=2,
        d_ff=24,
        bias=False,
        norm="RMSNorm",
        norm_gain=False,
        embedding_norm=True,
        qk_norm=True,
        activation="relu2",
        position="rope",
        logit_cap=1.5,
    )

    def swap_halves(weight):  # theirs turn the other way: the halves of each head change places
        return weight.unflatten(0, (-1, 2, SIZE // 2)).flip(1).flatten(0, 2)

    def stack(w, them):
        q, k, v = (w[f"{them}.self_attn.{part}_proj.weight"] for part in "qkv")
        return torch.cat([swap_halves(q), swap_halves(k), v])

    names = {
        "embed": lambda w: w["model.embed_tokens.weight"],
        "unembed.weight": lambda w: w["lm_head.weight"],
    }
    for layer in range(config.n_layers):
        ours = f"blocks.{layer}"
        them = f"model.layers.{layer}"
        names[f"{ours}.attn.qkv.weight"] = lambda w, them=them: stack(w, them)
        names |= copy_names(
            {
                f"{ours}.attn.out.weight": f"{them}.self_attn.o_proj.weight",
                f"{ours}.mlp.w_in.weight": f"{them}.mlp.fc1.weight",
                f"{ours}.mlp.w_out.weight": f"{them}.mlp.fc2.weight",
            }
        )
    return theirs, config, names


MODELS = [gpt_neo, bloom, nanochat]
SETTINGS = ("global_first", "embedding_norm", "scale", "logit_cap", "qk_norm")


def build_both(build, dtype):
    """Return their model, ours with the same weights, and the names of the weights."""
    theirs, config, names = build()
    theirs = shaken(theirs).to(dtype)
    parameters = dict(theirs.named_parameters())
    parameters.setdefault("lm_head.weight", theirs.lm_head.weight)
    ours = Transformer(config, WORDS).to(dtype)
    ours.load_state_dict({name: make(parameters).detach().clone() for name, make in names.items()})
    return theirs, ours, names


@pytest.mark.parametrize("dtype, near", [(torch.float32, 1e-5), (torch.float64, 1e-6)], ids=str)
@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_logits_and_gradients_are_theirs(build, dtype, near):
    theirs, ours, names = build_both(build, dtype)
    expected = theirs(TOKENS).logits
    logits = ours(TOKENS)
    size = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(logits, expected, rtol=0, atol=near * size)
    way = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    (logits * way).sum().backward()
    (expected * way).sum().backward()
    gradients = {name: p.grad for name, p in theirs.named_parameters()}
    gradients.setdefault("lm_head.weight", theirs.lm_head.weight.grad)
    for name, parameter in ours.named_parameters():
        if build is gpt_neo and name.endswith("qkv.bias"):
            continue  # theirs has none
        gradient = names[name](gradients)
        scale = max(1.0, gradient.abs().max().item())
        torch.testing.assert_close(
            parameter.grad,
            gradient,
            rtol=0,
            atol=5 * near * scale,
            msg=lambda m, name=name: f"{name}: {m}",
        )


@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_each_setting_changes_the_logits(build):
    _, ours, _ = build_both(build, torch.float32)
    usual = Config()
    with torch.no_grad():
        logits = ours(TOKENS)
        for name in SETTINGS:
            if getattr(ours.config, name) == getattr(usual, name):
                continue
            other = Transformer(ours.config.replace(**{name: getattr(usual, name)}), WORDS)
            other.load_state_dict(ours.state_dict(), strict=False)
            assert (other(TOKENS) - logits).abs().max() > 1e-3, name
