"""Sentences on a page follow from its numbers and the visible settings."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from core.experiments.block.attention import entropy_by_scaling
from core.experiments.depth.depth import Depth, travel
from core.experiments.depth.findings import describe_finding as depth_finding
from core.experiments.depth.gradients import ignores_key_bias, successor_loss, weight_rows
from core.experiments.forward import encode_tokens, forward, run_recorded
from core.experiments.training.trained import read
from core.measure.intervals import interval
from core.measure.stream_statistics import row_entropy, statistic
from core.model.config import Config
from core.model.parts import MENUS
from core.model.parts.init import generator
from core.model.transformer import Transformer
from core.settings.device import Machine
from core.settings.wording import fixed, format_aligned
from core.study.picture import matrix_svg
from core.study.shipped import table_of
from core.study.summary import read_summary
from core.tasks import task
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
from core.train import Training, start
from tests.pages import opened, texts
from tests.test_page import fine
from ui.block.compare import describe_farthest
from ui.depth import grid as grid_view
from ui.trained import parts as sweep
from ui.training import answers, curves

WORDS = "the judge read the law and the law held".split()
SMALL = Config(d_model=16, n_heads=2, n_layers=2, position="sinusoidal")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"position": "rope"},
        {"position": "rope", "rope_share": 0.5},
        {"position": "alibi"},
        {"mask": "causal"},
        {"softmax": "off_by_one"},
        {"softmax": "sink"},
        {"score_cap": 2.0},
        {"qk_norm": True},
        {"position": "rope", "nope_every": 1},
        {"position": "rope", "nope_every": 2},
        {"scale": False},
        {"window": 3},
        {"gate": True},
        {"padding": 2},
        {"attention_bias": False},
        {"bias": False, "attention_bias": True},
    ],
    ids=str,
)
def test_key_bias_gradient_is_nonzero_unless_called_rounding(changes):
    """Rounding errors in float64 are 10⁻¹⁶ of a real gradient."""
    config = SMALL.replace(**{"init": "normal_1", **changes})
    vocabulary_used, ids, real = encode_tokens(WORDS, config.padding, "cpu")
    model = Transformer(config, vocabulary_used).double()
    with torch.no_grad():  # biases are zeros at first
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_(generator=torch.Generator().manual_seed(0))
    loss = successor_loss(model, model.run_blocks(ids, real), ids, len(WORDS))
    blocks = dict(model.blocks.named_parameters())
    norms = weight_rows(model, dict(zip(blocks, torch.autograd.grad(loss, list(blocks.values())))))
    norms_of = lambda part: [value for _, name, value in norms if name == part]  # noqa: E731
    rounding = [key < 1e-9 * query for key, query in zip(norms_of("b_K"), norms_of("b_Q"))]
    assert ignores_key_bias(config) == (bool(rounding) and all(rounding))


@pytest.mark.parametrize("softmax", MENUS["softmax"])
def test_entropies_match_models_with_and_without_scaling(softmax):
    """The first layers share weights, and so queries and keys."""
    on, off = (
        forward(SMALL.replace(softmax=softmax, scale=scale, init="normal_1"), WORDS, Machine("cpu"))
        for scale in (True, False)
    )
    for forward_pass in (on, off):
        for head in range(2):
            actual = entropy_by_scaling(forward_pass, 0, head)
            for name, other in (("scaled", on), ("unscaled", off)):
                assert actual[name] == pytest.approx(
                    row_entropy(other.sites["pattern"][0][head]).mean().item(), abs=1e-5
                )


def test_entropy_includes_attention_sink():
    config = SMALL.replace(softmax="sink", init="normal_1", mask="causal")
    vocabulary_used, ids, _ = encode_tokens(WORDS, 0, "cpu")
    passes = []
    for scale in (True, False):
        model = Transformer(config.replace(scale=scale), vocabulary_used)
        with torch.no_grad():
            model.blocks[0].attn.softmax.score.copy_(torch.tensor([1.5, -2.0]))
        passes.append(run_recorded(model, ids, tuple(WORDS), len(WORDS), Machine("cpu"), "test"))
    for head in range(2):
        actual = entropy_by_scaling(passes[0], 0, head)
        for name, forward_pass in zip(("scaled", "unscaled"), passes):
            assert actual[name] == pytest.approx(
                row_entropy(forward_pass.sites["pattern"][0][head]).mean().item(), abs=1e-4
            )


def test_averaged_heads_show_mean_of_entropies():
    learnt = task["sentences"]
    state = start(learnt.config(), Training(task="sentences"), 0)
    reading = read(state, *(learnt_head[0] for learnt_head in learnt(generator(0, "entropy"), 1)))
    assert answers._pattern_of(reading, 2, 0, state.config)[1] == fixed(
        reading.entropy(1).mean().item()
    )


# Numbers that are none, or that read alike

NUMBER = "−?[\\d.,]*\\d(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"  # as core.settings.wording.number writes it
FADES = Config(
    norm="none",
    bias=False,
    init="normal_002",
    residual_attention=False,
    residual_ffn=False,
    activation="relu",
)


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(attention=False, ffn=False),
        FADES,
        Config(norm="none", attention=False, ffn=False),
    ],
)
def test_statistics_never_go_from_a_number_to_itself(config):
    for words in (WORDS, ["one", "two"]):
        journey = travel(config, words, None, Depth(6))
        for meter in statistic:
            text = depth_finding(meter, {"baseline": journey})
            ends = re.search(
                rf"[Ff]rom ({NUMBER})(?: \w+)?(?:, of at most \d+,)? to ({NUMBER})", text
            )
            assert not ends or ends[1] != ends[2], text


def _grid(ends, shares=None):
    ends = np.array(ends)
    return SimpleNamespace(
        final_values=lambda meter: ends,
        ends_equal=lambda meter: False,
        diverged=[None] * len(ends),
        name=lambda index: f"v{index}",
        explained=lambda meter: shares or {},
        shared_by_diverged=lambda: None,
    )


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        (0.496, "No component explains more than half; norm explains 49.6 % of"),
        (0.4999, "No component explains more than half; norm explains 50 % of"),
        (0.5004, "No component explains more than half; norm explains 50 % of"),
        (0.504, "Norm explains 50.4 % of"),
    ],
)
def test_sentence_about_half_matches_percentage(share, sentence):
    assert sentence in grid_view.describe_grid(_grid([1.0, 2.0], {"norm": share}), "rms")


def _ranked(*heads) -> pd.DataFrame:
    """Return a ranking; heads: change of the logit difference, and its interval."""
    rows = [
        (
            f"1.{n}",
            f"L1H{n}",
            1,
            "head",
            n,
            effect,
            *(head if effect == "difference" else (-0.01, -0.02, 0.0)),
            0.01,
        )
        for n, head in enumerate(heads, 1)
        for effect in ("difference", "accuracy")
    ]
    return pd.DataFrame(
        rows,
        columns=["cut", "name", "layer", "part", "head", "effect", "change", "low", "high", "p"],
    )


def test_largest_loss_is_significant():
    text = sweep._describe_ranking(_ranked((-2.0, -5.0, 1.0), (-1.0, -1.5, -0.5), (0.5, 0.4, 0.6)))
    assert text.startswith("Largest drop: L1H2, −1.00 in logit difference")


def _rank(**values):
    """Return an outcome with these values by seed, and the prediction of their order."""
    actual = {
        name: Measured(dict(enumerate(value)), interval(value)) for name, value in values.items()
    }
    prediction = Prediction("rank", "?", Number("value", ("a",), ""), ranked=tuple(values))
    return prediction, Outcome(actual, actual["a"], "percent")


def test_ranking_is_as_predicted_only_if_neighbours_differ():
    """The means are a > b > c; the seeds do not separate a and b."""
    prediction, out = _rank(a=[0.9, 0.7, 0.8], b=[0.8, 0.75, 0.82], c=[0.1, 0.12, 0.11])
    assert (
        verdict(prediction, ["a", "b", "c"], out)
        == verdict(prediction, ["b", "a", "c"], out)
        == UNDECIDED
    )
    assert verdict(prediction, ["c", "b", "a"], out) == NOT_AS_PREDICTED
    assert set(clear_pairs(["c", "b", "a"], out)) == {("a", "c"), ("b", "c")}
    lesson = SimpleNamespace(
        prediction=prediction, values={name: SimpleNamespace(label=name.upper()) for name in "abc"}
    )
    tied, clear = describe_ties(lesson, out, ENGLISH_WORDS).split(". ")
    assert tied.endswith("A / B") and clear.endswith("A > C, B > C.")
    prediction, out = _rank(a=[0.9, 0.88, 0.91], b=[0.5, 0.52, 0.51], c=[0.1, 0.12, 0.11])
    assert (
        verdict(prediction, ["a", "b", "c"], out) == AS_PREDICTED
        and describe_ties(lesson, out, ENGLISH_WORDS) == ""
    )


def test_fading_streams_never_end_at_nan():
    journeys = {
        name: travel(config, WORDS, None, Depth(30))
        for name, config in (("baseline", FADES), ("v1", FADES.replace(activation="gelu")))
    }
    assert all(float(journey.values_of("rms")[-1]) == 0 for journey in journeys.values())
    sentences = {meter: depth_finding(meter, journeys) for meter in statistic}
    assert not any(re.search(r"\bnan\b|undefined", text) for text in sentences.values()), sentences
    assert "ends with all zeros, like the baseline" in sentences["rank"]


def test_small_distance_is_not_rounded_to_zero():
    table = pd.DataFrame(
        {"variant": ["baseline", "v1"], "distance": [0.0, 0.0031], "direction": [1.0, 0.9999]}
    )
    forward_pass = SimpleNamespace(finite=True, config=Config())
    assert "relative distance 0.0031," in describe_farthest(
        table, {"baseline": forward_pass, "v1": forward_pass}
    )


def test_grid_ends_read_differently():
    assert "ranges from 1.0002 (v0) to 1.0003 (v1)." in grid_view.describe_grid(
        _grid([1.00021, 1.00034]), "rms"
    )
    assert "ranges from 1 (v0) to 2 (v1)." in grid_view.describe_grid(_grid([1.0, 2.0]), "rms")


def test_gain_is_never_called_loss():
    sentence = sweep._describe_ranking(_ranked((0.5, 0.4, 0.6), (0.9, 0.8, 1.0), (0.1, -0.1, 0.3)))
    assert sentence.startswith(
        "Removing any single head does no significant harm; "
        "largest gain: L1H2, 0.90 in logit difference"
    )


def test_diverged_model_is_called_diverged():
    arms = [SimpleNamespace(name=name) for name in ("baseline", "− norm", "− FFN")]
    cells = [[math.nan, math.nan], [math.nan, math.nan], [0.5, math.nan]]
    sentence = curves._describe_accuracy(arms, cells, {"baseline": 0, "− norm": 2, "− FFN": 1})
    assert (
        sentence
        == "Mean accuracy: baseline: no results yet; − norm: diverged (2 of 2 seeds diverged); "
        "− FFN: 50.0 % (1 of 2 seeds diverged)."
    )


def test_numbers_of_one_column_have_the_same_decimals():
    assert format_aligned([12.345, 0.004, -0.003]) == ["12.3", "0.0", "0.0"]
    svg = matrix_svg(read_summary(table_of("ablation_matrix")))
    figures = re.findall(r">(−?\d+\.\d+)(?: %)?</text>", svg)
    assert len(figures) > 100 and all(len(figure.partition(".")[2]) == 1 for figure in figures)


# What stands on the page


@pytest.mark.parametrize(
    ("view", "settings", "sentence"),
    [
        (
            "gradients",
            {"variants": "softmax-sink~qk_norm-on"},
            "the gradient of b_K is zero up to rounding (baseline).",
        ),
        ("steps", {"softmax": "usual"}, "Entropy of this head's softmax:"),
        ("steps", {"softmax": "off_by_one"}, "Entropy of this head's softmax + 1:"),
        ("pairs", {"mask": "causal", "pairs": "1-4"}, "The mask hides all marked pairs."),
        (
            "pairs",
            {"mask": "none", "window": "2", "pairs": "1-4"},
            "The window of this layer hides all marked pairs.",
        ),
        (
            "cost",
            {"mask": "none"},
            "None: without a causal mask every token attends to the new one",
        ),
        ("cost", {"mask": "causal"}, "bytes per token"),
    ],
)
def test_sentences_follow_from_settings(view, settings, sentence):
    where = {
        "page": "pages/1_One_block.py",
        "view": view,
        "weights": "random",
        "text": "one two three four",
    }
    if view == "gradients":
        where = {"page": "pages/2_Depth.py", "show": view, "position": "sinusoidal"}
    if view == "steps":
        where |= {"step": "7"}
    assert sentence in texts(fine(opened(**where, **settings)))
