"""The grid: many variants in one run equal separate runs, and its text is true of them."""

import dataclasses
import itertools
from contextlib import suppress

import numpy as np
import pytest
import scipy.stats
import torch

from core import Config, ConfigError
from core.experiments.depth.axes import AXES, MOST, RESIDUALS, Axes, write_axes
from core.experiments.depth.depth import Depth, blocks, travel
from core.experiments.depth.grid import Grid, _bytes, grid, simplify_config, travel_many
from core.measure.stream_statistics import statistic
from core.model.batched_variants import BatchedVariants
from core.model.parts import MENUS
from core.model.variants import apply
from core.settings.device import Machine

NAN = float("nan")
WORDS = ("the", "court", "held", "that", "the", "tenants")
HERE = Machine(device="cpu")
BASE = Config(d_model=32, n_heads=2, d_ff=24, seed=3)
WAYS = pytest.mark.parametrize("way", blocks)


def axes(**chosen) -> Axes:
    """Return a grid with these entries alone; "all" stands for all of an axis."""
    every = {axis: list(axis_menu.entries) for axis, axis_menu in AXES.items()}
    return Axes(
        "__".join(
            f"{axis}-{'+'.join(every[axis] if chosen.get(axis) == 'all' else chosen.get(axis, []))}"
            for axis in AXES
        )
    )


# Together they hold every entry of every axis, and every pair of axes that share a computation.
GRIDS = {
    "norms, places, residuals and sub-layers": dict.fromkeys(
        ("norm", "placement", "residual", "attention", "ffn"), "all"
    ),
    "activations and norms": {"activation": "all", "norm": "all", "placement": "all", "ffn": "all"},
    "heads, positions and masks": {
        "n_heads": "all",
        "position": "all",
        "mask": "all",
        "scale": "all",
    },
    "keys and values": dict.fromkeys(("n_heads", "n_kv_heads", "qk_norm", "score_cap"), "all"),
    "how far": {"window": "all", "global_every": "all", "mask": "all", "qk_norm": ["on"]},
    "turned": {
        "position": ["rope", "alibi"],
        "rope_share": "all",
        "nope_every": "all",
        "n_heads": ["2"],
    },
    "gated, with a sink": {"softmax": "all", "gate": "all", "value_residual": "all", "mask": "all"},
    "added otherwise": {
        "residual_scale": "all",
        "skips": "all",
        "residual": ["both", "attention"],
        "placement": ["pre", "post"],
    },
    "side by side": {
        "parallel": "all",
        "placement": "all",
        "norm": ["LayerNorm", "none"],
        "residual": "all",
        "attention": "all",
    },
    "a little of everything": {
        "norm": ["RMSNorm", "none"],
        "placement": ["post"],
        "residual": ["attention", "ffn"],
        "activation": ["swiglu", "tanh"],
        "n_heads": ["1", "8"],
        "position": ["alibi", "learned"],
        "mask": ["causal"],
        "scale": ["on", "off"],
        "attention": ["on", "off"],
        "ffn": ["on"],
    },
}


def test_axes_offer_all_menu_entries_except_init():
    assert {axis: set(AXES[axis].entries) for axis in MENUS if axis != "init"} == {
        field: set(menu) for field, menu in MENUS.items() if field != "init"
    }
    assert set(itertools.product((True, False), repeat=2)) == set(RESIDUALS.values())


def assert_same(values, alone):
    """Compare values to 1e-5 of their scale.

    The scale is 1 for a cosine, and the RMS for a mean, which is a sum that cancels.
    """
    scale = np.abs(alone)
    names = list(statistic)
    scale[:, names.index("mean")] = alone[:, names.index("rms")]
    scale[:, names.index("cosine")] = 1
    scale[:, names.index("entropy")] += 1e-3  # bits
    scale[scale == 0] = 1  # a stream that has faded to nothing
    assert values.shape == alone.shape
    assert (np.isnan(values) == np.isnan(alone)).all()
    off = np.nan_to_num(np.abs(values - alone) / scale)
    index, which = np.unravel_index(off.argmax(), off.shape)
    assert off.max() <= 1e-5, f"{names[which]} after pass {index} is off by {off.max():.1e}"


