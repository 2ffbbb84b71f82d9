"""Core against PyTorch's own layers with the same weights, and positions against their closed forms."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from core import Block, Config, MultiHeadAttention, Transformer, trace
from core.parts import MENUS
from core.parts.position import sinusoid

CONFIG = Config(d_model=32, n_heads=4, d_ff=48, seed=3)
REAL = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])  # False where padding
MASKS = list(MENUS["mask"])


def same(got, right):
    torch.testing.assert_close(got, right, rtol=1e-5, atol=1e-5)


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def shake(module):
    """Moves every norm's gain and bias away from 1 and 0, so that a forgotten one shows."""
    with torch.no_grad():
        for at, (name, parameter) in enumerate(module.named_parameters()):
            if name.startswith("ln") or name in ("weight", "bias"):
                parameter += 0.3 * numbers(*parameter.shape, seed=at)
    return module


def forbidden(mask, length):
    """The same mask in PyTorch's way of writing it: True where a query may not look."""
    allowed = MENUS["mask"][mask](length)
    return None if allowed is None else ~allowed


def allowed(mask, real):
    """What core.model.Transformer hands to its blocks."""
    seen = MENUS["mask"][mask](real.shape[1])
    keys = real[:, None, None, :]
    return keys if seen is None else keys & seen


