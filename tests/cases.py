"""Settings beyond single menu entries: changes of sizes and switches, alone and combined.

They fit a small model of at least two heads with an even head width.
"""

import pytest

from core.experiments.depth.depth import blocks
from core.model.config import Config
from core.model.parts import MENUS

ENTRIES = [{field: name} for field, menu in MENUS.items() for name in menu]
SWITCHES = [field for field, definition in Config.settings().items() if definition.kind is bool]
WAYS = pytest.mark.parametrize("way", blocks)


def named(changes: list[dict]):
    return [
        pytest.param(change, id=",".join(f"{k}={v}" for k, v in change.items()))
        for change in changes
    ]


RECENT = [
    {"n_kv_heads": 1},
    {
        "n_heads": 4,
        "n_kv_heads": 2,
        "qk_norm": True,
        "position": "rope",
        "rope_share": 0.5,
        "nope_every": 2,
    },
    {"parallel": True, "residual_ffn": False},  # attention is then lost
    {"score_cap": 2.0, "logit_cap": 5.0, "position": "alibi"},
    {"window": 2},
    {"window": 3, "global_every": 2, "mask": "causal", "position": "rope", "rope_base": 100.0},
    {"activation": "geglu", "matched": True, "d_ff": None},
    {"norm_eps": 0.1, "qk_norm": True, "norm": "RMSNorm"},
    {"n_heads": 4, "n_kv_heads": 2, "qk_norm": True, "qk_norm_joint": True, "position": "rope"},
    {"norm_gain": False, "qk_norm": True, "embedding_norm": True, "norm": "RMSNorm"},
    {"embedding_norm": True, "position": "learned", "placement": "post"},
    {
        "window": 2,
        "global_every": 2,
        "global_first": True,
        "position": "rope",
        "local_rope_base": 100.0,
        "n_layers": 3,
    },
    {"attention_bias": False, "gate": True},
    {"bias": False, "attention_bias": True, "n_heads": 4, "n_kv_heads": 2},
    {"gate": True, "softmax": "sink", "n_heads": 4, "n_kv_heads": 2},
    {"value_residual": True, "skips": True, "n_layers": 4},
    {"value_residual": True, "shared": True, "mask": "causal"},
    {"residual_scale": "layerscale", "placement": "sandwich", "residual_ffn": False},
    {
        "norm": "DyT",
        "bias": False,
        "softmax": "off_by_one",
        "mask": "causal",
        "residual_scale": "layerscale",
    },
    *({"parallel": True, "placement": name} for name in MENUS["placement"]),
]
