"""Gradients by depth against autograd on the bare model and finite differences."""

import math

import numpy as np
import pytest
import torch

from core import Config, Transformer
from core.experiments.depth.depth import Depth
from core.experiments.depth.gradients import gradients
from core.experiments.forward import prepare_model
from core.model.parts import MENUS
from core.settings.device import Machine
from tests.cases import ENTRIES, RECENT, SWITCHES, WAYS, named

WORDS = ("the", "court", "held", "that", "the", "tenants")
KNOWN = ("<pad>", "the", "court", "held", "that", "tenants")
NUMBERS = [1, 2, 3, 4, 1, 5]
HERE = Machine(device="cpu")
BASE = Config(d_model=16, n_heads=2, d_ff=24, seed=3)

OFF = [{field: not getattr(BASE, field)} for field in SWITCHES]  # tied embeddings: on
NORMED = [  # every norm in every place, around every choice of residuals
    {"norm": norm, "placement": placement, "residual_attention": attention, "residual_ffn": ffn}
    for norm in MENUS["norm"]
    for placement in MENUS["placement"]
    for attention in (True, False)
    for ffn in (True, False)
]
COMBINED = [
    {"attention": False, "ffn": False},
    {"padding": 3},
    {"padding": 3, "mask": "causal", "placement": "post", "activation": "swiglu"},
    {
        "norm": "RMSNorm",
        "position": "rope",
        "activation": "swiglu",
        "bias": False,
        "n_heads": 4,
        "padding": 1,
    },
    {"d_head": 5, "tied": True},
    *RECENT,
]


EVERY = pytest.mark.parametrize("change", named(ENTRIES + OFF + COMBINED))


class Bare:
    """Model in float64 with core's weights, block by block, without traces or core.experiments."""

    def __init__(self, config, way, passes):
        self.config = config
        self.n_real = len(WORDS)
        self.model = Transformer(
            config.replace(n_layers=passes if way == "separate" else 1), KNOWN
        ).double()
        self.order = list(range(passes)) if way == "separate" else [0] * passes
        self.ids = torch.tensor([NUMBERS + [0] * config.padding])
        self.real = self.ids != 0 if config.padding else None

    def start(self):
        self.memory = {}
        return self.model.embed_tokens(self.ids)

    def step(self, x, index):
        return self.model.run_layer(
            self.order[index], x, self.model.attention_mask(self.ids, self.real), self.memory
        )

    def loss(self, x):
        """Return the mean cross-entropy of each real token's successor.

        The last token's successor is the first one.
        """
        table = self.model.embed if self.config.tied else self.model.unembed.weight
        logits = (self.model.ln_final(x) @ table.T)[0]
        if self.config.logit_cap:
            logits = self.config.logit_cap * (logits / self.config.logit_cap).tanh()
        total = 0.0
        for index in range(self.n_real):
            successor = NUMBERS[index + 1] if index + 1 < self.n_real else NUMBERS[0]
            total = total + logits[index].logsumexp(0) - logits[index][successor]
        return total / self.n_real

    def backward(self):
        """Return the loss, each stream's gradient norm and {(layer, weight): gradient norm}."""
        streams = [self.start()]
        for index in range(len(self.order)):
            streams[-1].retain_grad()
            streams.append(self.step(streams[-1], index))
        streams[-1].retain_grad()
        loss = self.loss(streams[-1])
        loss.backward()
        rows = {}
        for layer, block in enumerate(self.model.blocks, 1):
            for name, parameter in block.named_parameters():
                # An FFN without residual passes on nothing of attention.
                unread = parameter.grad is None
                grad = torch.zeros_like(parameter) if unread else parameter.grad
                for weight, part in self.parts(name, grad.detach()):
                    rows[layer, weight] = math.sqrt(math.fsum((part**2).flatten().tolist()))
        return loss.item(), [x.grad.square().sum().sqrt().item() for x in streams], rows

    def parts(self, name, tensor):
        hidden = self.config.d_ff
        wide = [
            heads * self.config.d_head
            for heads in (self.config.n_heads, *[self.config.n_kv_heads] * 2)
        ]
        if name.endswith((".q_norm", ".k_norm", ".alpha", ".score", ".gain")):
            *path, kind = name.split(".")
            return [(f"{path[-1 if path[-1] != 'scale' else -2]} {kind}", tensor)]
        letter = "W" if name.endswith("weight") else "b"
        if name.startswith("attn.qkv"):
            return [
                (f"{letter}_{part}", tensor[sum(wide[:index]) : sum(wide[: index + 1])])
                for index, part in enumerate("QKV")
            ]
        if name.startswith("attn.gate"):
            return [(f"{letter}_G", tensor)]
        if name.startswith("mlp.w_in"):
            parts = [(f"{letter}_in", tensor[:hidden])]
            if len(tensor) > hidden:
                parts.append((f"{letter}_gate", tensor[hidden:]))
            return parts
        if name.startswith("ln"):
            return [(f"{name.split('.')[0]} {'gain' if letter == 'W' else 'bias'}", tensor)]
        return [(f"{letter}_{'O' if name.startswith('attn.out') else 'out'}", tensor)]


