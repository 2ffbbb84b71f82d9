"""Sentences under charts are true of their numbers, whatever way a journey ends."""

import json
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from core.experiments.depth.axes import Axes
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.findings import describe_finding, end_distance, uniform_entropy
from core.experiments.depth.grid import grid
from core.measure.stream_statistics import statistic
from core.model.config import Config
from core.model.text import EXAMPLES, split_words
from ui.pictures.heatmaps import pack

TOKENS = split_words(EXAMPLES[1].text)
EXPLODES = Config(norm="none", init="normal_1")
FADES = Config(
    norm="none",
    bias=False,
    init="normal_002",
    residual_attention=False,
    residual_ffn=False,
    activation="relu",
)


def sentences(*configs, tokens=TOKENS, passes=10) -> dict[str, str]:
    journeys = {
        f"v{n}" if n else "baseline": travel(c, tokens, None, Depth(passes))
        for n, c in enumerate(configs)
    }
    return {meter: describe_finding(meter, journeys) for meter in statistic}


@pytest.mark.parametrize(
    "second",
    [None, Config(norm="none"), EXPLODES, FADES, Config(attention=False), Config(d_model=32)],
)
@pytest.mark.parametrize("first", [Config(), EXPLODES, FADES, Config(attention=False, ffn=False)])
@pytest.mark.parametrize("tokens", [TOKENS, ["one"], ["the", "the", "the"]], ids=len)
def test_findings_never_contain_nan(first, second, tokens):
    for meter, text in sentences(*filter(None, (first, second)), tokens=tokens, passes=20).items():
        assert text.endswith(".") and text[0].isupper() or text.startswith("v1: "), (meter, text)
        assert not re.search(r"\bnan\b|\binf\b|(?<!rank is )undefined|-\d|None", text), (
            meter,
            text,
        )


def test_finding_names_largest_difference():
    base = travel(Config(bias=False), TOKENS, None, Depth(30))
    others = [Config(bias=False, init="normal_1"), FADES, EXPLODES]
    order = [end_distance("rms", travel(c, TOKENS, None, Depth(30)), base) for c in others]
    assert order == sorted(order) and order[0] > 0
    assert end_distance("rms", base, base) == 0
    assert "diverged" in sentences(Config(bias=False), *others, passes=30)["rms"]


NUMBER = "−?[\\d.,]*\\d(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"  # as core.settings.wording.number writes it


