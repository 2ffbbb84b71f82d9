"""Statistics by depth equal their definitions on reference.py's streams, at every range."""

import math

import numpy as np
import pytest
import torch

import core.experiments.depth.depth as depth_module
from core import Config, ConfigError, Transformer, trace
from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import ROUNDING, Depth, journey, table, travel
from core.experiments.depth.findings import describe_finding, describe_rounding
from core.experiments.depth.gradients import gradients
from core.experiments.depth.grid import grid, travel_many
from core.experiments.forward import encode_tokens, prepare_model
from core.measure.stream_statistics import Streams, attention_entropy, row_entropy, statistic
from core.model.attention import Memory
from core.model.parts import MENUS
from core.model.parts.init import generator
from core.settings.device import Machine
from tests import reference
from tests.cases import ENTRIES, RECENT, SWITCHES, WAYS, named

WORDS = (
    "the",
    "court",
    "held",
    "that",
    "the",
    "tenants",
)  # one word twice: two tokens that start alike
HERE = Machine(device="cpu")
BASE = Config(d_model=16, n_heads=2, d_ff=24, seed=3)
SETTINGS = {  # the two surroundings in which every part is tried
    "all seen": {},
    "causal and padded": {"mask": "causal", "padding": 3},
}

OFF = [
    {field: False, "placement": placement} for field in SWITCHES for placement in MENUS["placement"]
]
COMBINED = [
    {"attention": False, "ffn": False},
    {"residual_attention": False, "residual_ffn": False, "norm": "none"},
    {
        "placement": "post",
        "norm": "RMSNorm",
        "position": "rope",
        "activation": "swiglu",
        "bias": False,
    },
    {"n_heads": 1, "position": "alibi"},
    *RECENT,
]


EVERY = pytest.mark.parametrize("change", named(ENTRIES + OFF + COMBINED))


# The definitions, in float64, one number at a time


def plain_statistics(x, patterns, n_real) -> dict[str, float]:
    """Return the statistics of the real tokens' vectors in plain Python.

    Args:
        x: vectors (T, D).
        patterns: (H, T, T) attention weights that made them, or None.
    """
    numbers = [float(number) for vector in x for number in vector]
    average = math.fsum(numbers) / len(numbers)
    return {
        "rms": math.sqrt(math.fsum(number**2 for number in numbers) / len(numbers)),
        "std": math.sqrt(math.fsum((number - average) ** 2 for number in numbers) / len(numbers)),
        "mean": average,
        "largest": max(abs(number) for number in numbers),
        "cosine": plain_cosine(x),
        "rank": plain_rank(np.linalg.svd(np.array(x), compute_uv=False)),
        "entropy": math.nan if patterns is None else plain_entropy(patterns, n_real),
    }


def plain_cosine(x) -> float:
    """Return the mean cosine over pairs of different tokens; a single token has none."""
    actual = []
    for index in range(len(x)):
        for two in range(index):
            lengths = math.sqrt(math.fsum(a * a for a in x[index])) * math.sqrt(
                math.fsum(b * b for b in x[two])
            )
            actual.append(
                math.fsum(a * b for a, b in zip(x[index], x[two])) / lengths if lengths else 0.0
            )
    return math.fsum(actual) / len(actual) if actual else math.nan


def plain_rank(singular) -> float:
    """Return the effective rank by Roy and Vetterli (2007).

    It is exp of the Shannon entropy of the singular values, divided by their sum.
    """
    shares = [value / sum(singular) for value in singular]
    return math.exp(-math.fsum(share * math.log(share) for share in shares if share > 0))


def plain_entropy(patterns, n_real) -> float:
    """Return the entropy in bits, averaged over heads and real queries."""
    actual = []
    for head in patterns:
        for reader in range(n_real):
            actual.append(
                -math.fsum(weight * math.log2(weight) for weight in head[reader] if weight > 0)
            )
    return math.fsum(actual) / len(actual)