def rows_of(result) -> dict:
    return {
        (layer, weight): value for layer, weight, value in result.weights.itertuples(index=False)
    }


def assert_agree(result, bare):
    loss, stream, weights = bare.backward()
    assert result.loss == pytest.approx(loss, rel=1e-4)
    assert result.stream == pytest.approx(stream, rel=1e-4)
    actual = rows_of(result)
    assert len(actual) == len(result.weights)
    assert actual.keys() == weights.keys()
    # A gradient that cancels to nothing is left with the rounding of what cancelled: that of b_K is
    # 0, since a softmax does not see what all its scores have in common. float32 rounds to 6e-8 of
    # the largest gradient around.
    nothing = 1e-6 * max([*weights.values(), 0])
    for key, value in weights.items():
        assert actual[key] == pytest.approx(value, rel=1e-4, abs=nothing), key
    assert not result.diverged


@EVERY
@WAYS
def test_gradient_norms_match_autograd_in_float64(change, way, monkeypatch):
    config = BASE.replace(**change)
    if config.init.startswith(
        "normal_1"
    ):  # magnifies the rounding of float32, see tests/test_reference.py
        in_float64(monkeypatch)
    # Another seed than in other tests: what is kept was not computed in float64.
    config = config.replace(seed=11)
    assert_agree(gradients(config, WORDS, HERE, Depth(4, way)), Bare(config, way, 4))


@pytest.mark.parametrize("change", named(NORMED))
@pytest.mark.parametrize("padding", [0, 2])
@WAYS
def test_gradient_norms_match_for_all_norms_and_residuals(change, padding, way):
    config = BASE.replace(padding=padding, **change)
    assert_agree(gradients(config, WORDS, HERE, Depth(3, way)), Bare(config, way, 3))


def in_float64(monkeypatch):
    def wide(config, tokens, machine):
        model, ids, real = prepare_model(config, tokens, machine)
        return model.double(), ids, real

    monkeypatch.setattr("core.experiments.depth.gradients.prepare_model", wide)


def test_repeated_block_sums_gradients_over_passes():
    config = BASE.replace(padding=2)
    passes = 3
    bare = Bare(config, "same", passes)
    bare.model = Transformer(config.replace(n_layers=passes), KNOWN).double()
    for block in bare.model.blocks[1:]:  # separate blocks that hold the same numbers
        block.load_state_dict(bare.model.blocks[0].state_dict())
    bare.order = list(range(passes))
    x = bare.start()
    for index in range(passes):
        x = bare.step(x, index)
    bare.loss(x).backward()
    actual = rows_of(gradients(config, WORDS, HERE, Depth(passes, "same")))
    assert {layer for layer, _ in actual} == {1}
    per_pass = [dict(block.named_parameters()) for block in bare.model.blocks]
    for name in per_pass[0]:
        summed = sum(item[name].grad for item in per_pass)
        for weight, part in bare.parts(name, summed):
            if weight != "b_K":
                assert actual[1, weight] == pytest.approx(part.norm().item(), rel=1e-4), weight
    apart = sum(item["mlp.w_out.weight"].grad.norm().item() for item in per_pass)
    assert actual[1, "W_out"] < 0.999 * apart  # adding norms would not be the same


