"""Studies at several sizes: what is trained, the ladder of each effect, and the view "Sizes"."""

import math

import numpy as np
import pytest

from core.experiments.training.plan import Trial, plan
from core.measure.trends import GROWS, SHRINKS, STEADY, UNTOLD, measure_trend
from core.model.variants import lineup
from core.settings.device import Machine
from core.study import __main__ as command
from core.study.file import Ticks, margin_of, parse, read_ticks, search_of
from core.study.ladder import (
    LADDER,
    count_ladders,
    describe_ladder,
    describe_sizes,
    describe_verdict,
    ladder_table,
    read_sizes,
    stored_ladders,
    write_ladder,
)
from core.study.plan import StudyError
from core.tasks import task
from core.train import Training
from core.train.dial import DIAL, model_size, split_size
from core.train.settings import Learner, Removed
from tests import pages
from tests.studies import fill
from tests.test_studies_page import good, opened, store, texts, url  # noqa: F401
from ui.studies.new_study import DRAFT, FROM_TRAINING, FROM_TRAINING_NOTE, TEMPLATE

TEXT = """
name = "ladder"
question = "Does it hold?"
tasks = ["reverse", "short copy"]
sizes = [1, 2, 3]
seeds = 4
device = "cpu"
[task."short copy"]
task = "copy"
steps = 50
margin = 4
[variants]
"− norm" = { norm = "none" }
"1 head" = { n_heads = 1 }
"post-norm" = { placement = "post" }
"""
# Variant -> effect at sizes 1, 2, 3 (shares).
EFFECTS = {
    "− norm": (-0.1, -0.2, -0.3),
    "1 head": (-0.3, -0.15, 0.0),
    "post-norm": (0.0, 0.0, 0.0),
}


def score(run) -> float:
    """Return a made-up accuracy of a run; seeds differ by tenths of a point."""
    _, size = split_size(run.task)
    effect = EFFECTS[run.variant][size - 1] if run.variant in EFFECTS else 0.0
    noise = 0.001 * ((7 * run.seed + 3 * size + len(run.variant)) % 5)
    return round(0.6 + effect + noise, 4)


@pytest.fixture
def ladders(store):  # noqa: F811
    study = parse(TEXT)
    number = fill(store, study, score)
    return stored_ladders(store, number, study.source)


def test_every_task_is_trained_at_every_size():
    study = parse(TEXT)
    names = {"reverse": task["reverse"].training["steps"], "short copy": 50}
    for name, steps in names.items():
        for size in (1, 2, 3):
            runs = [run for run in study.runs if run.task == f"{name}, size {size}"]
            assert {run.variant for run in runs} == {"baseline", *EFFECTS}
            base = runs[0].config
            assert {key: getattr(base, key) for key in model_size(size)} == model_size(size)
            assert base.d_ff == 4 * base.d_model
            assert {run.training.steps for run in runs} == {steps * size // 2}
    assert margin_of(TEXT, "short copy, size 2") == 0.04
    assert margin_of(TEXT, "reverse, size 2") == 0.02
    assert read_sizes(TEXT) == (1, 2, 3)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("[1, 2, 3]", "[1, 6]", r"sizes is \[1, 6\]; it must be a list of different sizes from 1"),
        ("[1, 2, 3]", "[1, 1]", "sizes is"),
        ("[1, 2, 3]", '"all"', "sizes is"),
        ("[1, 2, 3]", "[true]", "sizes is"),
        ("[variants]", "[base]\nd_model = 64\n[variants]", "d_model follows from sizes"),
        ("margin = 4", "n_layers = 2", "n_layers follows from sizes"),
    ],
)
def test_wrong_sizes_are_named(old, new, message):
    with pytest.raises(StudyError, match=message):
        parse(TEXT.replace(old, new))


def test_ladders_have_the_numbers_of_their_runs(ladders):
    assert [(ladder.task, ladder.variant) for ladder in ladders] == [
        (name, variant) for name in ("reverse", "short copy") for variant in EFFECTS
    ]
    runs = {(run.task, run.variant, run.seed): score(run) for run in parse(TEXT).runs}
    for ladder in ladders:
        for rung in ladder.rungs:
            name = f"{ladder.task}, size {rung.size}"
            expected = {
                seed: runs[name, ladder.variant, seed] - runs[name, "baseline", seed]
                for seed in range(4)
            }
            assert rung.by_seed == pytest.approx(expected, abs=1e-6)
            assert rung.mean == pytest.approx(np.mean(list(expected.values())), abs=1e-6)
            training = next(run.training for run in parse(TEXT).runs if run.task == name)
            seen = training.steps * training.batch * training.length
            assert rung.tokens == seen / rung.parameters
        assert ladder.predicted.low <= ladder.predicted.mean <= ladder.predicted.high
        assert ladder.next_size == 4
    verdicts = {ladder.variant: ladder.verdict for ladder in ladders[:3]}
    assert verdicts == {"− norm": GROWS, "1 head": SHRINKS, "post-norm": STEADY}
    assert ladders[0].margin == 0.02 and ladders[3].margin == 0.04