def plain_journey(model, config, order) -> list[dict[str, float]]:
    """Return the statistics of reference.py's float64 stream after every pass."""
    vocabulary_used, ids, _ = encode_tokens(WORDS, config.padding, "cpu")
    assert vocabulary_used == model.vocabulary
    real = [index < len(WORDS) for index in range(len(WORDS) + config.padding)]
    sentence = reference.Sentence(reference.weights_of(model), config, ids[0].tolist(), real)
    x = sentence.embedded()
    actual = [plain_statistics(x[: len(WORDS)], None, len(WORDS))]
    outputs = {}
    layers = model.config.n_layers
    for layer in order:
        # with post-norm: after the block's last norm
        x = sentence.block(0 if config.shared else layer, x)
        patterns = None
        outputs[layer] = x
        early = layers - 2 - layer  # a layer of the later half reads this one's output, too
        if config.skips and early in outputs and early <= layer:
            x = [a + sentence.weights["skip"][early] * b for a, b in zip(x, outputs[early])]
        if config.attention:
            patterns = sentence.seen["pattern"][-1]
        actual.append(plain_statistics(x[: len(WORDS)], patterns, len(WORDS)))
    return actual


def shaken(config, way, passes):
    """Return a model with random gains and biases of norms, its tokens and its order of blocks.

    Gains of 1 and biases of 0 would hide one that is forgotten.
    """
    built, order = Depth(passes, way).plan(config)
    model, ids, real = prepare_model(built, WORDS, HERE)
    noise = generator(1, "shaken")
    for name, parameter in model.named_parameters():
        if ".ln" in name:
            parameter += 0.3 * torch.randn(parameter.shape, generator=noise)
    return model, ids, real, order


def assert_statistics(measured_values, expected, tolerance):
    assert list(expected[0]) == list(statistic)
    right = np.array([list(row.values()) for row in expected])
    assert measured_values.values.shape == right.shape
    assert (np.isnan(measured_values.values) == np.isnan(right)).all()
    off = np.nan_to_num(np.abs(measured_values.values - right) / (1 + np.abs(right)))
    index, which = np.unravel_index(off.argmax(), off.shape)
    assert off.max() <= tolerance, (
        f"{list(statistic)[which]} after pass {index} is off by {off.max():.1e}"
    )


@EVERY
@WAYS
@pytest.mark.parametrize("setting", SETTINGS)
def test_statistics_of_all_passes_match_the_reference(change, way, setting):
    config = BASE.replace(**SETTINGS[setting] | change)
    model, ids, real, order = shaken(config, way, 4)
    # float32 rounds to 6e-8. Four passes let that grow, here to less than 5e-6, and the statistics
    # themselves are taken in float64: 1e-4 is room, and far below what a wrong formula would do.
    # normal_1 saturates attention, which magnifies rounding (tests/test_reference.py): it is
    # compared in float64.
    if config.init.startswith("normal_1"):
        model = model.double()
    journey_made = journey(model, ids, real, config, WORDS, order, set())
    assert_statistics(journey_made, plain_journey(model, config, order), 1e-4)
    assert journey_made.diverged is None


@WAYS
@pytest.mark.parametrize("setting", SETTINGS)
def test_travel_measures_the_model_that_the_settings_name(way, setting):
    config = BASE.replace(position="learned", **SETTINGS[setting])
    built, order = Depth(5, way).plan(config)
    model = Transformer(built, encode_tokens(WORDS, config.padding, "cpu")[0])
    journey_made = travel(config, WORDS, HERE, Depth(5, way))
    assert_statistics(journey_made, plain_journey(model, config, order), 1e-4)
    assert journey_made.tokens == (*WORDS, *["<pad>"] * config.padding)
    assert journey_made.n_real == len(WORDS)
    assert journey_made.config == config


@WAYS
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("passes", [1, 2, 5])
def test_shown_passes_keep_attention_and_similarity(way, setting, passes):
    config = BASE.replace(**SETTINGS[setting])
    depth = Depth(passes, way)
    built, order = depth.plan(config)
    model, ids, real = prepare_model(built, WORDS, HERE)
    journey_made = travel(config, WORDS, HERE, depth)
    assert list(depth.shown_passes.values()) == [1, math.ceil(passes / 2), passes]
    assert set(journey_made.patterns) == set(journey_made.alike) == set(depth.shown_passes.values())
    numbers = ids[0].tolist()
    sentence = reference.Sentence(
        reference.weights_of(model),
        config,
        numbers,
        [index < len(WORDS) for index in range(len(numbers))],
    )
    x = [sentence.weights["embed"][token] for token in numbers]
    for position, layer in enumerate(order, 1):
        x = sentence.block(layer, x)
        if position in journey_made.patterns:
            pattern = sentence.seen["pattern"][-1]
            assert np.abs(journey_made.patterns[position].numpy() - pattern).max() < 1e-5
            unit = np.array([vector / np.linalg.norm(vector) for vector in x[: len(WORDS)]])
            assert np.abs(journey_made.alike[position].numpy() - unit @ unit.T).max() < 1e-5