@WAYS
def test_finite_differences_of_the_loss_give_the_same_norms(way):
    """Every element of every stream and weight is moved slightly both ways, in float64."""
    config = Config(d_model=8, n_heads=2, d_ff=8, seed=5, padding=1, mask="causal")
    passes = 2
    little = 1e-5
    bare = Bare(config, way, passes)
    gradient_results = gradients(config, WORDS, HERE, Depth(passes, way))

    def slopes(numbers, loss):
        actual = torch.empty(len(numbers), dtype=torch.float64)
        for index in range(len(numbers)):
            before = numbers[index].item()
            numbers[index] = before + little
            up = loss()
            numbers[index] = before - little
            actual[index] = (up - loss()) / (2 * little)
            numbers[index] = before
        return actual

    def onwards(x, index):
        for position in range(index, passes):
            x = bare.step(x, position)
        return bare.loss(x).item()

    with torch.no_grad():
        x = bare.start()
        assert gradient_results.loss == pytest.approx(onwards(x, 0), rel=1e-5)
        for depth in range(passes + 1):
            moved = x.clone()
            result = slopes(moved.view(-1), lambda moved=moved, depth=depth: onwards(moved, depth))
            assert gradient_results.stream[depth] == pytest.approx(result.norm().item(), rel=1e-4)
            x = bare.step(x, depth) if depth < passes else x
        start = bare.start()
        result = rows_of(gradient_results)
        for layer, block in enumerate(bare.model.blocks, 1):
            for name, parameter in block.named_parameters():
                slope = slopes(parameter.data.view(-1), lambda: onwards(start, 0)).view(
                    parameter.shape
                )
                for weight, part in bare.parts(name, slope):
                    assert result[layer, weight] == pytest.approx(
                        part.norm().item(), rel=1e-4, abs=1e-7
                    ), weight


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_gradients_are_there_whatever_the_caller_has_switched_off(around):
    config = BASE.replace(
        seed=21, bias=around is torch.no_grad
    )  # one of its own: nothing is kept of it
    with around():
        gradient_results = gradients(config, WORDS, HERE, Depth(2))
    assert_agree(gradient_results, Bare(config, "same", 2))


def assert_numbers_or_diverged(result):
    numbers = np.array([result.loss, *result.stream, *result.weights.value])
    assert result.diverged == (not np.isfinite(numbers).all())
    assert (numbers[np.isfinite(numbers)] >= 0).all()


@pytest.mark.slow
@EVERY
@WAYS
def test_gradients_at_64_passes_are_finite_or_flagged(change, way):
    gradient_results = gradients(BASE.replace(**change), WORDS, HERE, Depth(64, way))
    assert len(gradient_results.stream) == 65
    assert_numbers_or_diverged(gradient_results)
    if not change.get("init", "").startswith("normal_1"):
        assert not gradient_results.diverged


@WAYS
def test_vanishing_gradients_are_small_numbers_and_not_flagged(way):
    config = BASE.replace(
        init="normal_002", norm="none", residual_attention=False, residual_ffn=False
    )
    gradient_results = gradients(config, WORDS, HERE, Depth(64, way))
    assert_numbers_or_diverged(gradient_results)
    assert not gradient_results.diverged
    assert gradient_results.stream[0] < 1e-20 < gradient_results.stream[-1]


@WAYS
def test_exploding_gradients_are_flagged(way):
    config = BASE.replace(init="normal_1", norm="none")
    gradient_results = gradients(config, WORDS, HERE, Depth(64, way))
    assert_numbers_or_diverged(gradient_results)
    assert gradient_results.diverged
    few = gradients(config, WORDS, HERE, Depth(2, way))
    assert_numbers_or_diverged(few)
    assert not few.diverged
    assert few.stream[0] > 100 * few.stream[-1]
