"""Core's layers against PyTorch's with the same weights, and positions against closed forms."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from core import Block, Config, MultiHeadAttention, Transformer, trace
from core.model.block import FeedForward
from core.model.layers import enable_dropout
from core.model.parts import MENUS
from core.model.parts.init import Draw, generator
from core.model.parts.position import sinusoid_table

CONFIG = Config(d_model=32, n_heads=4, d_ff=48, seed=3)
REAL = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])  # False where padding
MASKS = list(MENUS["mask"])


def assert_close(got, right):
    torch.testing.assert_close(got, right, rtol=1e-5, atol=1e-5)


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def shake(module):
    """Move every norm's gain and bias from 1 and 0, so that a forgotten one shows."""
    with torch.no_grad():
        for index, (name, parameter) in enumerate(module.named_parameters()):
            if name.startswith("ln") or name in ("weight", "bias"):
                parameter += 0.3 * numbers(*parameter.shape, seed=index)
    return module


def forbidden(mask, length):
    """Return the mask in PyTorch's convention: True where a query may not attend."""
    allowed = MENUS["mask"][mask](length)
    return None if allowed is None else ~allowed


def allowed(mask, real):
    """Return the mask that core.model.transformer.Transformer passes to its blocks."""
    visible = MENUS["mask"][mask](real.shape[1])
    keys = real[:, None, None, :]
    return keys if visible is None else keys & visible


def torch_attention(ours, config):
    theirs = nn.MultiheadAttention(
        config.d_model, config.n_heads, bias=config.bias, batch_first=True
    )
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
    ours = MultiHeadAttention(config)
    x = numbers(2, 6, 32)
    with torch.no_grad(), trace() as record:
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
    assert_close(got, right)
    assert_close(record["pattern"][0], pattern)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d_head", [1, 3, 8, 13, 40])
@pytest.mark.parametrize("mask", MASKS)
def test_heads_of_any_width_against_one_matrix_per_head(mask, d_head, bias):
    """The output is the sum over heads of softmax(x W_Q (x W_K)ᵀ / √d_head) x W_V W_O.

    Each head has its own four matrices.
    """
    ours = MultiHeadAttention(CONFIG.replace(d_head=d_head, bias=bias))
    x = numbers(2, 6, 32)
    blocked = forbidden(mask, 6)
    size = {"qkv": 3 * 4 * d_head, "out": 32}
    assert {name: tuple(getattr(ours, name).weight.shape) for name in size} == {
        "qkv": (size["qkv"], 32),
        "out": (32, 4 * d_head),
    }
    with torch.no_grad():
        weight = ours.qkv.weight.reshape(3, 4, d_head, 32)
        bias_of = ours.qkv.bias.reshape(3, 4, d_head) if bias else torch.zeros(3, 4, d_head)
        right = torch.zeros(2, 6, 32) + (ours.out.bias if bias else 0)
        for head in range(4):
            q, k, v = (x @ weight[part, head].T + bias_of[part, head] for part in range(3))
            scores = torch.einsum("bqd,bkd->bqk", q, k) / d_head**0.5
            if blocked is not None:
                scores[:, blocked] = -math.inf
            right += (
                scores.softmax(-1) @ v @ ours.out.weight[:, head * d_head : (head + 1) * d_head].T
            )
        assert_close(ours(x, MENUS["mask"][mask](6)), right)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_scaled_dot_product_attention(mask, padded, scale):
    seen_by = allowed(mask, REAL) if padded else MENUS["mask"][mask](6)
    with torch.no_grad(), trace() as record:
        MultiHeadAttention(CONFIG.replace(scale=scale))(3 * numbers(2, 6, 32), seen_by)
    q, k, v = (record[site][0] for site in "qkv")
    right = nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=seen_by, scale=None if scale else 1.0
    )
    assert_close(record["z"][0], right)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_encoder_layer(norm_first, padded, mask, activation, bias):
    config = CONFIG.replace(
        placement="pre" if norm_first else "post", activation=activation, bias=bias
    )
    ours = shake(Block(config))
    x = numbers(2, 6, 32)
    theirs = encoder_layer(ours, config)
    with torch.no_grad():
        got = ours(x, allowed(mask, REAL) if padded else MENUS["mask"][mask](6))
        right = theirs.eval()(
            x, src_mask=forbidden(mask, 6), src_key_padding_mask=~REAL if padded else None
        )
    # PyTorch's fast path returns zeros for padding; what stands there is nobody's business.
    assert_close(got[REAL], right[REAL]) if padded else assert_close(got, right)