def test_without_attention_there_are_no_patterns_and_no_entropy():
    journey_made = travel(BASE.replace(attention=False), WORDS, HERE, Depth(3))
    assert journey_made.patterns == {}
    assert np.isnan(journey_made.values_of("entropy")).all()
    assert set(journey_made.alike) == {1, 2, 3}


def test_table_matches_journeys():
    journeys = {
        "one": travel(BASE, WORDS, HERE, Depth(2)),
        "two": travel(BASE.replace(seed=1), WORDS, HERE, Depth(2)),
    }
    rows = table(journeys)
    assert len(rows) == 2 * 3 * len(statistic)
    for name, index, meter, value in rows.itertuples(index=False):
        assert value == pytest.approx(journeys[name].values_of(meter)[index], nan_ok=True)


@pytest.mark.parametrize("passes", [0, 101, 2.5, True, "4"])
def test_impossible_number_of_passes_is_refused_in_words(passes):
    with pytest.raises(
        ConfigError, match="passes is .*; it must be a whole number from 1 to 100"
    ) as refused:
        Depth(passes)
    assert refused.value.field == "passes"
    with pytest.raises(ConfigError, match="blocks is “other”; it must be one of same, separate"):
        Depth(blocks="other")


# Closed forms


def measured(x, patterns=None) -> dict[str, float]:
    """Return the statistics of one stream (T, D)."""
    entropy = (
        torch.tensor([math.nan])
        if patterns is None
        else attention_entropy(patterns, x.shape[0])[None]
    )
    return dict(zip(statistic, Streams(x[None], entropy).table[0].tolist()))


def normal(*shape, seed=0):
    return torch.randn(shape, generator=generator(seed, "depth"), dtype=torch.float64)


def directions(count, width, seed=0):
    """Return orthogonal vectors of length 1: (count, width)."""
    return torch.linalg.qr(normal(width, width, seed=seed))[0][:count]


@pytest.mark.parametrize(
    "singular",
    [
        [1, 1],
        [2, 1],
        [3, 2, 1],
        [1, 0.5, 0.25, 0.125, 0.0625],
        [1, 1e-3],
        [1, 1e-6, 1e-6],
        [5, 5, 5, 0, 0],
        [1e15, 1],
    ],
)
@pytest.mark.parametrize("shape", [(5, 12), (12, 5), (12, 12)])
def test_effective_rank_of_singular_values_that_are_known(singular, shape):
    count = min(len(singular), *shape)
    values = torch.tensor(singular[:count], dtype=torch.float64)
    left = directions(count, shape[0], seed=1)
    right = directions(count, shape[1], seed=2)
    got = measured((left.T * values) @ right)["rank"]
    assert got == pytest.approx(plain_rank(values.tolist()), rel=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 256])
def test_uniform_entropy_is_log2_n_and_one_hot_0(n):
    even = torch.full((2, n, n), 1 / n)
    assert attention_entropy(even, n).item() == pytest.approx(math.log2(n), abs=1e-5)
    assert attention_entropy(torch.eye(n).expand(2, n, n), n).item() == 0
    assert row_entropy(even).shape == (2, n)


def test_cosine_of_identical_orthogonal_and_opposite_tokens():
    direction = directions(1, 8)[0]
    assert measured(torch.stack([direction] * 5))["cosine"] == pytest.approx(1, abs=1e-12)
    assert measured(torch.stack([direction, 7 * direction, 0.1 * direction]))[
        "cosine"
    ] == pytest.approx(1, abs=1e-12)
    assert measured(directions(8, 8))["cosine"] == pytest.approx(0, abs=1e-12)
    assert measured(torch.stack([direction, -direction]))["cosine"] == pytest.approx(-1, abs=1e-12)


