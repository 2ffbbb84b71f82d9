"""Estimated cost of a training: shown before it starts, monotonic, never too low."""

import pickle
import re
import weakref
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from core.model.config import Config
from core.model.transformer import Transformer
from core.settings.memory import MemoryLimitError
from core.tasks import task
from core.train import Training, budget, chunk, held_out, start
from core.train.budget import (
    TimeLimitError,
    check_budget,
    estimate_memory,
    estimate_seconds,
    estimate_seconds_left,
    format_duration,
)
from core.train.muon import matrix_heights, orthogonalise


def settings_of(name, **changes) -> Training:
    """Return a training that records no fewer rows as it grows longer."""
    return replace(Training(task=name), **{"every": 10} | changes)


def states(count=3, config=None, name="copy", **changes):
    return [
        start(config or task[name].config(), settings_of(name, **changes), seed)
        for seed in range(count)
    ]


@pytest.mark.parametrize("name", task)
@given(
    steps=st.integers(1, 5000),
    extra_steps=st.integers(1, 500),
    batch=st.integers(1, 2048),
    every=st.integers(1, 100),
)
def test_more_steps_and_larger_batches_take_longer(name, steps, extra_steps, batch, every):
    config = task[name].config()
    training = settings_of(name, steps=steps, batch=batch, every=every)
    assert estimate_seconds(config, training) < estimate_seconds(
        config, replace(training, steps=steps + extra_steps)
    )
    assert estimate_seconds(config, training) < estimate_seconds(
        config, replace(training, batch=batch + extra_steps)
    )
    assert 0 < estimate_seconds(config, training) < float("inf")


@pytest.mark.parametrize("name", task)
def test_larger_models_longer_sequences_and_more_rows_take_longer(name):
    config = task[name].config()
    training = settings_of(name)
    base = estimate_seconds(config, training)
    for change in (
        {"n_layers": config.n_layers + 1},
        {"d_model": 2 * config.d_model, "d_ff": None},
        {"d_ff": 1024},
    ):
        assert estimate_seconds(config.replace(**change), training) > base
    for change in ({"attention": False}, {"ffn": False}):
        assert estimate_seconds(config.replace(**change), training) < base
    assert estimate_seconds(config, replace(training, every=1)) > base
    for length in task[name].lengths:
        if length > training.length:
            assert estimate_seconds(config, replace(training, length=length)) > base


def test_seeds_add_up_and_workers_share_them():
    single, three, four = (estimate_seconds_left(states(n), 1) for n in (1, 3, 4))
    assert three == pytest.approx(3 * single) and four == pytest.approx(4 * single)
    assert estimate_seconds_left(states(4), 2) == pytest.approx(2 * single)
    assert estimate_seconds_left(states(1), 2) == pytest.approx(
        single
    )  # one training cannot be shared
    assert estimate_seconds_left(states(3), 2, pace=2.0) == pytest.approx(3 * single)
    assert estimate_seconds_left([], 2) == 0
    long = states(1, steps=5000)
    short = states(1, steps=10)
    assert estimate_seconds_left(long + short, 2) == pytest.approx(estimate_seconds_left(long, 1))


class PeakMemory(TorchDispatchMode):
    """Peak of the bytes of tensors made inside the block."""

    def __init__(self):
        super().__init__()
        self.alive = {}
        self.now = 0
        self.most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for item in tree_leaves(result):
            if isinstance(item, torch.Tensor) and id(item.untyped_storage()) not in self.alive:
                storage = item.untyped_storage()
                key = id(storage)
                size = storage.nbytes()
                self.alive[key] = weakref.ref(
                    storage, lambda _, key=key, size=size: self.forget(key, size)
                )
                self.now += size
                self.most = max(self.most, self.now)
        return result

    def forget(self, key, size):
        del self.alive[key]
        self.now -= size


CHANGES = [
    ({}, {}),
    ({"n_layers": 6}, {"batch": 2}),
    ({"n_layers": 3, "d_model": 128, "d_ff": None}, {"batch": 1}),
    ({"activation": "swiglu", "n_heads": 1, "norm": "none"}, {"batch": 96}),
    ({"placement": "post", "position": "alibi", "dropout": 0.1, "tied": True}, {"batch": 64}),
    ({"attention": False}, {"batch": 200}),
    ({"ffn": False, "n_heads": 8}, {"batch": 48}),
    (
        {
            "score_cap": 5.0,
            "softmax": "sink",
            "qk_norm": True,
            "gate": True,
            "value_residual": True,
            "window": 9,
            "norm": "DyT",
            "placement": "sandwich",
            "residual_scale": "layerscale",
            "skips": True,
            "n_layers": 4,
            "d_ff": 8,
        },
        {"batch": 64},
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", task)
@pytest.mark.parametrize(("model", "training"), CHANGES, ids=str)
def test_memory_is_never_below_what_a_chunk_holds(name, model, training):
    config = task[name].config(**model)
    training = settings_of(name, steps=2, every=1, **training)
    held_out(name, 0, training.length)  # is kept for all
    before = chunk(start(config, training, 0), 0)[0]
    packed = len(pickle.dumps(before))
    with PeakMemory() as peak:
        done, _ = chunk(before, 1000)
    came = sum(
        item.nbytes
        for item in tree_leaves((before.model, before.optimiser))
        if torch.is_tensor(item)
    )
    assert done.step == 2 and peak.most > came
    needed = estimate_memory(config, training)
    held_in_all = peak.most + came + packed
    assert held_in_all <= needed < 5 * held_in_all  # what could be trained is not refused either


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"n_kv_heads": 1, "gate": True, "activation": "swiglu"},
        {"ffn": False},
        {"n_layers": 3, "d_head": 8},
    ],
    ids=str,
)
def test_muon_cost_is_counted(changes):
    config = task["copy"].config(**changes)
    model = Transformer(config, task["copy"].vocabulary)
    with FlopCounterMode(display=False) as counted:
        for parameter, heights in zip(model.parameters(), matrix_heights(model)):
            for piece in parameter.detach().split(list(heights), 0) if heights else ():
                orthogonalise(piece)
    slower = settings_of("copy", optimiser="muon")
    extra = budget.step_seconds(config, slower) - budget.step_seconds(
        config, replace(slower, optimiser="adamw")
    )
    assert extra == pytest.approx(budget.PER_OPERATION * counted.get_total_flops(), rel=1e-9)


