"""What a page says follows from its numbers and from the settings that are shown."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from core.experiments.block.attention import scaling
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.findings import finding as depth_finding
from core.experiments.depth.gradients import ignores_key_bias, successor_loss, weight_rows
from core.experiments.forward import forward, numbered, watched
from core.experiments.training.sentences import finding
from core.measure.intervals import interval
from core.measure.stream_statistics import row_entropy, statistic
from core.model.config import Config
from core.model.parts import MENUS
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.study.picture import matrix_svg
from core.study.shipped import table_of
from core.study.summary import read_summary
from core.teaching.lessons.lesson import Number, Prediction
from core.teaching.lessons.prediction import (
    AS_PREDICTED,
    NOT_AS_PREDICTED,
    UNDECIDED,
    Outcome,
    clear_pairs,
    verdict,
)
from core.teaching.lessons.readings import Measured
from core.teaching.lessons.wording import ENGLISH_WORDS, describe_ties
from tests.test_model_page import opened, texts
from tests.test_page import fine
from tests.test_results import NO_ATTENTION, NO_FFN, NO_NORM, NO_SCALING, ended, gone, planned, row
from ui.depth import grid as grid_view
from ui.trained import knockout as knockout_view
from ui.trained import parts as sweep
from ui.training import curves as play

WORDS = "the judge read the law and the law held".split()
SMALL = Config(d_model=16, n_heads=2, n_layers=2, position="sinusoidal")


# b_K


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"position": "rope"}, {"position": "rope", "rope_share": 0.5}, {"position": "alibi"}, {"mask": "causal"}, {"softmax": "off_by_one"},
        {"softmax": "sink"}, {"score_cap": 2.0}, {"qk_norm": True}, {"position": "rope", "nope_every": 1}, {"position": "rope", "nope_every": 2},
        {"scale": False}, {"window": 3}, {"gate": True}, {"padding": 2},
    ],
    ids=str,
)  # fmt: skip
def test_the_bias_of_keys_has_a_gradient_where_it_is_not_said_to_be_rounding(changes):
    """In float64, where rounding is 10⁻¹⁶ of what is no rounding."""
    config = SMALL.replace(**{"init": "normal_1", **changes})
    known, ids, real = numbered(WORDS, config.padding, "cpu")
    model = Transformer(config, known).double()
    with torch.no_grad():  # biases are zeros at first
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_(generator=torch.Generator().manual_seed(0))
    loss = successor_loss(model, model.stream(ids, real), ids, len(WORDS))
    blocks = dict(model.blocks.named_parameters())
    norms = weight_rows(model, dict(zip(blocks, torch.autograd.grad(loss, list(blocks.values())))))
    of = lambda part: [value for _, name, value in norms if name == part]  # noqa: E731
    rounding = [key < 1e-9 * query for key, query in zip(of("b_K"), of("b_Q"))]
    assert ignores_key_bias(config) == all(rounding)


# Entropy


@pytest.mark.parametrize("softmax", MENUS["softmax"])
def test_the_entropy_of_scaled_and_raw_scores_is_that_of_models_with_and_without_scaling(softmax):
    """The same weights in the first layer, so the same queries and keys."""
    on, off = (
        forward(SMALL.replace(softmax=softmax, scale=scale, init="normal_1"), WORDS, Machine("cpu"))
        for scale in (True, False)
    )
    for seen in (on, off):
        for head in range(2):
            found = scaling(seen, 0, head)
            for name, other in (("scaled", on), ("unscaled", off)):
                assert found[name] == pytest.approx(
                    row_entropy(other.sites["pattern"][0][head]).mean().item(), abs=1e-5
                )


def test_the_entropy_of_a_trained_sink_counts_the_sink():
    config = SMALL.replace(softmax="sink", init="normal_1", mask="causal")
    known, ids, _ = numbered(WORDS, 0, "cpu")
    passes = []
    for scale in (True, False):
        model = Transformer(config.replace(scale=scale), known)
        with torch.no_grad():
            model.blocks[0].attn.softmax.score.copy_(torch.tensor([1.5, -2.0]))
        passes.append(watched(model, ids, tuple(WORDS), len(WORDS), Machine("cpu"), "test"))
    for head in range(2):
        found = scaling(passes[0], 0, head)
        for name, seen in zip(("scaled", "unscaled"), passes):
            assert found[name] == pytest.approx(row_entropy(seen.sites["pattern"][0][head]).mean().item(), abs=1e-4)


@pytest.mark.parametrize(
    ("softmax", "words"),
    [("usual", "this head's softmax:"), ("off_by_one", "this head's softmax + 1:"), ("sink", "this head's softmax with a sink:")],
)  # fmt: skip
def test_the_softmax_of_an_entropy_is_named(softmax, words):
    said = texts(fine(opened("pages/1_One_block.py", view="steps", weights="random", step="7", softmax=softmax)))
    assert f"Entropy of {words}" in said
    assert ("with nothing left over" in said) == (softmax != "usual")


# What forbids a pair


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mask": "causal", "pairs": "1-4"}, "The mask forbids all marked pairs:"),
        ({"mask": "none", "window": "2", "pairs": "1-4"}, "The window of this layer forbids all marked pairs:"),
        ({"mask": "causal", "window": "2", "pairs": "1-4,4-1"}, "The mask and the window of this layer forbid all marked pairs:"),
        ({"mask": "causal", "window": "2", "pairs": "4-1,4-3"}, "1 of 2 pairs is forbidden by the window of this layer, and taken as 0."),
        ({"mask": "causal", "pairs": "1-4,4-1"}, "1 of 2 pairs is forbidden by the mask, and taken as 0."),
    ],
)  # fmt: skip
def test_what_forbids_a_pair_is_named(settings, said):
    app = opened("pages/1_One_block.py", view="pairs", weights="random", text="one two three four", **settings)
    assert said in texts(fine(app))


# Numbers that are none, or that read alike

FADES = Config(norm="none", bias=False, init="normal_002", residual_attention=False, residual_ffn=False, activation="relu")  # fmt: skip


@pytest.mark.parametrize(
    "config", [Config(), Config(attention=False, ffn=False), FADES, Config(norm="none", attention=False, ffn=False)]
)
def test_no_statistic_goes_from_a_number_to_itself(config):
    for words in (WORDS, ["one", "two"]):
        journey = travel(config, words, None, Depth(6))
        for meter in statistic:
            said = depth_finding(meter, {"baseline": journey})
            ends = re.search(r"[Ff]rom ([\d.e−]+)(?: \w+)?(?:, of at most \d+,)? to ([\d.e−]+)\b", said)
            assert not ends or ends[1] != ends[2], said


def _grid(ends, shares=None):
    ends = np.array(ends)
    return SimpleNamespace(
        ends=lambda meter: ends, alike=lambda meter: False, diverged=[None] * len(ends), name=lambda at: f"v{at}", explained=lambda meter: shares or {},
        shared_by_diverged=lambda: None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.496, "No part explains more than half of the difference; norm explains 49.6 % of"),
        (0.4999, "No part explains more than half of the difference; norm explains 50 % of"),
        (0.5004, "No part explains more than half of the difference; norm explains 50 % of"),
        (0.504, "Most of the difference is made by norm: 50.4 % of"),
    ],
)
def test_what_is_said_of_half_agrees_with_the_percentage(share, said):
    assert said in grid_view.told(_grid([1.0, 2.0], {"norm": share}), "rms")


# What is kept


@pytest.mark.parametrize(("mask", "kept"), [("none", False), ("causal", True)])
def test_keys_and_values_are_kept_only_where_no_token_sees_ahead(mask, kept):
    said = texts(fine(opened("pages/1_One_block.py", view="cost", weights="random", mask=mask)))
    assert ("Keys and values: " in said) == kept
    assert ("Nothing: without a causal mask every token sees the new one." in said) != kept


# Trainings


def test_only_differences_that_were_compared_are_counted():
    made, _ = planned(NO_NORM, NO_FFN, NO_SCALING, NO_ATTENTION, seeds=3)
    names = [arm.name for arm in made.arms]
    values = [[0.9, 0.91, 0.92], [None] * 3, [0.5, 0.52, 0.55], [None] * 3, [0.8, 0.85, 0.84]]
    said = finding(ended(made, dict(zip(names, values))), made)
    assert "corrected for 2 variants (Holm)" in said


def test_a_model_whose_seeds_diverged_is_said_to_have_diverged():
    made, _ = planned(NO_NORM, NO_FFN, seeds=2)
    runs = {
        ("baseline", 0): [row(1, 0.1)], ("baseline", 1): [row(1, 0.3)],
        ("− norm", 0): [row(1, 0.1), gone(7)], ("− norm", 1): [row(1, 0.1), gone(9)],
        ("− FFN", 0): [row(1, 0.4), row(10, 0.5)], ("− FFN", 1): [row(1, 0.1), gone(7)],
    }  # fmt: skip
    trainings = SimpleNamespace(plan=made, runs=runs)
    cells = [[math.nan, math.nan], [math.nan, math.nan], [0.5, math.nan]]
    said = play._words(made.arms, cells, play._diverged_by(trainings, 10))
    assert (
        said
        == "Right on average: baseline: nothing yet; − norm: diverged (2 of 2 seeds diverged); − FFN: 50.0 % (1 of 2 seeds diverged)."
    )
    assert play._diverged_by(trainings, 8) == {"baseline": 0, "− norm": 1, "− FFN": 1}


# A trained model


def _ranked(*heads) -> pd.DataFrame:
    """heads: change of the logit difference, and its interval."""
    rows = [
        (
            f"1.{n}",
            f"head 1.{n}",
            1,
            "head",
            n,
            effect,
            *(each if effect == "difference" else (-0.01, -0.02, 0.0)),
            0.01,
        )
        for n, each in enumerate(heads, 1)
        for effect in ("difference", "accuracy")
    ]
    return pd.DataFrame(rows, columns=["cut", "name", "layer", "part", "head", "effect", "change", "low", "high", "p"])


def test_the_greatest_loss_is_one_that_can_be_told_from_noise():
    said = sweep._told(_ranked((-2.0, -5.0, 1.0), (-1.0, -1.5, -0.5), (0.5, 0.4, 0.6)))
    assert said.startswith("Of the heads, the model loses most without head 1.2: −1 in logit difference")


# Ranks


def _rank(**values):
    """An outcome with these values by seed, and the prediction of their order."""
    found = {name: Measured(dict(enumerate(each)), interval(each)) for name, each in values.items()}
    asked = Prediction("rank", "?", Number("value", ("a",), ""), ranked=tuple(values))
    return asked, Outcome(found, found["a"], "percent")


def test_a_rank_is_as_predicted_only_where_all_neighbours_can_be_told_apart():
    """The means are a > b > c; of a and b the seeds do not tell which is larger."""
    asked, out = _rank(a=[0.9, 0.7, 0.8], b=[0.8, 0.75, 0.82], c=[0.1, 0.12, 0.11])
    assert verdict(asked, ["a", "b", "c"], out) == verdict(asked, ["b", "a", "c"], out) == UNDECIDED
    assert verdict(asked, ["c", "b", "a"], out) == NOT_AS_PREDICTED
    assert set(clear_pairs(["c", "b", "a"], out)) == {("a", "c"), ("b", "c")}
    lesson = SimpleNamespace(prediction=asked, values={name: SimpleNamespace(label=name.upper()) for name in "abc"})
    assert (
        describe_ties(lesson, out, ENGLISH_WORDS)
        == "Not to be told apart with so many seeds: A / B. Told apart: A > C, B > C."
    )
    asked, out = _rank(a=[0.9, 0.88, 0.91], b=[0.5, 0.52, 0.51], c=[0.1, 0.12, 0.11])
    assert verdict(asked, ["a", "b", "c"], out) == AS_PREDICTED and describe_ties(lesson, out, ENGLISH_WORDS) == ""


# One of a thing, and columns


def test_all_cells_of_the_shipped_matrix_have_one_decimal():
    svg = matrix_svg(read_summary(table_of("ablation_matrix")))
    figures = re.findall(r">(−?\d+\.\d+)(?: %)?</text>", svg)
    assert len(figures) > 100 and all(len(each.partition(".")[2]) == 1 for each in figures)


@pytest.mark.parametrize("share", [True, False])
def test_an_interval_has_the_decimals_of_its_mean(share):
    mean, low, high = knockout_view._written([0.1234, 0.05, 0.2], share)
    assert len({len(each.partition(".")[2]) for each in (mean, low, high)}) == 1