def read_number(text: str) -> float:
    """Read a number in the form that sentences use."""
    return float(
        text.translate(str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789", ",")).replace(" × 10", "e")
    )


PARTS = {
    "placement": ["pre", "post"],
    "residual_attention": [True, False],
    "residual_ffn": [True, False],
    "norm": ["LayerNorm", "none"],
    "init": ["default", "xavier", "normal_1"],
    "activation": ["gelu", "relu"],
    "n_heads": [4, 1],
}


@settings(max_examples=150)
@given(some.fixed_dictionaries({k: some.sampled_from(v) for k, v in PARTS.items()}), some.data())
def test_equal_sentence_requires_equality_at_all_passes(parts, data):
    field = data.draw(some.sampled_from(list(PARTS)))
    base = Config(**parts)
    other = base.replace(**{field: data.draw(some.sampled_from(PARTS[field]))})
    meter = data.draw(some.sampled_from(list(statistic)))
    text = describe_finding(meter, {"baseline": travel(base, TOKENS), "v1": travel(other, TOKENS)})
    first, two = (travel(c, TOKENS).values_of(meter) for c in (other, base))
    with np.errstate(all="ignore"):
        apart = np.abs(np.log(first / two)) if statistic[meter].log else np.abs(first - two)
    apart = apart[np.isfinite(apart)]
    if text.startswith("No difference"):
        assert apart.max(initial=0.0) < 1e-5 or meter == "mean"
    elif re.search(r": ends .*, like the baseline", text):
        index = int(re.search(r"after pass (\d+):", text)[1])
        assert (
            abs(first[-1] - two[-1]) < 1e-4 * max(1, abs(two[-1]))
            and abs(first[index] - two[index]) > 1e-6
        )
    if "stays at" in text:  # one value for both, as nothing differs
        message = two if text.startswith("No difference") else first
        assert f"{np.nanmin(message):.2g}" == f"{np.nanmax(message):.2g}" or meter == "entropy"
    match = re.search(rf"stays between ({NUMBER}) and ({NUMBER})", text)
    if match:
        message = two if text.startswith("No difference") else first
        low, high = map(read_number, match.groups())
        assert low == pytest.approx(
            np.nanmin(message), rel=0.01, abs=0.006
        ) and high == pytest.approx(np.nanmax(message), rel=0.01, abs=0.006)


def test_uniform_entropy_covers_visible_tokens():
    for padding, mask in [(0, "none"), (0, "causal"), (3, "none"), (3, "causal")]:
        journey = travel(Config(padding=padding, mask=mask), TOKENS, None, Depth(2))
        sees = [index + 1 if mask == "causal" else len(TOKENS) for index in range(len(TOKENS))]
        expected = math.fsum(math.log2(n) for n in sees) / len(sees)
        assert uniform_entropy(journey) == pytest.approx(expected, abs=1e-6)
        assert f"(uniform: {expected:.2f})" in describe_finding("entropy", {"baseline": journey})
        left = travel(Config(padding=padding, mask=mask, softmax="sink"), TOKENS, None, Depth(2))
        assert f"(uniform, weights summing to 1: {expected:.2f})" in describe_finding(
            "entropy", {"baseline": left}
        )


@pytest.mark.parametrize("every", [2, 3])
def test_uniform_entropy_uses_last_pass_window(every):
    """The last of three separate blocks is global only if every third one is."""
    journey = travel(Config(window=3, global_every=every), TOKENS, None, Depth(3, "separate"))
    length = len(TOKENS)
    near = length if every == 3 else 3
    sees = [sum(abs(index - key) < near for key in range(length)) for index in range(length)]
    assert uniform_entropy(journey) == pytest.approx(np.mean(np.log2(sees)), abs=1e-5)


@pytest.mark.parametrize("meter", statistic)
def test_explained_share_is_share_of_variance(meter):
    grid_results = grid(Config(), Axes(), TOKENS)
    values = (
        np.log10(grid_results.final_values(meter))
        if statistic[meter].log
        else grid_results.final_values(meter)
    )
    assert set(grid_results.explained(meter)) == {
        "norm",
        "placement",
        "residual",
        "activation",
        "n_heads",
    }
    for axis, share in grid_results.explained(meter).items():
        by = {
            name: [v for v, entry in zip(values, grid_results.entries) if entry[axis] == name]
            for name in grid_results.axes[axis]
        }
        between = sum(len(group) * (np.mean(group) - np.mean(values)) ** 2 for group in by.values())
        assert share == pytest.approx(
            between / sum((v - np.mean(values)) ** 2 for v in values), abs=1e-9
        )


def head_and_cells(data: bytes):
    length = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + length])
    start = 4 + length + (-length) % 4
    return head, np.frombuffer(data[start:], "<f4")


def test_zeros_and_explosions_keep_numbers_on_log_scale():
    values = torch.tensor([[[0.0, 1e-30, 0.5, 1.0, 2.0, 1e35, math.nan]]], dtype=torch.float64)
    head, cells = head_and_cells(pack(values, ["r"], list("abcdefg"), log=True))
    back = 10.0 ** cells.astype(float)
    assert back[:6] == pytest.approx(values[0, 0, :6].numpy(), rel=1e-5)
    assert np.isnan(cells[6])
    assert head["clipped"] == [True, True] and head["high"] - head["low"] <= 8 + 1e-6
    assert 10 ** head["low"] < 0.5 and 10 ** head["high"] > 2  # the many keep colours of their own
    head, _ = head_and_cells(pack(torch.zeros(1, 1, 3), ["r"], list("abc"), log=True))
    assert head["clipped"] == [True, False]
