"""Statistics equal float64 NumPy's at every size, dtype and range."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from core import Config, Transformer, measure, trace
from core.measure.stream_statistics import row_entropy
from core.measure.tensor_meters import compute_meters, meter, tidy
from core.measure.tensor_sums import LARGE, SMALL, Watcher
from core.model.parts.init import generator

# Wrong numbers and printed warnings are two questions, each with a test of its own below.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# What each column means, in words of NumPy, on float64 numbers.
MEANING = {
    "mean": np.mean,
    "std": np.std,
    "rms": lambda x: np.sqrt(np.mean(x**2)),
    "min": np.min,
    "max": np.max,
    "zeros": lambda x: np.mean(x == 0),
}


def recorded(**sites) -> trace:
    """Return a trace as a pass leaves it."""
    record_ = trace()
    record_.update(sites)
    return record_


def measured(*tensors) -> list[dict]:
    """Return the statistics of these tensors, measured together."""
    table = measure(recorded(resid_post=list(tensors)))
    return [
        dict(zip(rows["meter"], rows["value"], strict=True))
        for _, rows in table.groupby("layer", sort=True)
    ]


def assert_right(got: dict, x: torch.Tensor):
    numbers = x.detach().cpu().double().numpy().ravel()
    with np.errstate(invalid="ignore"):
        right = {name: float(meaning(numbers)) for name, meaning in MEANING.items()}
    assert got.keys() == right.keys()
    for name, value in right.items():
        slack = 0.0
        if name == "mean":
            slack = (
                1e-6 * np.abs(numbers).mean()
            )  # a mean is a sum that cancels: exact to float32 of what it sums
        if name == "std" and (numbers == numbers[0]).all():
            slack = (
                1e-10 * right["rms"]
            )  # a spread of 0 may come out as a rounding error of a rounding error
        assert got[name] == pytest.approx(value, rel=1e-5, abs=slack, nan_ok=True), name


def normal(*shape, seed=0):
    return torch.randn(shape, generator=generator(seed, "totals"))


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=generator(seed, "totals"))


# One size per way of summing: end to end, by rows, as they pass; and at the borders between them.
SIZES = {
    "one number": (1, 1, 1),
    "small": (1, 12, 64),
    "largest small": (1, 1, SMALL),
    "middling": (
        2,
        40,
        64,
    ),  # two sentences: tensors of one shape are stacked, and must not be mixed
    "largest middling": (1, 1, LARGE),
    "large": (2, 300, 128),
}
SHAPES = pytest.mark.parametrize("shape", SIZES.values(), ids=SIZES)


def with_zeros(*shape):
    return normal(*shape).relu()


def with_minus_zeros(*shape):
    return -normal(*shape).relu()


def sparse(*shape):
    """Return a causal pattern: mostly zeros, the rest positive."""
    return uniform(*shape) * (uniform(*shape, seed=1) < 0.1)


CONTENTS = {
    "normal": normal,
    "uniform": uniform,
    "all negative": lambda *shape: -uniform(*shape) - 3,
    "ReLU": with_zeros,
    "minus zero": with_minus_zeros,
    "sparse": sparse,
    "all zeros": torch.zeros,
    "constant 1": torch.ones,
    "constant 0.1": lambda *shape: torch.full(shape, 0.1),
    "constant -1e6/3": lambda *shape: torch.full(shape, -1e6 / 3),
    "squares overflow": lambda *shape: 1e25 * normal(*shape),
    "sums overflow": lambda *shape: 3e38 * uniform(*shape),
    "squares underflow": lambda *shape: 1e-25 * normal(*shape),
    "squares lose digits": lambda *shape: 1e-22 * normal(*shape),
    "tiny constant": lambda *shape: torch.full(shape, 1e-25),
    "one huge number": (
        lambda *shape: normal(*shape).flatten().index_fill(0, torch.tensor(0), 1e25).view(shape)
    ),
    "1000 ± 0.001": lambda *shape: 1000 + 0.001 * normal(*shape),
    "1e6 ± 1": lambda *shape: 1e6 + normal(*shape),
    "-1e6 ± 0.1": lambda *shape: -1e6 + 0.1 * normal(*shape),
    "1 ± 1e-5": lambda *shape: 1 + 1e-5 * normal(*shape),
    "1e25 ± 1e20": lambda *shape: 1e25 + 1e20 * normal(*shape),
    "1e-20 ± 1e-25": lambda *shape: 1e-20 + 1e-25 * normal(*shape),
    "inf": (
        lambda *shape: (
            normal(*shape).flatten().index_fill(0, torch.tensor(0), torch.inf).view(shape)
        )
    ),
    "minus inf": (
        lambda *shape: (
            normal(*shape).flatten().index_fill(0, torch.tensor(0), -torch.inf).view(shape)
        )
    ),
    "NaN": (
        lambda *shape: (
            normal(*shape).flatten().index_fill(0, torch.tensor(0), torch.nan).view(shape)
        )
    ),
    "all inf": lambda *shape: torch.full(shape, torch.inf),
    "all NaN": lambda *shape: torch.full(shape, torch.nan),
}


@pytest.mark.parametrize("content", CONTENTS)
@SHAPES
def test_statistics_are_those_of_float64(content, shape):
    x = CONTENTS[content](*shape)
    assert_right(measured(x)[0], x)


@pytest.mark.parametrize("content", CONTENTS)
@SHAPES
def test_meters_print_no_warnings(content, shape):
    """NumPy's warnings about numbers that the table shows would fill a server's log."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error"
        )  # a mark would not do: the one for the whole file goes before it
        measured(CONTENTS[content](*shape))