def assert_cells_are_journeys(baseline, chosen, way, passes=4):
    depth = Depth(passes, way)
    grid_results = grid(baseline, chosen, WORDS, HERE, depth)
    assert (
        len(grid_results.entries)
        == len(grid_results.changes)
        == len(grid_results.configs)
        == len(grid_results.values)
        == len(grid_results.diverged)
    )
    for named, change, config, values, diverged in zip(
        grid_results.entries,
        grid_results.changes,
        grid_results.configs,
        grid_results.values,
        grid_results.diverged,
    ):
        expected = baseline
        for axis, entry in named.items():
            expected = apply(AXES[axis].entries[entry], expected)
        assert depth.plan(expected)[0] == config
        assert apply(change, baseline) == expected
        alone = travel(expected, WORDS, HERE, depth)
        assert_same(values, alone.values)
        assert diverged == alone.diverged
    return grid_results


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("padding", [0, 2])
def test_grid_cells_match_travel(name, way, padding):
    grid_results = assert_cells_are_journeys(
        BASE.replace(padding=padding), axes(**GRIDS[name]), way
    )
    if not grid_results.left_out:
        assert len(grid_results.configs) + grid_results.repeats == np.prod(
            [len(entries) for entries in grid_results.axes.values()]
        )
    assert not any(grid_results.diverged)


@WAYS
@pytest.mark.parametrize("init", MENUS["init"])
def test_so_it_is_for_every_way_to_draw_weights(init, way):
    few = axes(norm="all", residual=["both", "none"], activation=["gelu", "swiglu"])
    if init.startswith(
        "normal_1"
    ):  # saturated attention magnifies the rounding of a sum in another order
        few = axes(
            norm="all", residual=["both", "none"], activation=["gelu", "swiglu"], attention=["off"]
        )
    assert_cells_are_journeys(BASE.replace(init=init), few, way, 3)


@WAYS
def test_grid_cells_diverge_as_they_do_alone(way):
    # Without attention, so that rounding is not magnified: a pass more or less would be a fault.
    chosen = axes(
        norm="all", residual="all", attention=["off"], activation=["relu", "identity", "tanh"]
    )
    grid_results = assert_cells_are_journeys(BASE.replace(init="normal_1"), chosen, way, 100)
    passes = set(grid_results.diverged)
    assert None in passes and len(passes) > 2
    for values, index in zip(grid_results.values, grid_results.diverged):
        if index is not None:
            assert np.isnan(values[index:]).all() and np.isfinite(values[:index, 0]).all()


def test_families_of_different_size_run_in_turn():
    configs = [
        BASE,
        BASE.replace(d_model=16),
        BASE.replace(padding=2, norm="none"),
        BASE.replace(seed=4),
        BASE.replace(norm="none", placement="post"),
        BASE.replace(d_ff=48),
        BASE.replace(n_heads=4, bias=False),
        BASE.replace(d_head=4),
        BASE.replace(d_head=4, n_heads=8, position="rope"),
        BASE.replace(tied=True),
        BASE,
    ]
    values, diverged = travel_many(configs, WORDS, HERE, [0] * 3)
    for config, row, index in zip(configs, values, diverged):
        alone = travel(config, WORDS, HERE, Depth(3))
        assert_same(row, alone.values)
        assert index == alone.diverged


def test_chunked_grid_equals_grid_at_once(monkeypatch):
    monkeypatch.setattr("core.experiments.depth.grid.CHUNK", 1 << 30)
    configs = [BASE, BASE.replace(norm="none"), BASE.replace(attention=False)]
    full = travel_many(configs, WORDS, HERE, [0] * 5)
    monkeypatch.setattr("core.experiments.depth.grid.CHUNK", 1)
    parts = travel_many(configs, WORDS, HERE, [0] * 5)
    np.testing.assert_allclose(parts[0], full[0], rtol=1e-9, atol=1e-12)
    assert parts[1] == full[1]


# What is in a grid


