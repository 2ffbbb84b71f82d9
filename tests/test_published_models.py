"""Core against Hugging Face's models of 2022 to 2026, small and with random weights.

Each uses some of core's parts together. Features that core does not have are folded into the
weights, such as a factor on the embedding and a gain counted from 1.
"""

import pytest
import torch

from core.model.config import Config
from core.model.transformer import Transformer

transformers = pytest.importorskip("transformers")

WORDS = tuple("abcdefghijk")
SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
OURS = {
    "d_model": 32,
    "n_heads": 4,
    "n_kv_heads": 2,
    "n_layers": 4,
    "d_ff": 24,
    "bias": False,
    "norm": "RMSNorm",
    "mask": "causal",
    "position": "rope",
    "activation": "swiglu",
}
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 10], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8]])
EPSILON = {"rms_norm_eps": 1e-5}
NORMS = {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"}
SANDWICH = {
    "ln1": "input_layernorm",
    "ln1_post": "post_attention_layernorm",
    "ln2": "pre_feedforward_layernorm",
    "ln2_post": "post_feedforward_layernorm",
}


def rope(theta):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta}}


def llama():
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**SIZES, **EPSILON, **rope(500.0))
    )
    return theirs, Config(**OURS, rope_base=500.0), NORMS, 0


def qwen3():
    """Qwen 3: QK-norm and an independent head width."""
    theirs = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**SIZES, **EPSILON, **rope(10000.0), head_dim=12)
    )
    return theirs, Config(**OURS, d_head=12, qk_norm=True), NORMS, 0


def olmo2():
    """OLMo 2: norms on outputs, QK-norm over all heads together."""
    theirs = transformers.Olmo2ForCausalLM(
        transformers.Olmo2Config(**SIZES, **EPSILON, **rope(10000.0))
    )
    norms = {"ln1": "post_attention_layernorm", "ln2": "post_feedforward_layernorm"}
    return theirs, Config(**OURS, placement="output", qk_norm=True, qk_norm_joint=True), norms, 0


def llama_with_biases_beside_attention():
    """Llama with biases in the feed-forward network alone."""
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            **SIZES, **EPSILON, **rope(500.0), mlp_bias=True, attention_bias=False
        )
    )
    return theirs, Config(**OURS | {"bias": True}, attention_bias=False, rope_base=500.0), NORMS, 0


def llama_with_biases_in_attention():
    """Llama with biases in attention alone."""
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            **SIZES, **EPSILON, **rope(500.0), mlp_bias=False, attention_bias=True
        )
    )
    return theirs, Config(**OURS, attention_bias=True, rope_base=500.0), NORMS, 0


def large_epsilon():
    """Qwen 3 with an epsilon large enough to matter, also in QK-norm."""
    theirs = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**SIZES, **rope(10000.0), rms_norm_eps=0.1, head_dim=12)
    )
    return theirs, Config(**OURS, d_head=12, qk_norm=True, norm_eps=0.1), NORMS, 0


def gemma2():
    """Gemma 2: sandwich norms, both soft-caps, a window in every other layer, GeGLU.

    Queries are divided by √(width) of their own choice.
    """
    theirs = transformers.Gemma2ForCausalLM(
        transformers.Gemma2Config(
            **SIZES,
            **EPSILON,
            **rope(10000.0),
            head_dim=8,
            query_pre_attn_scalar=8,
            sliding_window=4,
            attn_logit_softcapping=0.7,
            final_logit_softcapping=1.5,
            hidden_activation="gelu_pytorch_tanh",
        )
    )
    changes = {
        "placement": "sandwich",
        "activation": "geglu_tanh",
        "window": 4,
        "global_every": 2,
        "score_cap": 0.7,
        "logit_cap": 1.5,
    }
    return theirs, Config(**OURS | changes), SANDWICH, 1


def gemma3():
    """Gemma 3: sandwich norms, QK-norm, a window and its own RoPE base but in every third layer."""
    theirs = transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(
            **SIZES,
            **EPSILON,
            head_dim=8,
            query_pre_attn_scalar=8,
            sliding_window=3,
            hidden_activation="gelu",
            layer_types=[
                "sliding_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
            ],
            rope_parameters={
                kind: {"rope_type": "default", "rope_theta": base}
                for kind, base in (("sliding_attention", 100.0), ("full_attention", 10000.0))
            },
        )
    )
    changes = {
        "placement": "sandwich",
        "activation": "geglu",
        "qk_norm": True,
        "window": 3,
        "global_every": 3,
        "local_rope_base": 100.0,
    }
    return theirs, Config(**OURS | changes), SANDWICH, 1


