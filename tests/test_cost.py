"""Cost formulas against the model itself and PyTorch's own counter."""

import random

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core.experiments.forward import forward
from core.model.config import Config
from core.model.cost import activation_bytes, flops, kv_cache_bytes, parameters, run_bytes
from core.model.kv_cache import KVCache
from core.model.parts import MENUS
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimitError, room_for


def configs(count=40):
    pick = random.Random(0)
    for _ in range(count):
        values = {name: pick.choice(list(menu)) for name, menu in MENUS.items()}
        values |= {
            name: pick.random() < 0.75
            for name in ("attention", "ffn", "bias", "scale", "residual_ffn", "tied")
        }
        values |= {name: pick.random() < 0.5 for name in ("attention_bias", "gate")}
        values |= {name: pick.random() < 0.3 for name in ("qk_norm", "parallel", "matched")}
        heads = pick.choice([1, 2, 4, 8])
        yield Config(
            d_model=pick.choice([16, 32, 48]),
            n_heads=heads,
            n_kv_heads=pick.choice([n for n in (1, 2, 4, 8) if heads % n == 0]),
            window=pick.choice([0, 2]),
            d_head=pick.choice([None, None, 6, 20]),
            d_ff=pick.choice([5, 64]),
            n_layers=pick.choice([1, 3]),
            **values,
        )


@pytest.mark.parametrize("config", list(configs()), ids=str)
def test_costs_are_those_of_the_model(config):
    tokens = ["a", "b", "c", "b", "d"]
    model = Transformer(config, ["<pad>", "a", "b", "c", "d"])
    assert sum(parameters(config, 5).values()) == sum(p.numel() for p in model.parameters())
    assert sum(parameters(config).values()) == sum(p.numel() for p in model.blocks.parameters())
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.run_blocks(torch.tensor([[1, 2, 3, 2, 4]]))
    assert sum(flops(config, 5).values()) == counter.get_total_flops()
    forward_pass = forward(config, tokens)
    recorded = 4 * sum(x.numel() for site in forward_pass.sites.values() for x in site)
    stored = sum(activation_bytes(config, len(forward_pass.tokens)).values())
    assert stored == recorded
    assert run_bytes(config, len(forward_pass.tokens), 5) >= recorded


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"n_kv_heads": 1},
        {"n_heads": 4, "n_kv_heads": 2},
        {"window": 3},
        {"attention": False},
        {"window": 2, "global_every": 2, "n_layers": 3},
    ],
)
def test_cached_bytes_match_the_cache(change):
    """A layer with a window caches no more than it can ever read."""
    config = Config(d_model=16, n_heads=4, mask="causal").replace(**change)
    model = Transformer(config, ["a", "b"])
    cache = KVCache(model)
    with torch.no_grad():
        for tokens in ([0, 1, 1], [0], [1], [1]):
            model(torch.tensor([tokens]), kv_cache=cache)
    cached_bytes = sum(
        x.numel() * x.element_size()
        for layer_cache in cache.layers
        for x in (layer_cache.k, layer_cache.v)
        if x is not None
    )
    assert cached_bytes == kv_cache_bytes(config, 6)


def test_grouped_queries_cache_less_at_equal_parameters():
    assert kv_cache_bytes(Config(n_kv_heads=1), 100) * 4 == kv_cache_bytes(Config(), 100)
    plain, gated = (
        parameters(Config(activation=name, matched=True, bias=False))["ffn"]
        for name in ("gelu", "swiglu")
    )
    assert abs(gated / plain - 1) < 0.005


def test_default_block_has_known_numbers():
    assert parameters(Config()) == {"attention": 16_640, "ffn": 33_088, "norm": 256}
    assert sum(parameters(Config()).values()) == 49_984
    assert parameters(Config(d_head=32))["attention"] == 4 * 64 * 128 + 3 * 128 + 64


def test_run_over_limit_is_refused_with_both_figures(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "10")
    with pytest.raises(MemoryLimitError, match="20 MB.*10 MB.*ABLATION_MAX_MB"):
        room_for(20 << 20, "This")
    with room_for(5 << 20, "This"):
        pass