@pytest.mark.parametrize("eps", [1e-6, 1e-5, 0.1])
@pytest.mark.parametrize("norm_first", [True, False])
def test_epsilon_is_layer_norm_eps_of_pytorch(norm_first, eps):
    config = CONFIG.replace(
        placement="pre" if norm_first else "post", activation="relu", norm_eps=eps
    )
    # the variance is below epsilon
    ours = shake(Block(config))
    x = 1e-3 * numbers(2, 6, 32)
    with torch.no_grad():
        assert_close(ours(x), encoder_layer(ours, config).eval()(x))


def encoder_layer(ours, config):
    """Return PyTorch's layer with the weights of one of our blocks."""
    theirs = nn.TransformerEncoderLayer(
        32,
        4,
        48,
        activation=config.activation,
        norm_first=config.placement == "pre",
        bias=config.bias,
        layer_norm_eps=config.norm_eps,
        dropout=config.dropout,
        batch_first=True,
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
    return theirs


class Masked(nn.Module):
    """Dropout with masks from a given random stream."""

    def __init__(self, share, stream):
        super().__init__()
        self.share = share
        self.stream = stream

    def forward(self, x):
        return x * (torch.rand(x.shape, generator=self.stream) >= self.share) / (1 - self.share)


@pytest.mark.parametrize("hidden", [True, False])
def test_ffn_dropout_is_where_pytorch_has_it(hidden):
    """Both draw masks from the same stream, so the numbers agree only if the places do."""
    config = CONFIG.replace(activation="relu", dropout=0.4, ffn_dropout=hidden)
    ours = Block(config)
    x = numbers(2, 6, 32)
    stream = generator(0, "masks")
    theirs = encoder_layer(ours, config)
    theirs.dropout = Masked(0.4, stream) if hidden else nn.Identity()
    theirs.dropout2 = Masked(0.4, stream)
    with (
        torch.no_grad(),
        trace(sites=["mlp_post"]) as record,
        enable_dropout(generator(0, "masks")),
    ):
        got = ours.mlp(x)
    with torch.no_grad():
        assert_close(got, theirs._ff_block(x))
        assert_close(
            record["mlp_post"][0], theirs.activation(theirs.linear1(x))
        )  # recorded before dropout


def test_dropout_on_hidden_units_acts_only_where_dropout_does():
    x = numbers(2, 6, 32)
    plain = FeedForward(CONFIG)(x)
    assert torch.equal(FeedForward(CONFIG.replace(dropout=0.4, ffn_dropout=True))(x), plain)
    with enable_dropout(generator(0, "masks")):
        assert torch.equal(FeedForward(CONFIG.replace(ffn_dropout=True))(x), plain)


INITIALS = {
    "xavier": nn.init.xavier_uniform_,
    "xavier_normal": nn.init.xavier_normal_,
    "normal_002": lambda x, generator: nn.init.normal_(x, std=0.02, generator=generator),
    "normal_1": nn.init.normal_,
}


@pytest.mark.parametrize("name", INITIALS)
def test_initial_weights_are_those_of_pytorch(name):
    draw = Draw(MENUS["init"][name], seed=3)
    right = INITIALS[name](torch.empty(250, 80), generator=draw.stream("W"))
    torch.testing.assert_close(draw.weight("W", 250, 80), right, rtol=1e-6, atol=1e-7)


def test_normal_1_with_biases_draws_them_as_pytorch_does():
    draw, usual = (Draw(MENUS["init"][name], seed=3) for name in ("normal_1_biases", "normal_1"))
    right = nn.init.normal_(torch.empty(250), generator=draw.stream("b"))
    assert torch.equal(draw.bias("b", 250, 80), right) and not usual.bias("b", 250, 80).any()
    assert torch.equal(draw.weight("W", 250, 80), usual.weight("W", 250, 80))


@pytest.mark.parametrize("attention_bias", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_has_biases_by_its_own_switch(bias, attention_bias):
    config = CONFIG.replace(bias=bias, attention_bias=attention_bias, gate=True)
    biased = {name for name, _ in Block(config).named_parameters() if name.endswith("bias")}
    norms = {"ln1.bias", "ln2.bias"} if bias else set()
    ffn = {"mlp.w_in.bias", "mlp.w_out.bias"} if bias else set()
    attention = {"attn.qkv.bias", "attn.gate.bias", "attn.out.bias"} if attention_bias else set()
    assert biased == norms | ffn | attention


@pytest.mark.parametrize(
    "size", [1e-3, 1.0, 1e3]
)  # 1e-3: there the variance is below epsilon, so epsilon shows
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 1e-6])
def test_layer_norm(eps, bias, size):
    ours = shake(MENUS["norm"]["LayerNorm"]("ln1", 32, bias, eps))
    theirs = nn.LayerNorm(32, eps, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x = size * (numbers(2, 6, 32) + 0.5)
    assert_close(ours(x), theirs(x))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("eps", [1e-5, 1e-6])
def test_rms_norm(eps, size):
    ours = shake(MENUS["norm"]["RMSNorm"]("ln1", 32, eps=eps))
    theirs = nn.RMSNorm(32, eps=eps)
    theirs.load_state_dict(ours.state_dict())
    x = size * (numbers(2, 6, 32) + 0.5)
    assert_close(ours(x), theirs(x))


THEIRS = {  # the activations that PyTorch has, too
    "relu": nn.ReLU(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU("tanh"),
    "silu": nn.SiLU(),
    "tanh": nn.Tanh(),
    "identity": nn.Identity(),
}


@pytest.mark.parametrize("name", THEIRS)
def test_activations(name):
    x = torch.linspace(-8, 8, 101)
    assert_close(MENUS["activation"][name](x), THEIRS[name](x))


# One table for words


TIED = CONFIG.replace(tied=True, n_layers=2)
WORDS = "abcdef"
TEXT = torch.tensor([[0, 3, 2, 2], [5, 1, 0, 4]])


def loss_of(logits):
    return nn.functional.cross_entropy(logits.flatten(0, 1), TEXT.roll(-1, 1).flatten())


def test_tied_model_has_equal_tables_and_learns_from_both():
    tied = Transformer(TIED, WORDS)
    untied = Transformer(TIED.replace(tied=False), WORDS)
    with torch.no_grad():
        untied.unembed.weight.copy_(untied.embed)
    assert torch.equal(tied(TEXT), untied(TEXT))
    for model in (tied, untied):
        loss_of(model(TEXT)).backward()
    assert_close(tied.embed.grad, untied.embed.grad + untied.unembed.weight.grad)
    assert (
        sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in tied.parameters())
        == len(WORDS) * 32
    )


def test_tie_survives_states_copies_and_functional_calls():
    model = shake(Transformer(TIED, WORDS))
    with torch.no_grad():
        model.embed += 0.3
    state = model.state_dict()
    assert [name for name in state if "embed" in name] == ["embed"]
    loaded = Transformer(TIED.replace(seed=9), WORDS)
    loaded.load_state_dict(state)
    moved = {name: tensor + 0.1 for name, tensor in state.items()}
    called = torch.func.functional_call(model, moved, (TEXT,))
    loaded.load_state_dict(state)
    copied = copy.deepcopy(model)
    assert torch.equal(loaded(TEXT), model(TEXT)) and torch.equal(copied(TEXT), model(TEXT))
    loaded.load_state_dict(moved)
    assert torch.equal(called, loaded(TEXT)) and not torch.equal(called, model(TEXT))
    before = copied(TEXT).detach()
    with torch.no_grad():
        copied.embed *= 0
    assert not copied.compute_logits(
        torch.ones(1, 1, 32)
    ).any()  # what reads is the table that was changed
    assert torch.equal(before, model(TEXT))


# Positions


def scores_of(tokens, position, words="abcdefgh"):
    config = Config(d_model=32, n_heads=4, d_ff=8, seed=3, position=position)
    with torch.no_grad(), trace(sites=["scores"]) as record:
        Transformer(config, words)(torch.tensor([tokens]))
    return record["scores"][0][0]  # (heads, queries, keys)


@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
def test_relative_scores_ignore_shift_of_all_tokens(position):
    shifted = scores_of([1, 2, 3, 4, 2], position)
    moved = scores_of([7, 7, 7, 1, 2, 3, 4, 2], position)[:, 3:, 3:]
    assert_close(moved, shifted)


@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_scores_of_absolute_positions_do_change(position):
    """This shows that the test above could fail."""
    shifted = scores_of([1, 2, 3, 4, 2], position)
    moved = scores_of([7, 7, 7, 1, 2, 3, 4, 2], position)[:, 3:, 3:]
    assert (moved - shifted).abs().max() > 0.01


@pytest.mark.parametrize("position", ["rope", "alibi"])
def test_relative_scores_depend_on_distance_only(position):
    scores = scores_of([1] * 8, position)
    assert_close(scores[:, 1:, 1:], scores[:, :-1, :-1])  # equal along every diagonal
    assert (scores[:, 0, 1:] - scores[:, 0, :1]).abs().amax(
        -1
    ).min() > 1e-3  # and different across, in every head


def test_rope_keeps_lengths_and_leaves_position_0_alone():
    def queries(position):
        with torch.no_grad(), trace(sites=["q"]) as record:
            MultiHeadAttention(CONFIG.replace(position=position))(numbers(2, 6, 32))
        return record["q"][0]

    plain = queries("none")
    turned = queries("rope")
    assert_close(turned.norm(dim=-1), plain.norm(dim=-1))
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
    np.testing.assert_allclose(sinusoid_table(length, width).numpy(), right, rtol=0, atol=1e-7)
