"""Devices and precisions. Tests that need a GPU are marked gpu and skipped without one."""

import re
import subprocess
import sys

import pytest
import torch

from core.experiments.forward import _run, forward
from core.model.config import Config
from core.model.cost import BYTES, flops
from core.model.parts import MENUS
from core.model.text import DEFAULT_TEXT, split_words
from core.settings.device import Machine, available_devices, dtype
from core.settings.setting import ConfigError

TOKENS = split_words(DEFAULT_TEXT)
needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device on this machine"
)


@pytest.mark.slow
def test_core_imports_neither_streamlit_nor_altair():
    code = (
        "import core, core.experiments.forward, sys; print(sorted({'streamlit', 'altair'} &"
        " set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_precisions_have_known_bytes():
    assert {name: part.itemsize for name, part in dtype.items()} == BYTES


def test_missing_device_is_refused_in_words(monkeypatch):
    monkeypatch.setattr("core.settings.device.available_devices", lambda: ("cpu",))
    with pytest.raises(
        ConfigError, match="device is cuda, which is not available here; available: cpu"
    ):
        Machine(device="cuda")
    with pytest.raises(ConfigError, match="float16, which needs a GPU.*float32 or bfloat16"):
        Machine(dtype="float16")
    assert Machine().torch_device == "cpu"
    assert Machine().choices("device") == ["auto", "cpu"]
    assert Machine().choices("dtype") == ["float32", "bfloat16"]


def test_bfloat16_is_near_float32_and_is_what_ran():
    exact = forward(Config(), TOKENS)
    rough = forward(Config(), TOKENS, Machine(device="cpu", dtype="bfloat16"))
    assert not torch.equal(exact.output, rough.output)
    assert (exact.output - rough.output).abs().max() < 0.1
    assert torch.equal(rough.output, rough.output.bfloat16().float())
    assert (rough.sites["pattern"][0].sum(-1) - 1).abs().max() < 0.02


def clock(monkeypatch, *took):
    """Make successive timings give these milliseconds. Return the list of unused ones."""
    left = list(took)

    def timed(call, place):
        return call(), left.pop(0)

    for module in ("core.settings.device", "core.experiments.forward"):
        monkeypatch.setattr(f"{module}.time_call", timed)
    return left


def test_small_pass_is_timed_by_median_of_three(monkeypatch):
    left = clock(monkeypatch, 10.0, 9.0, 0.3, 0.2)
    assert str(forward(Config(seed=77), TOKENS).timing) == "0.3 ms (median of 3)" and not left
    left = clock(monkeypatch, 10.0, 9.0, 0.3, 0.2)
    assert (
        str(forward(Config(seed=77, dropout=0.5), TOKENS, dropout=True).timing)
        == "0.3 ms (median of 3)"
        and not left
    )


def test_large_pass_is_timed_once_with_date(monkeypatch):
    large = Config(d_model=512, n_heads=8, n_layers=2)
    assert sum(flops(large, len(TOKENS)).values()) > 2e7
    for took, milliseconds in (((40.0, 7.0), "7"), ((1500.0,), "1,500")):
        _run.cache.clear()
        left = clock(monkeypatch, *took)
        assert (
            re.fullmatch(
                rf"{re.escape(milliseconds)} ms \(timed once, \d\d:\d\d UTC\)",
                str(forward(large, TOKENS).timing),
            )
            and not left
        )


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("field, entry", [(f, e) for f, menu in MENUS.items() for e in menu])
def test_gpu_matches_cpu_for_all_parts(field, entry):
    config = Config(**{field: entry}, n_layers=2, padding=2)
    on_first, on_second = (
        forward(config, TOKENS, Machine(device=place)) for place in ("cpu", "cuda")
    )
    scale = on_first.output.abs().max().clamp_min(1)
    assert ((on_first.output - on_second.output).abs().max() / scale) < 1e-3
    first, second = (
        forward_pass.statistics.value.to_numpy() for forward_pass in (on_first, on_second)
    )
    assert abs(first - second).max() / max(1, abs(first).max()) < 1e-3


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", dtype)
def test_precisions_run_on_gpu_timed_by_events(name):
    forward_pass = forward(Config(), TOKENS, Machine(device="cuda", dtype=name))
    assert forward_pass.machine.name == torch.cuda.get_device_name()
    assert 0 < forward_pass.timing.milliseconds < 10_000
    assert available_devices()[0] == "cuda"