def torch_attention(ours, config):
    theirs = nn.MultiheadAttention(config.d_model, config.n_heads, bias=config.bias, batch_first=True)
    state = {"in_proj_weight": ours.qkv.weight, "out_proj.weight": ours.out.weight}
    if config.bias:
        state |= {"in_proj_bias": ours.qkv.bias, "out_proj.bias": ours.out.bias}
    theirs.load_state_dict(state)
    return theirs.eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_multi_head_attention(mask, padded, bias):
    config = CONFIG.replace(bias=bias)
    ours, x = MultiHeadAttention(config), numbers(2, 6, 32)
    with torch.no_grad(), trace() as seen:
        got = ours(x, allowed(mask, REAL) if padded else MENUS["mask"][mask](6))
    with torch.no_grad():
        right, pattern = torch_attention(ours, config)(
            x,
            x,
            x,
            attn_mask=forbidden(mask, 6),
            key_padding_mask=~REAL if padded else None,
            need_weights=True,
            average_attn_weights=False,
        )
    same(got, right)
    same(seen["pattern"][0], pattern)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_scaled_dot_product_attention(mask, padded, scale):
    seen_by = allowed(mask, REAL) if padded else MENUS["mask"][mask](6)
    with torch.no_grad(), trace() as seen:
        MultiHeadAttention(CONFIG.replace(scale=scale))(3 * numbers(2, 6, 32), seen_by)
    q, k, v = (seen[site][0] for site in "qkv")
    right = F.scaled_dot_product_attention(q, k, v, attn_mask=seen_by, scale=None if scale else 1.0)
    same(seen["z"][0], right)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_encoder_layer(norm_first, padded, mask, activation, bias):
    config = CONFIG.replace(placement="pre" if norm_first else "post", activation=activation, bias=bias)
    ours, x = shake(Block(config)), numbers(2, 6, 32)
    theirs = nn.TransformerEncoderLayer(
        32, 4, 48, activation=activation, norm_first=norm_first, bias=bias, batch_first=True
    )
    names = {
        "attn.qkv.": "self_attn.in_proj_",
        "attn.out.": "self_attn.out_proj.",
        "mlp.w_in.": "linear1.",
        "mlp.w_out.": "linear2.",
        "ln1.": "norm1.",
        "ln2.": "norm2.",
    }
    state = {}
    for name, tensor in ours.state_dict().items():
        start = next(start for start in names if name.startswith(start))
        state[names[start] + name.removeprefix(start)] = tensor
    theirs.load_state_dict(state)
    with torch.no_grad():
        got = ours(x, allowed(mask, REAL) if padded else MENUS["mask"][mask](6))
        right = theirs.eval()(x, src_mask=forbidden(mask, 6), src_key_padding_mask=~REAL if padded else None)
    # PyTorch's fast path returns zeros for padding; what stands there is nobody's business.
    same(got[REAL], right[REAL]) if padded else same(got, right)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])  # 1e-3: there the variance is below epsilon, so epsilon shows
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm(bias, size):
    ours, theirs = shake(MENUS["norm"]["LayerNorm"]("ln1", 32, bias)), nn.LayerNorm(32, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x = size * (numbers(2, 6, 32) + 0.5)
    same(ours(x), theirs(x))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_rms_norm(size):
    ours, theirs = shake(MENUS["norm"]["RMSNorm"]("ln1", 32)), nn.RMSNorm(32, eps=1e-5)
    theirs.load_state_dict(ours.state_dict())
    x = size * (numbers(2, 6, 32) + 0.5)
    same(ours(x), theirs(x))


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu", "tanh", "identity"])
def test_activations(name):
    theirs = {
        "relu": nn.ReLU(),
        "gelu": nn.GELU(),
        "gelu_tanh": nn.GELU("tanh"),
        "silu": nn.SiLU(),
        "tanh": nn.Tanh(),
        "identity": nn.Identity(),
    }[name]
    x = torch.linspace(-8, 8, 101)
    same(MENUS["activation"][name](x), theirs(x))


# Positions


def scores_of(tokens, position, words="abcdefgh"):
    config = Config(d_model=32, n_heads=4, d_ff=8, seed=3, position=position)
    with torch.no_grad(), trace(sites=["scores"]) as seen:
        Transformer(config, words)(torch.tensor([tokens]))
    return seen["scores"][0][0]  # (heads, queries, keys)


@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
def test_scores_of_relative_positions_do_not_change_when_all_tokens_move(position):
    there = scores_of([1, 2, 3, 4, 2], position)
    moved = scores_of([7, 7, 7, 1, 2, 3, 4, 2], position)[:, 3:, 3:]
    same(moved, there)


@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_scores_of_absolute_positions_do_change(position):
    """Shows that the test above could fail."""
    there = scores_of([1, 2, 3, 4, 2], position)
    moved = scores_of([7, 7, 7, 1, 2, 3, 4, 2], position)[:, 3:, 3:]
    assert (moved - there).abs().max() > 0.01


@pytest.mark.parametrize("position", ["rope", "alibi"])
def test_scores_of_a_repeated_token_depend_on_distance_and_on_nothing_else(position):
    scores = scores_of([1] * 8, position)
    same(scores[:, 1:, 1:], scores[:, :-1, :-1])  # equal along every diagonal
    assert (scores[:, 0, 1:] - scores[:, 0, :1]).abs().amax(-1).min() > 1e-3  # and different across, in every head


def test_rope_keeps_lengths_and_leaves_position_0_alone():
    def queries(position):
        with torch.no_grad(), trace(sites=["q"]) as seen:
            MultiHeadAttention(CONFIG.replace(position=position))(numbers(2, 6, 32))
        return seen["q"][0]

    plain, turned = queries("none"), queries("rope")
    same(turned.norm(dim=-1), plain.norm(dim=-1))
    assert torch.equal(turned[:, :, 0], plain[:, :, 0])
    assert (turned[:, :, 1:] - plain[:, :, 1:]).abs().amax(-1).min() > 1e-3


@pytest.mark.parametrize("width", [1, 2, 9, 64])
def test_sinusoids_against_the_closed_form(width):
    length = 256
    right = np.empty((length, width))
    for t in range(length):
        for i in range(width):
            angle = t / 10000 ** ((i - i % 2) / width)
            right[t, i] = math.cos(angle) if i % 2 else math.sin(angle)
    np.testing.assert_allclose(sinusoid(length, width).numpy(), right, rtol=0, atol=1e-7)
