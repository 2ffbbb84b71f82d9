"""Fair comparison: a remaining part is widened until the cost matches, and nothing else.

The cost is counted on the real model.
"""

import bisect
import dataclasses

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from core.model import cost
from core.model.config import Config
from core.model.parts import MENUS
from core.model.transformer import Transformer
from core.model.variants import ablation, apply
from core.settings.setting import ConfigError
from core.tasks import task
from core.train import Training
from core.train.budget import step_seconds
from core.train.match import CLOSE, fit_widths, match, match_cost

KINDS = ("parameters", "flops")
CHANGES = dict(ablation) | {
    "swiglu": {"activation": "swiglu"},
    "one_layer": {"n_layers": 1},
    "narrow_heads": {"d_head": 4},
    "wide_heads": {"d_head": 50},
    "eight_heads": {"n_heads": 8},
    "rope": {"position": "rope"},
    "tied": {"tied": True},
    "no_bias": {"bias": False},
    "neither": {"attention": False, "ffn": False},
}
WIDTHS = {"d_model", "d_ff", "d_head"}


def size(kind, config, tokens, words) -> int:
    """Return the number of parameters or FLOPs, counted without a formula.

    Parameters are counted in the real model's tensors, FLOPs by PyTorch in one forward pass.
    """
    model = Transformer(config, words)
    if kind == "parameters":
        return sum(p.numel() for p in model.parameters())
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, tokens, dtype=torch.long))
    return counter.get_total_flops()


def fitted(kind, name, change):
    """Return the task's model, the changed one, the matched one, the tokens and the words."""
    full = task[name].config()
    learnt = task[name]
    measured = lambda config: match[kind](config, Training(task=name))  # noqa: E731
    changed = apply(change, full)
    return (
        full,
        changed,
        fit_widths(changed, measured(full), measured),
        learnt.length,
        learnt.vocabulary,
    )


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", task)
@pytest.mark.parametrize("kind", KINDS)
def test_matching_comes_within_two_percent_for_all_parts(kind, name, change):
    full, changed, matched, tokens, words = fitted(kind, name, CHANGES[change])
    expected = size(kind, full, tokens, words)
    if change == "neither":
        assert matched == changed
    else:
        assert abs(size(kind, matched, tokens, words) / expected - 1) <= CLOSE
    differing = {f for f in Config.settings() if getattr(matched, f) != getattr(changed, f)}
    assert differing <= WIDTHS
    assert matched.d_model % matched.n_heads == 0
    assert not MENUS["position"][matched.position].turns or matched.d_head % 2 == 0
    if abs(size(kind, changed, tokens, words) / expected - 1) <= 0.001:
        assert matched == changed  # nothing had to be done
    row = Transformer(matched, words)(torch.zeros(1, tokens, dtype=torch.long))  # and it runs
    assert row.shape == (1, tokens, len(words)) and row.isfinite().all()


@pytest.mark.parametrize("name", task)
@pytest.mark.parametrize("kind", KINDS)
def test_formula_matches_count(kind, name):
    for change in CHANGES.values():
        config = apply(change, task[name].config())
        learnt = task[name]
        assert match[kind](config, Training(task=name)) == size(
            kind, config, learnt.length, learnt.vocabulary
        )


def test_flops_by_hand():
    """The FLOPs of the reverse task's model, added up by hand.

    T 12, D 32, 4 heads of 8, d_ff 128, 4 layers, 16 words.
    A product of m×k with k×n takes 2·m·k·n.
    """
    layer = (
        2 * 12 * 32 * 96  # Q, K, V
        + 4 * 2 * 12 * 8 * 12  # scores of four heads
        + 4 * 2 * 12 * 12 * 8  # weighted sums
        + 2 * 12 * 32 * 32  # output
        + 2 * 12 * 32 * 128 * 2  # feed-forward
    )
    assert (
        match["flops"](task["reverse"].config(), Training(task="reverse", length=12))
        == 4 * layer + 2 * 12 * 32 * 16
    )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", task)
