"""Settings: every invalid value is refused with a message, and links restore their settings."""

import dataclasses
import math

import numpy as np
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

from core import Config, ConfigError
from core.model.config import allowed_heads, count_rotated
from core.model.parts import MENUS
from core.model.variants import apply, difference, name_of

SETTINGS = Config.settings()
NUMBERS = [name for name, setting in SETTINGS.items() if setting.low is not None]
WHOLE = [name for name in NUMBERS if SETTINGS[name].kind is int]
SWITCHES = [name for name, setting in SETTINGS.items() if setting.kind is bool]


def refusal(**values) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        Config(**values)
    return caught.value


def assert_says_what_is_allowed(error, field, begin="{} is "):
    setting = SETTINGS[field]
    message = str(error)
    assert error.field == field
    assert message.startswith(begin.format(field))
    assert message.isprintable() and len(message) < 250  # one line, fit for the screen
    if setting.menu:
        allowed = list(setting.menu)
    elif setting.kind is bool:
        allowed = ["on or off"]
    else:
        allowed = [f"from {setting.show(setting.low)} to {setting.show(setting.high)}"]
    for item in allowed:
        assert item in message


# Values that cannot be


def test_fields_are_settings_with_labels():
    assert list(SETTINGS) == [field.name for field in dataclasses.fields(Config)]
    for name, setting in SETTINGS.items():
        assert setting.label and setting.help.endswith(".") and setting.group, name
        assert (setting.low is None) == (setting.kind in (bool, str)), name
    assert {name: setting.menu for name, setting in SETTINGS.items() if setting.menu} == MENUS


@pytest.mark.parametrize("field", NUMBERS)
def test_bounds_match_allowed_values(field):
    low = SETTINGS[field].low
    high = SETTINGS[field].high
    # 64 heads need a width that 64 divides, and so many of keys and values as many heads; every
    # other bound fits the defaults.
    for value in (low, high):
        heads = 64 if field == "n_kv_heads" else 1
        assert getattr(Config(**{"n_heads": heads, "d_model": 64} | {field: value}), field) == value
    for value in (low - 1, high + 1, -(2**70), 2**70, low - 0.001, high + 0.001):
        assert_says_what_is_allowed(refusal(**{"n_heads": 1} | {field: value}), field)


@pytest.mark.parametrize("field", WHOLE)
@pytest.mark.parametrize("value", [8.0, 8.5, np.float32(8)])
def test_whole_numbers_must_be_whole(field, value):
    assert_says_what_is_allowed(refusal(**{field: value}), field)


# Settings that do not go together


def divisors(number):
    return [n for n in range(1, 65) if number % n == 0]


@pytest.mark.parametrize("d_model", [8, 9, 64, 72, 97, 1024])
def test_heads_divide_the_width(d_model):
    for heads in range(1, 65):
        if heads in divisors(d_model):
            assert Config(d_model=d_model, n_heads=heads).d_head == d_model // heads
            assert Config(d_model=d_model, n_heads=heads, d_head=6).d_head == 6
        else:
            error = refusal(d_model=d_model, n_heads=heads)
            assert error.field == "n_heads"
            assert str(d_model) in str(
                error
            ) and f"one of {', '.join(map(str, divisors(d_model)))}." in str(error)
            assert error.instead == max(n for n in divisors(d_model) if n < heads)
    assert allowed_heads(d_model) == divisors(d_model)


@pytest.mark.parametrize("position", MENUS["position"])
def test_positions_that_turn_pairs_need_an_even_head(position):
    values = {"d_model": 24, "n_heads": 8, "position": position}
    if not MENUS["position"][position].turns:
        assert Config(**values).d_head == 3
        return
    error = refusal(**values)
    assert (
        error.field == "position"
        and position in str(error)
        and "d_head must be even; it is 3" in str(error)
    )
    assert Config(**values | {"position": error.instead}).position == "none"
    assert Config(**values | {"n_heads": 4}).position == position
    assert Config(**values | {"d_head": 4}).position == position
    assert refusal(**values | {"n_heads": 4, "d_head": 5}).field == "position"


PERCENT = range(1, 101)


@pytest.mark.parametrize(
    ("d_head", "share", "pairs"),
    [
        (180, 0.7, 63),
        (100, 0.58, 29),
        (100, 0.57, 28),
        (200, 0.29, 29),
        (200, 0.57, 57),
        (200, 0.58, 58),
    ],
)
def test_rope_turns_every_whole_pair_of_its_share(d_head, share, pairs):
    assert Config(position="rope", d_head=d_head, rope_share=share).n_rotated == 2 * pairs


def test_rotated_pairs_match_hugging_face():
    """GPT-NeoX elsewhere rounds an odd number up to a pair, beyond the share."""
    rotary = transformers.models.gpt_neox.modeling_gpt_neox.GPTNeoXRotaryEmbedding
    compared = 0
    for d_head in range(2, 257, 2):
        for percent in PERCENT:
            if d_head * percent % 200:
                continue
            rope = {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "partial_rotary_factor": percent / 100,
            }
            theirs = transformers.GPTNeoXConfig(
                hidden_size=d_head, num_attention_heads=1, rope_parameters=rope
            )
            frequencies, _ = rotary.compute_default_rope_parameters(theirs)
            assert count_rotated(d_head, percent / 100) == 2 * len(frequencies), (d_head, percent)
            compared += 1
    assert compared > 500


