"""Exact rewriting: heads and hidden units in reverse order compute the same function."""

import copy

import pytest
import torch

from core.model.config import Config
from core.model.rewriting import reverse_heads_and_units
from core.model.transformer import Transformer
from core.train import Training, train

CONFIGS = [
    {},
    {"n_kv_heads": 2, "gate": True, "softmax": "sink", "qk_norm": True},
    {"n_kv_heads": 2, "qk_norm": True, "qk_norm_joint": True},
    {"n_kv_heads": 1, "position": "rope", "value_residual": True, "n_layers": 3},
    {"activation": "swiglu", "bias": False, "shared": True, "n_layers": 2},
    {"position": "alibi"},
    {"attention": False},
    {"ffn": False, "d_head": 8, "parallel": True},
]


def randomise(model: Transformer) -> None:
    """Replace all weights, also those that start at 0 or 1, by random numbers."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 4


@pytest.mark.parametrize("changes", CONFIGS, ids=str)
def test_reversed_model_computes_the_same_function(changes):
    model = Transformer(Config(d_model=32, **changes), "abcdefgh")
    randomise(model)
    tokens = torch.randint(0, 8, (4, 10), generator=torch.Generator().manual_seed(1))
    reverse = copy.deepcopy(model)
    reverse_heads_and_units(reverse)
    assert any(
        not torch.equal(before, after)
        for before, after in zip(model.parameters(), reverse.parameters())
    )
    torch.testing.assert_close(reverse(tokens), model(tokens), rtol=1e-10, atol=1e-10)
    reverse_heads_and_units(reverse)
    assert all(
        torch.equal(before, after)
        for before, after in zip(model.parameters(), reverse.parameters())
    )


def test_patterns_of_heads_are_in_reverse_order():
    model = Transformer(Config(d_model=32, n_kv_heads=2), "abcdefgh")
    reverse = copy.deepcopy(model)
    reverse_heads_and_units(reverse)
    x = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))
    pairs = zip(model.blocks[0].attn.project(x), reverse.blocks[0].attn.project(x))
    for heads, reversed_heads in pairs:
        torch.testing.assert_close(reversed_heads.flip(1), heads)


def test_training_starts_from_the_same_function():
    config = Config(d_model=32, n_layers=2)
    first_rows = []
    for order in ("drawn", "reversed"):
        training = Training(task="reverse", steps=3, every=1, initial_order=order)
        first_rows.append(next(train(config, training, 0)))
    drawn, reverse = first_rows
    assert reverse.loss == pytest.approx(drawn.loss, rel=1e-5)
    assert reverse.gradient_norm == pytest.approx(drawn.gradient_norm, rel=1e-4)