@pytest.mark.parametrize("name", task)
def test_memory_exceeds_weights_gradients_and_optimiser(name):
    for change in ({}, {"d_model": 256, "d_ff": None}, {"d_head": 64}, {"tied": True}):
        config = task[name].config(**change)
        training = settings_of(name, batch=1)
        weights = sum(p.nbytes for p in Transformer(config, task[name].vocabulary).parameters())
        assert estimate_memory(config, training) > (1 + 1 + 2) * weights


@given(batch=st.integers(1, 4000), layers=st.integers(1, 40), width=st.sampled_from([16, 64, 256]))
def test_memory_grows_with_batch_and_model(batch, layers, width):
    config = Config(n_layers=layers, d_model=width)
    training = settings_of("reverse", batch=batch)
    assert estimate_memory(config, training) <= estimate_memory(
        config, replace(training, batch=batch + 64)
    )
    assert estimate_memory(config, training) < estimate_memory(
        config.replace(n_layers=layers + 1), training
    )
    assert estimate_memory(config, training) < estimate_memory(
        config.replace(d_ff=config.d_ff + 8), training
    )
    assert estimate_memory(config, training) <= estimate_memory(
        config, replace(training, length=training.length + 1)
    )


def test_slow_trainings_are_refused_with_both_figures(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "20")
    count = states(30, steps=3000)
    with pytest.raises(TimeLimitError) as refused:
        check_budget(count, 2)
    text = str(refused.value)
    assert (
        f"30 runs would take about {format_duration(estimate_seconds_left(count, 2))} here on 2"
        " workers; at most 20 s" in text
    )
    assert "ABLATION_MAX_SECONDS" in text and "steps, seeds or variants" in text
    assert check_budget(states(3), 2, pace=1.5) == estimate_seconds_left(states(3), 2, 1.5)
    assert check_budget([], 2) == 0


def test_training_above_memory_limit_is_refused(monkeypatch):
    monkeypatch.setenv("ABLATION_MAX_MB", "10")
    large = states(2, config=task["copy"].config(d_model=256, d_ff=None)) + states(1)
    with pytest.raises(MemoryLimitError, match="ABLATION_MAX_MB") as refused:
        check_budget(large, 2)
    required, allowed = (
        int(figure.replace(",", "")) for figure in re.findall(r"([\d,]+) MB", str(refused.value))
    )
    assert allowed == 10 and required == round(
        estimate_memory(large[0].config, large[0].training) / 2**20
    )


def test_memory_of_many_trainings_is_limited(monkeypatch):
    """Trainings that advance together keep all their states; a duplicate counts once."""
    config = Config(d_model=512, n_heads=1, d_ff=1700, n_layers=1)
    training = Training(task="copy", steps=60, batch=1, length=2)
    count = [start(config, training, seed) for seed in range(30)]
    bytes_of_one = 12 * sum(
        tensor.numel() for tensor in Transformer(config, task["copy"].vocabulary).parameters()
    )
    assert budget.stored_bytes(config, training) == bytes_of_one
    monkeypatch.setenv("ABLATION_MAX_SECONDS", "1000000")
    monkeypatch.setenv("ABLATION_MAX_MB", f"{30 * bytes_of_one // 2**20 + 1}")
    check_budget(count, 1, active=count)
    monkeypatch.setenv("ABLATION_MAX_MB", f"{30 * bytes_of_one // 2**20}")
    with pytest.raises(
        MemoryLimitError, match="weights and optimiser states of 30 runs would need about"
    ):
        check_budget(count, 1)
    with pytest.raises(
        MemoryLimitError, match="of 1 run, with those of other users, would need about"
    ):
        check_budget(count[:1], 1, active=count[1:])


@pytest.mark.parametrize("name", task)
def test_tasks_train_with_three_seeds_and_four_variants(name):
    check_budget(15 * [start(task[name].config(), Training(task=name), 0)], 2)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (0.01, "1 s"),
        (12.4, "12 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5400, "90 min"),
        (6000, "1.7 h"),
    ],
)
def test_durations_in_words(time, text):
    assert format_duration(time) == text