@pytest.mark.parametrize("content", CONTENTS)
@SHAPES
def test_tensors_are_measured_independently(content, shape):
    """A tensor's overflow, NaN or zeros do not affect others, in any order and size."""
    others = [normal(1, 12, 64, seed=1), with_zeros(2, 40, 64), normal(*shape, seed=2)]
    for index in range(4):
        tensors = [*others[:index], CONTENTS[content](*shape), *others[index:]]
        for place, (got, x) in enumerate(zip(measured(*tensors), tensors, strict=True)):
            if place != index:  # the tensor itself is in the test above
                assert_right(got, x)


def test_small_middling_and_large_together():
    tensors = [normal(*shape, seed=seed) + seed for seed in range(3) for shape in SIZES.values()]
    for got, x in zip(measured(*tensors), tensors, strict=True):
        assert_right(got, x)


def test_long_text_measures_all_heads():
    """64 heads and 256 tokens are 4 million numbers: float32 rounding errors would add up."""
    pattern = (2 * normal(1, 64, 256, 256)).softmax(-1)
    assert_right(measured(pattern)[0], pattern)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@SHAPES
def test_other_number_formats(dtype, shape):
    x = (2 + normal(*shape)).to(dtype)
    y = normal(*shape, seed=1)
    for got, right in zip(measured(x, y, x), (x, y, x), strict=True):
        assert_right(got, right)


@SHAPES
def test_views_that_are_not_contiguous(shape):
    views = [
        normal(*shape).mT,
        normal(*shape[:-1], 2 * shape[-1])[..., ::2],
        normal(1, 1, shape[2]).expand(shape),
        normal(*shape).permute(2, 0, 1),
    ]
    for x in views:
        assert_right(measured(x)[0], x)
    for got, x in zip(measured(*views), views, strict=True):
        assert_right(got, x)


@SHAPES
def test_tensors_with_gradients_are_measured_unchanged(shape):
    leaf = normal(*shape).requires_grad_()
    x = 2 * leaf
    before = x.detach().clone()
    for got in measured(leaf, x):
        assert all(isinstance(value, float) for value in got.values())
    assert_right(measured(x)[0], x)
    assert torch.equal(x, before)
    x.sum().backward()
    assert (leaf.grad == 2).all()


# The table


def test_meters_have_reference_definitions():
    assert list(meter) == list(MEANING)


def test_statistics_table_is_tidy_and_ordered():
    x = [normal(1, 3, 4, seed=seed) for seed in range(3)]
    table = measure(recorded(z=x[:2], embed=x[2:]))
    assert list(table.columns) == ["layer", "site", "meter", "value"]
    assert list(zip(table["site"], table["layer"], table["meter"])) == [
        (site, layer, name) for site, layer in (("z", 0), ("z", 1), ("embed", 0)) for name in meter
    ]
    assert table["value"].dtype == np.float64
    assert pd.api.types.is_integer_dtype(table["layer"])
    for index, rows in enumerate(np.split(table["value"].to_numpy(), 3)):
        assert_right(dict(zip(meter, rows.tolist())), x[index])


def test_requested_sites_come_in_order_without_absent_ones():
    x = normal(1, 3, 4)
    table = measure(recorded(z=[x], q=[x], embed=[x]), sites=["embed", "pattern", "z"])
    assert list(table["site"].unique()) == ["embed", "z"]


@pytest.mark.parametrize("sites", [None, [], ["pattern"]])
def test_empty_trace_gives_empty_table(sites):
    """The trace is empty if attention is switched off and its pattern is requested."""
    table = measure(recorded(), sites=sites)
    assert list(table.columns) == ["layer", "site", "meter", "value"]
    assert len(table) == 0


@pytest.mark.parametrize("d_model", [16, 256])
def test_measuring_during_pass_equals_after(d_model):
    model = Transformer(Config(d_model=d_model, n_layers=2), [f"word {n}" for n in range(60)])
    tokens = torch.arange(60)[None]
    watcher = Watcher()
    with torch.no_grad(), trace(watcher) as record:
        model(tokens)
    by = ["site", "layer", "meter"]
    during, after = (
        t.set_index(by)["value"] for t in (tidy(*compute_meters(watcher)), measure(record))
    )
    assert len(during) == len(after) == len(meter) * sum(map(len, record.values()))
    pd.testing.assert_series_equal(during.sort_index(), after.sort_index(), rtol=1e-6)
    for (site, layer), values in after.groupby(level=["site", "layer"]):
        assert_right(dict(zip(values.index.get_level_values("meter"), values)), record[site][layer])


def test_measuring_changes_no_tensor_and_no_random_state():
    tensors = [with_zeros(*shape) for shape in SIZES.values()]
    before = [x.clone() for x in tensors]
    state = torch.random.get_rng_state()
    measured(*tensors)
    assert all(map(torch.equal, tensors, before))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.slow
@pytest.mark.own_process
def test_attention_entropy_survives_flushed_subnormals():
    torch.set_flush_denormal(True)  # as on Apple's GPUs
    rows = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25] * 4])
    assert row_entropy(rows).tolist() == [0.0, 1.0, 2.0]