def smollm3():
    """SmolLM3: no positions in every second layer."""
    theirs = transformers.SmolLM3ForCausalLM(
        transformers.SmolLM3Config(**SIZES, **EPSILON, **rope(2000.0), no_rope_layer_interval=2)
    )
    return theirs, Config(**OURS, rope_base=2000.0, nope_every=2), NORMS, 0


def gpt_neox():
    """GPT-NeoX: parallel sub-layers, RoPE on a quarter of each head, LayerNorm and biases."""
    sizes = {name: value for name, value in SIZES.items() if name != "num_key_value_heads"}
    theirs = transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(
            **sizes,
            hidden_act="gelu",
            use_parallel_residual=True,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.25,
            },
        )
    )
    config = Config(
        **OURS | {"n_kv_heads": 4, "bias": True, "norm": "LayerNorm", "activation": "gelu"},
        parallel=True,
        rope_share=0.25,
    )
    return theirs, config, NORMS, 0


def gpt_oss():
    """gpt-oss: a sink in every softmax and a window in every other layer.

    One network replaces its experts.
    """
    from transformers.models.llama.modeling_llama import LlamaMLP

    class OneExpert(LlamaMLP):
        def forward(self, x):
            return super().forward(x), None

    theirs = transformers.GptOssForCausalLM(
        transformers.GptOssConfig(
            **SIZES,
            **EPSILON,
            **rope(10000.0),
            head_dim=8,
            sliding_window=3,
            num_local_experts=2,
            attention_bias=False,
        )
    )
    for layer in theirs.model.layers:
        layer.mlp = OneExpert(transformers.LlamaConfig(**SIZES))
        torch.nn.init.zeros_(layer.self_attn.sinks)
    return theirs, Config(**OURS, window=3, global_every=2, softmax="sink"), NORMS, 0


MODELS = [
    gpt_oss,
    llama,
    llama_with_biases_beside_attention,
    llama_with_biases_in_attention,
    large_epsilon,
    qwen3,
    olmo2,
    gemma2,
    gemma3,
    smollm3,
    gpt_neox,
]


def shaken(theirs):
    """Draw weights that show a forgotten gain or bias, with attention far from uniform."""
    stream = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            size = 1.0
            if parameter.ndim == 1:
                size = 0.3
            elif "embed" not in name:
                size = parameter.shape[-1] ** -0.5
            parameter.add_(
                size * torch.randn(parameter.shape, generator=stream, dtype=parameter.dtype)
            )
    theirs.set_attn_implementation("eager")
    return theirs.eval()


def by_our_names(theirs, config, norms, gain_offset):
    """Map their weights, or their gradients, to core's names.

    Args:
        one: what their gains are counted from, 0 or 1.

    Returns:
        core's name -> a function from their tensors by name to core's tensor.
    """
    neox = hasattr(theirs, "gpt_neox")
    body, layers, last = (
        ("gpt_neox", "layers", "final_layer_norm") if neox else ("model", "layers", "norm")
    )
    heads = config.n_heads
    size = config.d_head

    def rows(name):  # GPT-NeoX has queries, keys and values head by head
        return lambda w: w[name].unflatten(0, (heads, 3, size)).transpose(0, 1).flatten(0, 2)

    tensors = {
        "embed": lambda w: w[f"{body}.{'embed_in' if neox else 'embed_tokens'}.weight"],
        "unembed.weight": lambda w: w["lm_head.weight"],
    }
    tensors["ln_final.weight"] = lambda w: w[f"{body}.{last}.weight"]
    if neox:
        tensors["ln_final.bias"] = lambda w: w[f"{body}.{last}.bias"]
    for layer in range(config.n_layers):
        their_prefix = f"{body}.{layers}.{layer}"
        our_prefix = f"blocks.{layer}"
        for kind in ("weight", "bias")[: 1 + neox]:
            for ours, name in norms.items():
                tensors[f"{our_prefix}.{ours}.{kind}"] = (
                    lambda w, name=f"{their_prefix}.{name}.{kind}": w[name]
                )
            if neox:
                tensors[f"{our_prefix}.attn.qkv.{kind}"] = rows(
                    f"{their_prefix}.attention.query_key_value.{kind}"
                )
                for ours, name in {
                    "attn.out": "attention.dense",
                    "mlp.w_in": "mlp.dense_h_to_4h",
                    "mlp.w_out": "mlp.dense_4h_to_h",
                }.items():
                    tensors[f"{our_prefix}.{ours}.{kind}"] = (
                        lambda w, name=f"{their_prefix}.{name}.{kind}": w[name]
                    )
        if not neox:
            tensors[f"{our_prefix}.attn.qkv.weight"] = lambda w, index=their_prefix: torch.cat(
                [w[f"{index}.self_attn.{item}_proj.weight"] for item in "qkv"]
            )
            tensors[f"{our_prefix}.attn.out.weight"] = lambda w, index=their_prefix: w[
                f"{index}.self_attn.o_proj.weight"
            ]
            tensors[f"{our_prefix}.mlp.w_in.weight"] = lambda w, index=their_prefix: torch.cat(
                [w[f"{index}.mlp.{item}_proj.weight"] for item in ("up", "gate")]
            )
            tensors[f"{our_prefix}.mlp.w_out.weight"] = lambda w, index=their_prefix: w[
                f"{index}.mlp.down_proj.weight"
            ]
            if config.attention_bias:
                tensors[f"{our_prefix}.attn.qkv.bias"] = lambda w, index=their_prefix: torch.cat(
                    [w[f"{index}.self_attn.{item}_proj.bias"] for item in "qkv"]
                )
                tensors[f"{our_prefix}.attn.out.bias"] = lambda w, index=their_prefix: w[
                    f"{index}.self_attn.o_proj.bias"
                ]
            if config.bias:
                tensors[f"{our_prefix}.mlp.w_in.bias"] = lambda w, index=their_prefix: torch.cat(
                    [w[f"{index}.mlp.{item}_proj.bias"] for item in ("up", "gate")]
                )
                tensors[f"{our_prefix}.mlp.w_out.bias"] = lambda w, index=their_prefix: w[
                    f"{index}.mlp.down_proj.bias"
                ]
            if config.softmax == "sink":
                tensors[f"{our_prefix}.attn.softmax.score"] = (
                    lambda w, name=f"{their_prefix}.self_attn.sinks": w[name]
                )
            if config.qk_norm:
                for entry in "qk":
                    tensors[f"{our_prefix}.attn.{entry}_norm"] = (
                        lambda w, name=f"{their_prefix}.self_attn.{entry}_norm.weight": w[name]
                    )
    return tensors