def test_single_token_is_similar_to_itself_only():
    got = measured(normal(1, 16))
    assert math.isnan(got["cosine"])
    assert got["rank"] == pytest.approx(1, abs=1e-6)
    journey_made = travel(BASE, ["alone"], HERE, Depth(2))
    assert np.isnan(journey_made.values_of("cosine")).all()
    assert journey_made.values_of("entropy")[1:].tolist() == [0, 0]
    assert journey_made.values_of("rank") == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_zero_stream_has_zero_statistics(dtype):
    got = measured(torch.zeros(4, 8, dtype=dtype))
    assert got["rms"] == got["std"] == got["mean"] == got["largest"] == got["cosine"] == 0
    assert math.isnan(got["rank"]) and math.isnan(got["entropy"])


# Numbers near the edge of what can be written


def right(x) -> dict[str, float]:
    return plain_statistics(x.double().numpy(), None, len(x))


@pytest.mark.parametrize(
    ("average", "spread"),
    [(1e4, 1e-3), (1e4, 0.1), (-3e6, 1.0), (1.0, 1e-6), (1.0, 1e-3), (1.0, 3e-3), (1e30, 1e24)],
)
def test_spread_of_numbers_far_from_zero(average, spread):
    """Near 1e4, float32 numbers are 0.001 apart: both sides get the numbers rounded to float32."""
    x = (average + spread * normal(6, 64)).float()
    got = measured(x)
    expected = right(x)
    assert expected["std"] > 0
    for name in ("std", "mean", "rms", "largest", "cosine"):
        assert got[name] == pytest.approx(expected[name], rel=1e-7), name


