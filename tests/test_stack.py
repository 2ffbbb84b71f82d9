"""Stacked seeds equal separate runs: numbers, chunks, divergence, resumption in either way."""

import dataclasses
import math
import pickle
import warnings

import pytest
import torch

from core.model.config import Config
from core.model.parts import MENUS
from core.settings.device import Machine
from core.tasks import task
from core.train import Training, optimiser, run, start
from core.train import chunk as alone
from core.train.stack import can_stack, chunk
from tests.test_train import same_state

SMALL = task["reverse"].config(d_model=16, n_heads=2, d_ff=24, n_layers=2)
BARE = SMALL.replace(
    bias=False
)  # the gradient of b_K is rounding, of which AdamW makes steps as large as any other
SHORT = Training(batch=4, steps=30, learning_rate=0.01, warmup=3, every=2)
CPU = Machine(device="cpu")
FOREVER = 1000


def start_all(config=SMALL, training=SHORT, seeds=(5, 6, 7), machine=CPU):
    return [start(config, training, seed, machine) for seed in seeds]


def assert_near(some, others, tolerance=1e-5):
    """Compare rows of runs number by number."""
    assert len(some) == len(others)
    for rows, yours in zip(some, others):
        assert [row.step for row in rows] == [row.step for row in yours]
        for a, b in zip(rows, yours):
            assert a[:6] == pytest.approx(b[:6], rel=tolerance, abs=tolerance, nan_ok=True), a.step
            assert a.note == b.note


def assert_states_near(some, others, tolerance=1e-4):
    for first, yours in zip(some, others):
        assert (first.config, first.training, first.machine) == (
            yours.config,
            yours.training,
            yours.machine,
        )
        assert (first.step, first.diverged) == (yours.step, yours.diverged)
        assert torch.equal(first.data, yours.data) and torch.equal(first.dropout, yours.dropout)
        assert first.model.keys() == yours.model.keys()
        for name, item in first.model.items():
            torch.testing.assert_close(
                item, yours.model[name], rtol=tolerance, atol=tolerance, equal_nan=True
            )
        assert first.optimiser["param_groups"] == yours.optimiser["param_groups"]
        assert first.optimiser["state"].keys() == yours.optimiser["state"].keys()
        for index, moments in yours.optimiser["state"].items():
            assert {k: v.shape for k, v in first.optimiser["state"][index].items()} == {
                k: v.shape for k, v in moments.items()
            }


def assert_as_alone(states, tolerance=1e-5):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # vmap warns where it works through the seeds one by one
        together = chunk(states, FOREVER)
    apart = [alone(state, FOREVER) for state in states]
    assert_near([rows for _, rows in together], [rows for _, rows in apart], tolerance)
    return [state for state, _ in together], [state for state, _ in apart]


@pytest.mark.parametrize("name", task)
def test_stacked_tasks_train_as_alone(name):
    config = task[name].config(d_model=16, n_heads=2, n_layers=1)
    assert_as_alone(start_all(config, Training(task=name, steps=30, batch=8, every=3)))


MENU = [
    (field, entry)
    for field in ("norm", "placement", "position", "activation", "mask", "init")
    for entry in MENUS[field]
]
SWITCHES = [field for field, definition in Config.settings().items() if definition.kind is bool]
CHANGES = [
    *({field: entry} for field, entry in MENU if not entry.startswith("normal_1")),
    *({field: not getattr(SMALL, field)} for field in SWITCHES),
    {"d_head": 6},
    {
        "tied": True,
        "position": "learned",
        "norm": "RMSNorm",
        "placement": "post",
        "bias": False,
        "activation": "swiglu",
    },
]


@pytest.mark.slow
@pytest.mark.parametrize("method", optimiser)
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_stacked_parts_train_as_alone(change, method):
    assert_as_alone(
        start_all(SMALL.replace(**change), dataclasses.replace(SHORT, optimiser=method))
    )


@pytest.mark.parametrize("method", optimiser)
def test_so_are_weights_that_magnify_every_rounding(method, monkeypatch):
    """Roundings are small enough in float64, even with saturated attention.

    See test_reference.py.
    """
    original = run.model
    monkeypatch.setattr(run, "model", lambda state: original(state).double())
    training = dataclasses.replace(SHORT, optimiser=method, steps=15)
    assert_as_alone(start_all(SMALL.replace(init="normal_1"), training))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"clip": 0.5},
        {"clip": 1000.0},
        {"weight_decay": 1.0},
        {"decay": "cosine"},
        {"length": 20},
        {"every": 100},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", optimiser)
def test_so_it_is_with_every_way_of_training(change, method):
    states = start_all(BARE, dataclasses.replace(SHORT, optimiser=method, **change))
    assert_states_near(*assert_as_alone(states))


def test_stacked_seeds_are_clipped_by_own_norm():
    """The limit lies between the seeds' norms: some gradients are clipped, others are not."""
    sgd = dataclasses.replace(SHORT, optimiser="sgd", weight_decay=0.0, steps=1, warmup=0)
    norms = sorted(rows[0].gradient_norm for _, rows in chunk(start_all(training=sgd), FOREVER))
    assert norms[0] < norms[1] < norms[2]
    states = start_all(training=dataclasses.replace(sgd, clip=norms[1]))
    assert_states_near(*assert_as_alone(states), 1e-6)