def both(build, dtype):
    theirs, config, norms, gain_offset = build()
    theirs = shaken(theirs).to(dtype)
    names = by_our_names(theirs, config, norms, gain_offset)
    weights = {
        name: make(dict(theirs.named_parameters())).detach().clone() for name, make in names.items()
    }
    if gain_offset:  # Gemma multiplies the embedding by √d_model, and by 1 + gain
        weights["embed"] *= torch.tensor(config.d_model**0.5, dtype=dtype)
        weights |= {
            name: weight + 1
            for name, weight in weights.items()
            if ".ln" in name or name.startswith("ln_") or name.endswith("_norm")
        }
    ours = Transformer(config, WORDS).to(dtype)
    ours.load_state_dict(weights)
    return theirs, ours, names, config


@pytest.mark.parametrize(
    "dtype, near", [(torch.float32, 1e-5), (torch.float64, 1e-6)], ids=str
)  # their angles are float32 even then
@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_logits_and_gradients_are_theirs(build, dtype, near):
    theirs, ours, names, config = both(build, dtype)
    reference = theirs(TOKENS).logits
    got = ours(TOKENS)
    size = reference.abs().max().item()
    assert size > 0.5
    torch.testing.assert_close(got, reference, rtol=0, atol=near * max(1, size))
    way = torch.randn(got.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    (got * way).sum().backward()
    (reference * way).sum().backward()
    gradients = {name: p.grad for name, p in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        expected = names[name](gradients)
        if name == "embed" and "gemma" in build.__name__:
            expected = expected / config.d_model**0.5  # ours is theirs times that
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(
            parameter.grad,
            expected,
            rtol=0,
            atol=5 * near * scale,
            msg=lambda m, name=name: f"{name}: {m}",
        )


@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_components_have_visible_effect(build):
    """Removing any part changes the model, so each part was compared."""
    _, ours, _, config = both(build, torch.float32)
    usual = Config(d_model=32, n_heads=4, n_layers=4)
    state = ours.state_dict()
    with torch.no_grad():
        right = ours(TOKENS)
        for name in (
            "softmax",
            "score_cap",
            "logit_cap",
            "window",
            "global_every",
            "rope_share",
            "rope_base",
            "local_rope_base",
            "nope_every",
            "parallel",
            "norm_eps",
        ):
            if getattr(config, name) == getattr(usual, name):
                continue
            other = Transformer(config.replace(**{name: getattr(usual, name)}), WORDS)
            other.load_state_dict(state, strict=name != "softmax")
            assert (other(TOKENS) - right).abs().max() > 1e-3, name