@WAYS
@pytest.mark.parametrize("tokens", [WORDS, WORDS[:4]], ids=len)
@pytest.mark.parametrize("name", GRIDS)
def test_grid_shows_each_model_once(name, tokens, way):
    """Combinations left out of the grid equal one that is shown; no two shown ones are equal.

    Two pairs are different models with the same first numbers: a sink learns what softmax + 1 has,
    and ReZero begins at 0, where skips change nothing.
    """
    depth = Depth(3, way)
    baseline = BASE.replace(position="rope")
    chosen = axes(**GRIDS[name])
    grid_results = grid(baseline, chosen, tokens, HERE, depth)
    built, order = depth.plan(baseline)
    index_of_stream = {
        simplify_config(config, len(tokens), len(order))[0]: index
        for index, config in enumerate(grid_results.configs)
    }
    assert len(index_of_stream) == len(grid_results.configs)
    repeats = []
    for combination in itertools.product(*grid_results.axes.values()):
        entries = dict(zip(grid_results.axes, combination))
        changes = {}
        for axis, entry in entries.items():
            changes |= AXES[axis].entries[entry]
        with suppress(ConfigError):
            config = apply(changes, baseline)
            repeats += [config] if entries not in grid_results.entries else []
    assert len(repeats) == grid_results.repeats
    for config in repeats[:: 1 + len(repeats) // 40]:
        position = index_of_stream[
            simplify_config(depth.plan(config)[0], len(tokens), len(order))[0]
        ]
        assert_same(grid_results.values[position], travel(config, tokens, HERE, depth).values)
    numbers = {}
    for config, values in zip(grid_results.configs, grid_results.values):
        alike = config.replace(
            softmax=config.softmax.replace("sink", "off_by_one"),
            skips=config.skips and config.residual_scale != "rezero",
        )
        assert numbers.setdefault(values.tobytes(), alike) == alike


@pytest.mark.parametrize("name", GRIDS)
def test_grid_link_reads_back(name):
    chosen_axes = axes(**GRIDS[name])
    assert Axes(chosen_axes.grid) == chosen_axes
    assert Axes(write_axes(chosen_axes.chosen)).chosen == chosen_axes.chosen
    assert set(chosen_axes.grid) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+."
    )


@pytest.mark.parametrize(
    ("text", "names", "instead"),
    [
        ("colour-red", ["colour", *AXES], ""),
        ("norm-none+BatchNorm", ["norm", "BatchNorm", *AXES["norm"].entries], ""),
        (
            "scale-maybe__colour-red__mask-causal",
            ["scale", "maybe", "on", "off", "colour", *AXES],
            "mask-causal",
        ),
    ],
)
def test_bad_grid_text_is_refused_and_rest_kept(text, names, instead):
    with pytest.raises(ConfigError) as refused:
        Axes(text)
    assert refused.value.field == "grid"
    assert refused.value.instead == instead
    assert all(name in str(refused.value) for name in names)
    assert len(str(refused.value)) < 400
    Axes(refused.value.instead)
    settings, problems = Axes.read({"grid": text})
    assert settings.grid == instead
    assert len(problems) == 1


def test_heads_that_do_not_divide_width_are_left_out():
    grid_results = grid(
        Config(d_model=12, n_heads=2), axes(n_heads="all", norm="all"), WORDS, HERE, Depth(1)
    )
    assert {config.n_heads for config in grid_results.configs} == {1, 2, 4}
    assert len(grid_results.configs) == len(MENUS["norm"]) * 3
    assert len(grid_results.left_out) == 2  # once each, and not once per norm
    assert all("must divide d_model, which is 12" in reason for reason in grid_results.left_out)
    assert (
        "n_heads is 8" in grid_results.left_out[0] and "n_heads is 16" in grid_results.left_out[1]
    )
    assert [named["n_heads"] for named in grid_results.entries] == ["1", "2", "4"] * len(
        MENUS["norm"]
    )


def grid_of(**columns) -> Grid:
    """Return a one-pass grid with these final statistics; rms is 1 by default."""
    count = len(next(iter(columns.values())))
    ends = np.full((count, 1, len(statistic)), 1.0)
    for meter, values in columns.items():
        ends[:, 0, list(statistic).index(meter)] = values
    return Grid({}, [{}] * count, [{}] * count, [BASE] * count, ends, [None] * count, [])