@pytest.mark.parametrize("size", [1e37, 1e-37, 1e-42])
def test_extreme_float32_numbers(size):
    x = (size * normal(6, 64).clamp(-3, 3)).float()
    assert x.isfinite().all() and x.any()
    assert measured(x) == pytest.approx(right(x), rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("noise", [1e-6, 1e-5, 1e-3, 1.0])
def test_effective_rank_of_a_stream_that_has_nearly_collapsed(noise):
    """Small singular values have squares of 1e-14 of the largest's, which float32 sums lose."""
    x = (normal(1, 512) + noise * normal(128, 512, seed=1)).float()
    expected = plain_rank(np.linalg.svd(x.double().numpy(), compute_uv=False))
    assert expected > 1 + 1e-5
    assert measured(x)["rank"] == pytest.approx(expected, abs=1e-3)
    assert measured(x)["rank"] - 1 == pytest.approx(expected - 1, rel=0.05)


# Divergence


def first_not_finite(config, way, passes, dtype=torch.float32) -> int | None:
    """Return the first pass that is not finite, block by block, without trace or statistics."""
    built, order = Depth(passes, way).plan(config)
    model, ids, real = prepare_model(built, WORDS, HERE)
    model = model.to(dtype)
    x = model.position.embed(model.embed[ids])
    allowed = model.attention_mask(ids, real)
    for index, layer in enumerate(order, 1):
        x = model.blocks[layer](x, allowed)
        if not all(math.isfinite(number) for number in x[0, : len(WORDS)].flatten().tolist()):
            return index
    return None


TOO_LARGE = {"init": "normal_1", "norm": "none"}


@WAYS
@pytest.mark.parametrize(
    "change",
    named(
        [
            {},
            {"d_model": 64, "n_heads": 4},
            {"residual_attention": False, "residual_ffn": False},
            {"activation": "relu", "padding": 3},
            {"activation": "swiglu", "mask": "causal"},
            {"attention": False, "activation": "identity"},
            {"position": "alibi", "scale": False, "bias": False},
        ]
    ),
)
def test_divergence_matches_bare_blocks(change, way):
    config = BASE.replace(**TOO_LARGE | change)
    passes = 60
    pass_ = first_not_finite(config, way, passes)
    assert pass_ is not None and pass_ > 1
    journey_made = travel(config, WORDS, HERE, Depth(passes, way))
    assert journey_made.diverged == pass_
    assert np.isnan(journey_made.values[pass_:]).all()
    entropy = list(statistic).index("entropy")
    assert np.isfinite(np.delete(journey_made.values, entropy, axis=1)[:pass_]).all()
    if config.attention:
        assert np.isfinite(journey_made.values[1:pass_, entropy]).all()


@WAYS
def test_float16_diverges_before_float32_and_bfloat16(way):
    """float16 ends at 65,504. Machine lends it to a GPU only, but a CPU can compute it."""
    config = BASE.replace(**TOO_LARGE)
    passes = 4
    built, order = Depth(passes, way).plan(config)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        with torch.inference_mode():
            model, ids, real = prepare_model(built, WORDS, HERE)
            journey_made = journey(model.to(dtype), ids, real, config, WORDS, order, {1, passes})
        assert journey_made.diverged == first_not_finite(config, way, passes, dtype)
        assert (journey_made.diverged is not None) == (dtype == torch.float16)
        finite = journey_made.values[: journey_made.diverged, : list(statistic).index("entropy")]
        assert np.isfinite(finite).all() and finite.size
        if journey_made.diverged:
            assert 1 < journey_made.diverged < passes
            assert np.isnan(journey_made.values[journey_made.diverged :]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_statistics_use_rounded_stream(dtype):
    built, order = Depth(3, "separate").plan(BASE)
    with torch.inference_mode():
        model, ids, real = prepare_model(built, WORDS, HERE)
        journey_made = journey(model.to(dtype), ids, real, BASE, WORDS, order, set())
        x = model.embed[ids]
        expected = [right(x[0])]
        for layer in order:
            x = model.blocks[layer](x)
            expected.append(right(x[0]))
    for index, row in enumerate(expected):
        del row["entropy"]
        assert {name: journey_made.values_of(name)[index] for name in row} == pytest.approx(
            row, rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@WAYS
def test_divergence_raises_nothing_anywhere(way, dtype):
    config = BASE.replace(**TOO_LARGE)
    machine = Machine(device="cpu", dtype=dtype)
    depth = Depth(30, way)
    journey_made = travel(config, WORDS, machine, depth)
    assert journey_made.diverged
    table({"it": journey_made})
    assert gradients(config, WORDS, machine, depth).diverged
    together = grid(config, Axes("norm-none"), WORDS, machine, depth)
    assert all(together.diverged)
    assert np.isnan(together.values[:, -1]).all()
    assert (
        journey_made.diverged < 15
    )  # so of the first, the middle and the last pass only the first is left to look at
    assert set(journey_made.patterns) == set(journey_made.alike) == {1}
    assert journey_made.patterns[1].isfinite().all() and journey_made.alike[1].isfinite().all()


def come_back() -> Config:
    """Return a model with a stream that grows 2.4 times a pass, overflows and is finite again.

    The stream is one number times a fixed vector: w_out·relu(w_in·x). The largest number alone
    overflows, where w_in is negative: relu(−inf) is 0, and everything after it is 0, and finite.
    """
    return Config(
        d_model=8,
        n_heads=1,
        d_ff=1,
        seed=2829,
        attention=False,
        residual_ffn=False,
        activation="relu",
        bias=False,
        **TOO_LARGE,
    )


@pytest.mark.parametrize("by", ["travel", "grid"])
def test_stream_stays_diverged_after_infinity(by):
    if by == "travel":
        values = travel(come_back(), ["the"], HERE, Depth(100)).values
    else:
        values = travel_many([come_back()], ["the"], HERE, [0] * 100)[0][0]
    assert np.isnan(values[85:]).all()


# Measuring does not disturb


@WAYS
@pytest.mark.parametrize(
    "change",
    named(
        [
            {},
            {"padding": 3, "mask": "causal"},
            {"attention": False},
            TOO_LARGE,
            {"placement": "post"},
        ]
    ),
)
def test_chunked_measurement_equals_measurement_at_once(change, way, monkeypatch):
    config = BASE.replace(**change)
    model, ids, real, order = shaken(config, way, 20)
    sizes = []

    class CountedStreams(Streams):
        def __init__(self, x, entropy):
            sizes.append(len(x))
            super().__init__(x, entropy)

    monkeypatch.setattr(depth_module, "Streams", CountedStreams)

    def run(chunk):
        sizes.clear()
        monkeypatch.setattr(depth_module, "CHUNK", chunk)
        return journey(model, ids, real, config, WORDS, order, {1, 10, 20})

    full = run(1 << 30)
    assert sizes == [21]
    for chunk in (1, 2 * len(WORDS) * config.d_model, 1000):
        parts = run(chunk)
        assert len(sizes) > 1 and sum(sizes) == 21
        np.testing.assert_allclose(parts.values, full.values, rtol=1e-6, atol=1e-6)
        assert parts.diverged == full.diverged
        assert parts.patterns.keys() == full.patterns.keys()
        # NaN is not equal to itself
        same = [
            torch.allclose(parts.patterns[index], full.patterns[index], 0, 0, equal_nan=True)
            for index in full.patterns
        ]
        same += [
            torch.allclose(parts.alike[index], full.alike[index], 0, 0, equal_nan=True)
            for index in full.alike
        ]
        assert all(same)


@WAYS
@EVERY
def test_measuring_does_not_change_the_stream_bit_for_bit(change, way, monkeypatch):
    config = BASE.replace(padding=2).replace(**change)
    model, ids, real, order = shaken(config, way, 4)
    x = model.embed_tokens(ids)
    allowed = model.attention_mask(ids, real)
    plain = [x[0, : len(WORDS)]]
    memory = {}
    for layer in order:
        x = model.run_layer(layer, x, allowed, memory)
        plain.append(x[0, : len(WORDS)])
    observed = []
    stream = model.run_blocks
    last = []

    class StoredStreams(Streams):
        def __init__(self, x, entropy):
            observed.extend(x.clone())
            super().__init__(x, entropy)

    monkeypatch.setattr(depth_module, "Streams", StoredStreams)
    monkeypatch.setattr(model, "run_blocks", lambda *args: last.append(stream(*args)) or last[-1])
    journey(model, ids, real, config, WORDS, order, {1, 2, 4})
    assert len(observed) == len(plain) == 5
    assert all(map(torch.equal, observed, plain))
    assert torch.equal(last[0], x)


# Rounding

CHAOTIC = Config(init="normal_1", activation="tanh", placement="post")


def in_float64(config, depth: Depth) -> list[torch.Tensor]:
    """Return the stream before pass 1 and after each pass, of a model in float64 throughout."""
    built, order = depth.plan(config.replace(n_layers=1))
    with torch.no_grad():
        model, ids, real = prepare_model(built, WORDS, HERE)
        model.double()
        x = model.embed_tokens(ids)
        allowed = model.attention_mask(ids, real)
        memory = Memory()
        streams = [x[0]]
        for index in order:
            x = model.run_layer(index, x, allowed, memory)
            streams.append(x[0])
    return streams


@pytest.mark.parametrize("init, chaotic", [("normal_1", True), ("default", False)])
def test_rounding_pass_is_first_to_differ_from_float64(init, chaotic):
    config = CHAOTIC.replace(init=init)
    depth = Depth(passes=40)
    journey_made = travel(config, WORDS, HERE, depth, compare_precision=True)
    plain = travel(config, WORDS, HERE, depth)
    np.testing.assert_array_equal(
        journey_made.values, plain.values
    )  # what is shown is what the chosen precision gives
    assert plain.rounded is None
    exact = in_float64(config, depth)
    with torch.no_grad(), trace(sites=["resid_pre"]) as record:
        built, order = depth.plan(config)
        model, ids, real = prepare_model(built, WORDS, HERE)
        end = model.run_blocks(ids, real, order)
    ours = [x[0].double() for x in (*record["resid_pre"], end)]
    off = [((a - b).norm() / b.norm()).item() > ROUNDING for a, b in zip(ours, exact)]
    assert any(off) == chaotic
    assert journey_made.rounded == (off.index(True) if chaotic else None)


def test_findings_skip_passes_decided_by_rounding():
    journeys = {"baseline": travel(CHAOTIC, WORDS, HERE, Depth(passes=40), compare_precision=True)}
    first = journeys["baseline"].rounded
    shorter = {"baseline": travel(CHAOTIC, WORDS, HERE, Depth(passes=first - 1))}
    for meter in statistic:
        assert describe_finding(meter, journeys) == describe_finding(meter, shorter)
    assert describe_rounding(journeys).startswith(f"From pass {first} on, rounding dominates")
    assert describe_rounding(shorter) == "" and journeys["baseline"].rounded < 40


def test_half_precision_is_not_compared_with_float64():
    journey_made = travel(
        CHAOTIC, WORDS, Machine("cpu", "bfloat16"), Depth(passes=5), compare_precision=True
    )
    assert journey_made.rounded is None