def test_sentences_follow_from_the_intervals(ladders):
    by_name = {ladder.variant: ladder for ladder in ladders[:3]}
    norm = by_name["− norm"]
    first = norm.rungs[0].mean
    last = norm.rungs[-1].mean
    assert describe_ladder(norm).startswith(
        f"−{-100 * first:.1f} points at size 1, −{-100 * last:.1f} at size 3. Slope: −"
    )
    assert describe_verdict(norm) == "grows"
    assert describe_verdict(by_name["post-norm"]) == "steady within ±2 points"
    assert describe_sizes([norm]).startswith(
        f"The baseline at sizes 1, 2, 3 has {norm.rungs[0].parameters:,}; "
    )
    assert count_ladders(ladders[:3]) == "Of 3 effects, 1 grows, 1 shrinks, 1 is steady."
    assert count_ladders([]) == "No effect has been measured at any size yet."


def test_table_has_every_number(ladders):
    table = ladder_table(ladders)
    assert len(table) == 2 * 3 * (3 + 1)
    assert set(table[table.verdict == "predicted"]["size"]) == {4}
    for ladder in ladders:
        line = table[(table.task == ladder.task) & (table.variant == ladder.variant)].iloc[0]
        effects = {rung.size: rung.by_seed for rung in ladder.rungs}
        assert line.slope == pytest.approx(measure_trend(effects, 10**9).slope)


def test_unfinished_ladder_cannot_be_told(store):  # noqa: F811
    study = parse(TEXT)
    number = fill(store, study, lambda run: "queued" if "size 3" in run.task else score(run))
    for ladder in stored_ladders(store, number, study.source):
        assert len(ladder.rungs) == 2 and ladder.predicted is None
        assert ladder.verdict == UNTOLD and math.isnan(ladder.trend.slope)
        assert "A verdict needs 3 sizes that share 3 seeds." in describe_ladder(ladder)


def test_view_shows_each_verdict(store):  # noqa: F811
    fill(store, parse(TEXT), score)
    app = good(opened(study="ladder", shown="sizes"))
    told = texts(app)
    for words in ("**− norm** · grows", "**1 head** · shrinks", "**post-norm** · steady"):
        assert words in told
    assert "Of 3 effects, 1 grows, 1 shrinks, 1 is steady." in told
    assert "The baseline at sizes 1, 2, 3 has " in told
    app = good(opened(study="ladder", shown="sizes", of_task="short copy"))
    assert "Effect by size, short copy" in texts(app)


def test_study_without_sizes_has_no_such_view(store):  # noqa: F811
    text = TEXT.replace("sizes = [1, 2, 3]\n", "")
    fill(store, parse(text), lambda run: 0.5)
    app = good(opened(study="ladder", shown="sizes"))
    assert "trains its tasks at one size" in texts(app)


def test_sizes_and_rates_can_be_ticked():
    ticked = Ticks("x", "", ("copy",), 3, (), {}, sizes=(1, 3, 5), search="three")
    assert read_ticks(ticked.write()) == ticked
    assert set(ticked.sizes) <= set(DIAL)
    study = parse(ticked.write())
    assert {run.task for run in study.runs} == {f"copy, size {size}" for size in (1, 3, 5)}
    assert len({run.training.learning_rate for run in study.runs}) == 3


def test_training_drafts_a_ladder():
    plan = make_plan("reverse", ("norm-none", "n_heads-1"), {"bias": False}, {"batch": 8})
    study = parse(write_ladder(plan))
    assert read_ticks(write_ladder(make_plan("reverse", ("norm-none",)))).sizes == LADDER
    assert read_sizes(study.source) == LADDER and search_of(study.source) == "three"
    assert {run.task for run in study.runs} == {f"reverse, size {size}" for size in LADDER}
    assert {run.config.bias for run in study.runs} == {False}
    assert {run.training.batch for run in study.runs} == {8}
    trained = {(run.config.norm, run.config.n_heads) for run in study.runs if "size 2" in run.task}
    assert trained == {("LayerNorm", 4), ("none", 4), ("LayerNorm", 1)}


def make_plan(name, variants, config=None, training=None):
    """Return the plan of the page Training for a task, variants as in links, and changes."""
    learner = Learner(task=name, **(config or {}))
    pinned = Removed(task=name, variants="~".join(variants))
    arms, _ = lineup(learner.plain(), pinned, padding=0)
    return plan(arms, Training(task=name, **(training or {})), Trial(), Machine())[0]


def test_command_prints_the_ladders(store, url, capsys):  # noqa: F811
    fill(store, parse(TEXT), score)
    assert command.main(["verdict", "ladder", "--database", url]) == 0
    out = capsys.readouterr().out
    assert "Of 6 effects, 2 grow, 2 shrink, 2 are steady." in out
    assert "\n− norm, reverse: grows. −" in out


def test_training_opens_a_new_study_at_other_sizes(url):  # noqa: F811
    app = pages.opened("pages/3_Training.py", variants="norm-none")
    next(button for button in app.button if button.label == "At other sizes").click().run()
    draft = app.session_state["session"].kept[DRAFT]
    assert draft.begin == FROM_TRAINING and draft.text == draft.original
    study = parse(draft.text)
    assert {run.variant for run in study.runs if "rate" not in run.variant} == {
        "baseline",
        "− norm",
    }
    assert FROM_TRAINING_NOTE in [caption.value for caption in app.caption]
    choose = next(box for box in app.selectbox if box.label == "Template")
    assert choose.value == FROM_TRAINING
    choose.set_value("Small example").run()
    assert draft.text == TEMPLATE and FROM_TRAINING in choose.options