def test_steps_are_as_many_as_take_the_baselines_time(name, change):
    full = task[name].config()
    training = Training(task=name)
    changed = apply(CHANGES[change], full)
    matched, how, text = match_cost("time", (changed, training), (full, training))
    assert matched == changed  # no width is touched
    seconds_per_step = step_seconds(changed, training)
    expected = training.steps * step_seconds(full, training)
    assert abs(how.steps * seconds_per_step - expected) <= seconds_per_step / 2 * (1 + 1e-9)
    off = how.steps * seconds_per_step / expected - 1
    notes = []
    if how != training:
        notes.append(f"{how.steps:,} steps")
    if abs(off) > CLOSE:
        percent = f"{100 * off:+.0f}".replace("-", "−")
        notes.append(f"closest match: {percent} % estimated training time")
    assert text == ", ".join(notes)
    differing = {
        field for field in Training.settings() if getattr(how, field) != getattr(training, field)
    }
    assert differing <= {"steps", "every", "warmup"}
    assert abs(how.warmup - training.warmup * how.steps / training.steps) <= 0.5
    assert 40 <= how.steps / how.every <= 110 or how.every == 1  # about as many rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", task)
def test_matched_model_is_returned_unchanged(kind, name):
    full, _, matched, *_ = fitted(kind, name, {})
    assert matched is full or matched == full
    for change in (
        {"scale": False},
        {"residual_ffn": False},
        {"activation": "relu"},
        {"n_heads": 1},
    ):
        _, changed, matched, *_ = fitted(kind, name, change)
        assert matched == changed


@st.composite
def cases(draw):
    heads = draw(st.sampled_from([1, 2, 4]))
    position = draw(st.sampled_from(list(MENUS["position"])))
    full = Config(
        d_model=draw(st.sampled_from([8, 12, 32, 36])) * 2,
        n_heads=heads,
        n_layers=draw(st.sampled_from([1, 2, 4])),
        position=position,
        norm=draw(st.sampled_from(list(MENUS["norm"]))),
        activation=draw(st.sampled_from(["gelu", "swiglu"])),
        bias=draw(st.booleans()),
        tied=draw(st.booleans()),
    )
    parts = draw(st.lists(st.sampled_from(list(CHANGES.values())), min_size=1, max_size=2))
    return full, {field: value for part in parts for field, value in part.items()}


@given(cases(), st.sampled_from(KINDS), st.integers(2, 24))
@settings(max_examples=120)
def test_any_model_without_any_part(case, kind, tokens):
    full, change = case
    try:
        changed = apply(change, full)
    except ConfigError:
        assume(False)
    words = [f"w{n}" for n in range(10)]
    measured = (
        (lambda config: sum(cost.parameters(config, len(words)).values()))
        if kind == "parameters"
        else (lambda config: cost.forward_flops(config, tokens, len(words)))
    )
    expected = measured(full)
    matched = fit_widths(changed, expected, measured)
    assert measured(matched) == size(kind, matched, tokens, words)
    assert abs(measured(matched) - expected) <= max(
        abs(measured(changed) - expected), 0.001 * expected
    )  # never farther off
    assert {f for f in Config.settings() if getattr(matched, f) != getattr(changed, f)} <= WIDTHS
    assert dataclasses.replace(matched) == matched  # passes every check of Config
    name = None
    if changed.ffn:
        name = "d_ff"
    elif changed.attention:
        name = "d_head"
    if name and matched != changed:
        best = nearest(changed, name, expected, measured)
        if matched.d_model == changed.d_model:
            assert matched == changed.replace(**{name: getattr(matched, name)})
            assert abs(measured(matched) - expected) == best
        else:  # only where no width of the sub-layer would do
            assert best > CLOSE * expected and abs(measured(matched) - expected) < best


def nearest(config, name, expected, measured) -> int:
    """Return the smallest cost difference that one width can reach; cost grows with the width."""
    step = 2 if name == "d_head" and MENUS["position"][config.position].turns else 1
    high = int(Config.settings()[name].high)
    index = lambda width: measured(config.replace(**{name: width}))  # noqa: E731
    over = step * bisect.bisect_left(range(step, high, step), expected, key=index) + step
    return min(
        abs(index(width) - expected) for width in (over - step, over) if step <= width <= high
    )