def test_stacked_bfloat16_matches_within_its_precision():
    states = start_all(
        training=dataclasses.replace(SHORT, steps=3),
        machine=Machine(device="cpu", dtype="bfloat16"),
    )
    fine = [
        rows for _, rows in chunk(start_all(training=dataclasses.replace(SHORT, steps=3)), FOREVER)
    ]
    rough = [rows for _, rows in chunk(states, FOREVER)]
    assert_near(rough, [alone(state, FOREVER)[1] for state in states], 0.02)
    assert all(a[0].loss != b[0].loss for a, b in zip(fine, rough))


# Cut into chunks, stacked or alone


def in_steps(states, *ways):
    """Train one step at a time, in turn by these ways. Return each one's rows and end states."""
    rows = [[] for _ in states]
    step = 0
    while not all(state.done for state in states):
        states = pickle.loads(pickle.dumps(states))
        done = ways[step % len(ways)](states)
        states = [state for state, _ in done]
        step = step + 1
        rows = [before + new for before, (_, new) in zip(rows, done)]
    return rows, states


def stacked(states):
    return chunk(states, 0)


def one_by_one(states):
    return [alone(state, 0) for state in states]


@pytest.mark.parametrize("method", optimiser)
def test_chunking_keeps_stacked_rows_and_weights_exact(method):
    states = start_all(training=dataclasses.replace(SHORT, optimiser=method, steps=9))
    full = chunk(states, FOREVER)
    rows, ends = in_steps(states, stacked)
    assert repr(rows) == repr([rows_alone for _, rows_alone in full])
    assert all(same_state(a, b) for a, (b, _) in zip(ends, full))
    repeated = chunk(states, FOREVER)
    assert all(
        same_state(a, b) for (a, _), (b, _) in zip(repeated, full)
    )  # and nobody has changed where it started from


@pytest.mark.slow
@pytest.mark.parametrize(
    "ways",
    [(stacked, one_by_one), (one_by_one, stacked, stacked)],
    ids=["first stacked", "first alone"],
)
@pytest.mark.parametrize("method", optimiser)
def test_stacked_run_can_continue_alone(method, ways):
    states = start_all(BARE, dataclasses.replace(SHORT, optimiser=method))
    rows, ends = in_steps(states, *ways)
    apart = [alone(state, FOREVER) for state in states]
    assert_near(rows, [rows_alone for _, rows_alone in apart])
    assert_states_near(ends, [state for state, _ in apart])


def test_seed_result_is_independent_of_stack():
    few, extra = (chunk(start_all(seeds=seeds), FOREVER) for seeds in ((5, 6), (6, 9, 5, 7)))
    assert_near([few[0][1], few[1][1]], [extra[2][1], extra[0][1]])


# Divergence


def spoiled(state, which, factor):
    """Return a state with weights or optimiser moments multiplied by a factor."""
    if which == "model":
        return dataclasses.replace(
            state, model={name: factor * item for name, item in state.model.items()}
        )
    moments = state.optimiser["state"].items()
    moments = {
        index: {k: v if k == "step" else factor * v for k, v in item.items()}
        for index, item in moments
    }
    return dataclasses.replace(state, optimiser=state.optimiser | {"state": moments})


@pytest.mark.slow
@pytest.mark.parametrize(
    "which, factor", [("model", 1e30), ("model", math.inf), ("optimiser", math.inf)]
)
@pytest.mark.parametrize("every", [1, 4, 100])
@pytest.mark.parametrize("method", optimiser)
def test_diverged_seed_leaves_others_unharmed(method, every, which, factor):
    training = dataclasses.replace(SHORT, optimiser=method, every=every, steps=12)
    begin = [
        state
        for state, _ in chunk(start_all(BARE.replace(norm="none"), training, seeds=(5, 6, 7, 8)), 0)
    ]
    begin[1] = spoiled(begin[1], which, factor)
    begin[3] = spoiled(begin[3], which, -factor)
    apart = [alone(state, FOREVER) for state in begin]
    assert [state.diverged for state, _ in apart] == [False, True, False, True]
    assert all(
        rows[-1].note == f"diverged at step {state.step}" for state, rows in apart if state.diverged
    )
    together = chunk(begin, FOREVER)
    assert_near([rows for _, rows in together], [rows for _, rows in apart])
    assert_states_near([state for state, _ in together], [state for state, _ in apart])


# What can be stacked


def test_only_seeds_can_be_stacked():
    states = start_all()
    assert can_stack(states) and can_stack(states[:1]) and not can_stack([])
    further = alone(states[0], 0)[0]
    others = [
        start_all(SMALL.replace(n_heads=4))[0],
        start_all(training=dataclasses.replace(SHORT, batch=5))[0],
        start_all(machine=Machine(device="cpu", dtype="bfloat16"))[0],
        further,
        dataclasses.replace(states[0], diverged=True),
    ]
    for other in others:
        assert not can_stack([*states, other])
        with pytest.raises(ValueError, match="differ only in the seed"):
            chunk([*states, other], 0)
    assert can_stack([further]) and can_stack([alone(state, 0)[0] for state in states])
    assert not can_stack(start_all(SMALL.replace(dropout=0.1)))
    assert not can_stack([state for state, _ in chunk(states, FOREVER)])


# On a GPU


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
@pytest.mark.parametrize("method", optimiser)
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_gpu_trains_stacked_seeds_as_alone(change, method):
    training = dataclasses.replace(SHORT, optimiser=method, steps=10)
    states = start_all(BARE.replace(**change), training, machine=Machine(device="cuda"))
    rows, ends = in_steps(states, stacked, one_by_one, stacked)
    apart = [alone(state, FOREVER) for state in states]
    assert_near(rows, [rows_alone for _, rows_alone in apart], 1e-4)
    assert_states_near(ends, [state for state, _ in apart], 1e-3)