@pytest.mark.parametrize(
    "columns, alike",
    [
        ({"cosine": [0.5, 0.5, 0.5]}, True),
        ({"cosine": [0.5, 0.5000001, 0.5]}, True),  # a fifth of a millionth of it
        ({"cosine": [0.5, 0.500002, 0.5]}, False),
        ({"cosine": [-0.5, -0.5000001, NAN]}, True),  # one that diverged has no number
        ({"cosine": [-0.5, -0.500002, NAN]}, False),
        ({"cosine": [0.0, 0.0]}, True),
        ({"cosine": [NAN, NAN]}, True),
        ({"mean": [1e-9, -3e-7]}, True),  # negligible for a stream of size 1
        ({"mean": [1e-9, -3e-7], "rms": [0.1, 0.01]}, False),
        ({"mean": [1e-9, -3e-6]}, False),
        ({"std": [2e-9, 1e-9]}, False),
    ],
)
def test_alike_is_what_differs_by_rounding_alone(columns, alike):
    assert grid_of(**columns).ends_equal(next(iter(columns))) == alike


def test_explained_share_is_weighted_by_variants():
    """Eta squared equals SciPy's analysis of variance of groups of one, two and five variants.

    One variant of a group diverged.
    """
    dice = np.random.default_rng(0)
    ends = 3 * dice.normal(size=9) + np.array([0, 1, 1, 4, 4, 4, 4, 4, 4])
    ends[8] = NAN
    names = ["LayerNorm", "RMSNorm", "RMSNorm", *["none"] * 6]
    ended_grid = grid_of(cosine=ends)
    ended_grid = dataclasses.replace(
        ended_grid,
        axes={"norm": ("LayerNorm", "RMSNorm", "none")},
        entries=[{"norm": name} for name in names],
    )
    f = scipy.stats.f_oneway(ends[:1], ends[1:3], ends[3:8]).statistic
    assert ended_grid.explained("cosine")["norm"] == pytest.approx(2 * f / (2 * f + 5))


def test_too_many_variants_are_refused_with_their_number():
    assert MOST == 1024
    every = "__".join(f"{axis}-{'+'.join(axis_menu.entries)}" for axis, axis_menu in AXES.items())
    size = int(np.prod([len(axis.entries) for axis in AXES.values()]))
    with pytest.raises(ConfigError, match=f"{size:,} variants; at most 1,024") as refused:
        Axes(every)
    assert (refused.value.field, refused.value.instead) == ("grid", "")
    # 4 · 4 · 4 · 11 = 704; with two masks 1408.
    limit = {"norm": "all", "placement": "all", "residual": "all", "activation": "all"}
    assert axes(**limit)
    with pytest.raises(ConfigError, match="1,408"):
        axes(**limit, mask="all")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_estimate_exceeds_weights_and_waiting_streams(dtype):
    """Variants that differ in what attention or the feed-forward network reads have own weights."""
    switches = itertools.product(
        [False, True], [False, True], ["usual", "sink"], ["gelu", "swiglu"], [0, 3]
    )
    family = [
        Config(
            d_model=96,
            n_heads=4,
            gate=gate,
            qk_norm=normed,
            softmax=softmax,
            activation=activation,
            window=window,
        )
        for gate, normed, softmax, activation, window in switches
    ]
    count = BatchedVariants(
        family, WORDS, torch.arange(len(WORDS))[None], None, Machine(device="cpu", dtype=dtype)
    )
    storages = {
        p.untyped_storage().data_ptr(): p.untyped_storage().nbytes()
        for _, part in count._parts
        for p in part.parameters()
    }
    assert len(count._parts) == 16 + 2
    assert sum(storages.values()) < _bytes(family, WORDS, count.machine)
    deep = [config.replace(n_layers=40, skips=True, n_heads=n) for config in family for n in (1, 2)]
    extra = _bytes(deep, WORDS, count.machine) - _bytes(
        [item.replace(skips=False) for item in deep], WORDS, count.machine
    )
    assert extra >= 20 * len(deep) * len(WORDS) * 96 * 4