# Links


def numbers_of(setting):
    if setting.kind is int:
        return st.integers(setting.low, setting.high)
    if setting.step is None:  # one of a list, which is not evenly spaced
        return st.floats(setting.low, setting.high)
    steps = round((setting.high - setting.low) / setting.step)
    return st.integers(0, steps).map(lambda n: round(setting.low + n * setting.step, 6))


@st.composite
def configs(draw):
    """Draw any valid config, over all fields."""
    values = {}
    for name, setting in SETTINGS.items():
        if setting.menu:
            values[name] = draw(st.sampled_from(list(setting.menu)))
        elif setting.kind is bool:
            values[name] = draw(st.booleans())
        elif not setting.follows or draw(st.booleans()):
            values[name] = draw(numbers_of(setting))
    values["n_heads"] = draw(st.sampled_from(allowed_heads(values["d_model"])))
    if "n_kv_heads" in values:
        values["n_kv_heads"] = draw(st.sampled_from(divisors(values["n_heads"])))
    if MENUS["position"][values["position"]].turns:
        least = math.ceil(1 / values["rope_share"] - 1e-9)  # a pair of numbers that is turned
        values["d_head"] = 2 * draw(st.integers(least, SETTINGS["d_head"].high // 2))
    return Config(**values)


@given(configs())
def test_link_restores_its_config(config):
    link = config.write()
    assert all(isinstance(text, str) for text in link.values())
    assert Config.read(link) == (config, [])


@given(configs())
def test_link_has_only_changed_settings(config):
    gated = MENUS["activation"][config.activation].inputs == 2
    followed = {
        "d_ff": round(8 * config.d_model / 3) if config.matched and gated else 4 * config.d_model,
        "d_head": max(1, config.d_model // config.n_heads),
        "n_kv_heads": config.n_heads,
        "attention_bias": config.bias,
    }
    default = {name: getattr(Config(), name) for name in SETTINGS} | followed
    differs = {name for name in SETTINGS if getattr(config, name) != default[name]}
    assert config.write().keys() == differs


def test_attention_biases_follow_others_until_changed():
    assert Config(bias=False).write() == Config().replace(bias=False).write() == {"bias": "off"}
    assert not Config.read({"bias": "off"})[0].attention_bias
    moved = Config(attention_bias=False)
    assert moved.bias and moved.write() == {"attention_bias": "off"}
    assert apply({"bias": False}, Config()).attention_bias is False
    assert (
        not moved.replace(bias=False).attention_bias
        and not apply({"bias": False}, moved).attention_bias
    )
    alone = Config(bias=False, attention_bias=True)
    assert Config.read(alone.write()) == (alone, []) and alone.write() == {
        "bias": "off",
        "attention_bias": "on",
    }
    assert difference(alone, Config()) == {"bias": False, "attention_bias": True}
    assert name_of(difference(moved, Config())) == "− attention biases"


@pytest.mark.parametrize(
    ("field", "name"), [(field, name) for field, menu in MENUS.items() for name in menu]
)
def test_menu_entries_are_read_whatever_their_case(field, name):
    for text in (name, name.lower(), name.upper(), name.swapcase(), name.title(), f"  {name}\n"):
        config, problems = Config.read({field: text})
        assert (getattr(config, field), problems) == (name, [])


@pytest.mark.parametrize("field", SWITCHES)
def test_switches_are_read_from_the_usual_words(field):
    for text in ("on", "ON", "true", "Yes", "1", " on "):
        assert getattr(Config.read({field: text})[0], field) is True
    for text in ("off", "OFF", "false", "No", "0", " off "):
        assert getattr(Config.read({field: text})[0], field) is False


def test_bad_values_are_named_and_others_kept():
    link = {
        "d_model": "96",
        "n_heads": "5",  # does not divide 96; the nearest below that does is 4
        "n_layers": "3",
        "seed": "-1",
        "norm": "batchnorm",
        "activation": "SwiGLU",
        "bias": "off",
        "ffn": "perhaps",
        "dropout": "nan",
        "mask": "causal",
        "utm_source": "newsletter",
    }
    config, problems = Config.read(link)
    assert config == Config(
        d_model=96, n_heads=4, n_layers=3, activation="swiglu", bias=False, mask="causal"
    )
    assert sorted(problem.field for problem in problems) == [
        "dropout",
        "ffn",
        "n_heads",
        "norm",
        "seed",
    ]
    for problem in problems:
        if problem.field == "n_heads":
            assert "n_heads is 5" in str(problem) and "must divide d_model, which is 96" in str(
                problem
            )
        else:
            assert_says_what_is_allowed(problem, problem.field, "The link sets {} to ")


def test_conflicting_settings_change_only_one():
    config, problems = Config.read(
        {"d_model": "24", "n_heads": "8", "position": "rope", "seed": "7"}
    )
    assert config == Config(d_model=24, n_heads=8, position="none", seed=7)
    assert [problem.field for problem in problems] == ["position"]
