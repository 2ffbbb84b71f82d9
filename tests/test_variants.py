"""Baseline and variants: additive differences, text round trips, names and order."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import Config, ConfigError
from core.model.config import allowed_heads
from core.model.parts import MENUS
from core.model.variants import (
    MOST,
    NEXT,
    NOTHING,
    NOW,
    PLAIN,
    Pins,
    Variant,
    ablation,
    apply,
    decode,
    difference,
    encode,
    encode_baseline,
    lineup,
    name_of,
)

LINK = set(string.ascii_letters + string.digits + "_.-~+")


def value_of(name):
    """Draw any value of one setting, whatever the others are."""
    setting = Config.settings()[name]
    if setting.menu:
        return st.sampled_from(list(setting.menu))
    if setting.kind is bool:
        return st.booleans()
    if setting.kind is int:
        return st.integers(setting.low, setting.high)
    return st.floats(setting.low, setting.high)


@st.composite
def configs(draw):
    """Draw any Config; often with the default d_ff, 4 × d_model, and d_head, d_model / n_heads."""
    width = draw(st.one_of(st.sampled_from([8, 12, 64, 72, 128]), st.integers(8, 1024)))
    heads = draw(st.sampled_from(allowed_heads(width)))
    sizes = ("d_model", "n_heads", "n_kv_heads", "d_ff", "d_head")
    values = {name: draw(value_of(name)) for name in Config.settings() if name not in sizes}
    d_ff = draw(st.one_of(st.none(), st.sampled_from([32, 48, 256, 512]), st.integers(1, 8192)))
    d_head = draw(st.one_of(st.none(), st.sampled_from([8, 16, 64]), st.integers(1, 1024)))
    if (d_head or width // heads) % 2 and MENUS["position"][values["position"]].turns:
        values["position"] = "none"
    if (
        MENUS["position"][values["position"]].turns
        and (d_head or width // heads) * values["rope_share"] < 2
    ):
        values["rope_share"] = 1.0
    kv = draw(
        st.one_of(st.none(), st.sampled_from([n for n in range(1, heads + 1) if heads % n == 0]))
    )
    return Config(d_model=width, n_heads=heads, n_kv_heads=kv, d_ff=d_ff, d_head=d_head, **values)


@st.composite
def neighbours(draw, config):
    """Draw another Config that shares most settings with this one."""
    other = draw(configs())
    built = {}
    names = draw(
        st.sets(
            st.sampled_from(
                [name for name in Config.settings() if name not in ("d_model", "n_heads")]
            )
        )
    )
    for name in names:
        built[name] = getattr(config, name)
    if draw(st.booleans()):
        built |= {"d_model": config.d_model, "n_heads": config.n_heads}
    try:
        return other.replace(**built)
    except ConfigError:  # RoPE and an odd head
        return other


@st.composite
def pairs(draw):
    variant = draw(configs())
    return variant, draw(st.one_of(configs(), neighbours(variant)))


@st.composite
def change_sets(draw):
    """Draw changed settings that may be impossible together."""
    names = draw(st.sets(st.sampled_from(list(Config.settings())), min_size=1))
    return {name: draw(value_of(name)) for name in Config.settings() if name in names}


# Differences


@given(pairs())
def test_applying_difference_gives_config(pair):
    variant, baseline = pair
    assert apply(difference(variant, baseline), baseline) == variant


@given(pairs())
def test_difference_is_minimal(pair):
    variant, baseline = pair
    changes = difference(variant, baseline)
    for name, value in changes.items():
        assert value == getattr(variant, name)
        remaining = {other: change for other, change in changes.items() if other != name}
        try:
            assert apply(remaining, baseline) != variant
        except ConfigError:
            pass  # not possible without it


def test_d_ff_is_in_difference_only_if_not_following():
    assert difference(Config(d_model=128), Config()) == {"d_model": 128}
    assert difference(Config(d_model=128, d_ff=256), Config()) == {"d_model": 128, "d_ff": 256}
    assert difference(Config(d_ff=512), Config()) == {"d_ff": 512}
    assert difference(Config(d_model=128), Config(d_ff=100)) == {"d_model": 128, "d_ff": 512}
    assert apply({"d_model": 128}, Config()).d_ff == 512
    assert apply({"d_model": 128}, Config(d_ff=100)).d_ff == 100
    assert apply({"d_ff": 100}, Config()).d_ff == 100


# Texts


@given(change_sets())
def test_written_variants_read_back(changes):
    assert decode(encode(changes), "variants") == changes
    assert list(decode(encode(changes), "variants")) == [
        name for name in Config.settings() if name in changes
    ]


@given(pairs())
def test_difference_in_link_needs_no_escaping(pair):
    variant, baseline = pair
    changes = difference(variant, baseline)
    assert set(encode(changes)) <= LINK
    if changes:
        assert decode(encode(changes), "variants") == changes
    pins = Pins(encode_baseline(baseline), encode(changes) or NOTHING)
    assert set(pins.baseline + pins.variants) <= LINK
    assert pins.read_baseline() == baseline
    assert [apply(change, baseline) for change in pins.changes] == [variant] * bool(changes)


# Names


PLACED = Config(position="learned")  # a model from which every ablation takes something


@pytest.mark.parametrize("name", ablation)
def test_ablation_changes_model_only_where_intended(name):
    changes = ablation[name]
    assert apply(changes, PLACED) != PLACED
    assert difference(apply(changes, PLACED), PLACED) == changes


@given(st.lists(change_sets(), min_size=2, max_size=2, unique_by=encode))
def test_different_changes_have_different_names(sets):
    assert name_of(sets[0]) != name_of(sets[1])


# Bad texts


@pytest.mark.parametrize(
    ("text", "names", "instead"),
    [
        ("colour-red", ["colour", *Config.settings()], NOTHING),
        ("norm-BatchNorm", ["norm", "BatchNorm", *MENUS["norm"]], NOTHING),
        ("n_heads-65", ["n_heads", "65", "from 1 to 64"], NOTHING),
        ("ffn-perhaps", ["ffn", "perhaps", "on or off"], NOTHING),
        ("norm-none~colour-red~n_heads-8", ["colour"], "norm-none~n_heads-8"),
    ],
)
def test_bad_variants_are_refused_and_good_ones_kept(text, names, instead):
    with pytest.raises(ConfigError) as refused:
        Pins(variants=text)
    assert refused.value.field == "variants"
    assert "variants" in str(refused.value)
    assert all(name in str(refused.value) for name in names)
    assert len(str(refused.value)) < 1000
    assert refused.value.instead == instead
    settings, problems = Pins.read({"variants": text})
    assert settings.variants == instead
    assert [problem.field for problem in problems] == ["variants"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("colour-red", ["colour", *Config.settings()]),
        ("norm-BatchNorm", ["norm", "BatchNorm", *MENUS["norm"]]),
        ("n_heads-5", ["n_heads is 5", "must divide d_model, which is 64"]),
        ("n_heads-64__position-rope", ["position is rope", "even"]),
    ],
)
def test_bad_baseline_is_refused_and_variants_kept(text, names):
    with pytest.raises(ConfigError) as refused:
        Pins(baseline=text, variants="ffn-off")
    assert (refused.value.field, refused.value.instead) == ("baseline", "")
    assert str(refused.value).startswith("baseline")
    assert str(refused.value).count("baseline") == 1
    assert all(name in str(refused.value) for name in names)
    settings, problems = Pins.read({"baseline": text, "variants": "ffn-off"})
    assert settings == Pins(variants="ffn-off")
    assert len(problems) == 1


# The line


def test_variants_follow_baseline_and_d_ff_follows_d_model():
    pins = Pins(variants="norm-none~d_model-128~d_ff-100")
    for seed, width in ((0, 64), (5, 32)):
        baseline = Config(seed=seed, d_model=width)
        variants, notes = lineup(baseline, pins)
        assert notes == []
        assert variants == [
            Variant("baseline", baseline, 0),
            Variant("− norm", Config(seed=seed, d_model=width, norm="none"), 1),
            Variant("d_model 128", Config(seed=seed, d_model=128, d_ff=512), 2),
            Variant("d_ff 100", Config(seed=seed, d_model=width, d_ff=100), 3),
        ]
    moved, _ = lineup(Config(d_ff=100), pins)
    assert [item.config.d_ff for item in moved] == [
        100,
        100,
        100,
    ]  # a d_ff that was moved stays, the last is no change


def test_impossible_variant_is_left_out_and_others_stay():
    pins = Pins(variants="norm-none~n_heads-16~ffn-off")
    variants, notes = lineup(Config(d_model=72), pins)
    assert [(variant.name, variant.colour) for variant in variants] == [
        ("baseline", 0),
        ("− norm", 1),
        ("− FFN", 3),
    ]
    assert len(notes) == 1
    assert notes[0].startswith(
        "16 heads skipped: n_heads is 16; it must divide d_model, which is 72"
    )
    assert len(lineup(Config(), pins)[0]) == 4  # where it can be, it is there again


def test_current_appears_only_beside_differing_pinned_baseline():
    variants = "norm-none"
    assert [variant.colour for variant in lineup(Config(seed=9), Pins(variants=variants))[0]] == [
        0,
        1,
    ]
    pins = Pins(baseline=encode_baseline(Config(seed=9)), variants=variants)
    assert [variant.colour for variant in lineup(Config(seed=9), pins)[0]] == [0, 1]
    assert [variant.colour for variant in lineup(Config(seed=9, norm="none"), pins)[0]] == [
        0,
        1,
    ]  # that is the variant
    lineup_variants, notes = lineup(Config(seed=9, ffn=False), pins)
    assert lineup_variants == [
        Variant("baseline", Config(seed=9), 0),
        Variant("− norm", Config(seed=9, norm="none"), 1),
        Variant("now: − FFN", Config(seed=9, ffn=False), NOW),
    ]
    assert notes == []
    assert lineup(Config(), Pins(baseline=PLAIN, variants=variants))[0][0].config == Config()


@given(pairs(), st.lists(change_sets(), max_size=MOST, unique_by=encode))
def test_pinned_variants_appear_once_or_are_explained(pair, sets):
    config, baseline = pair
    variants, notes = lineup(config, Pins(encode_baseline(baseline), NEXT.join(map(encode, sets))))
    assert variants[0] == Variant("baseline", baseline, 0)
    assert len({variant.config for variant in variants}) == len(variants)
    assert [variant.colour for variant in variants] == sorted(
        {variant.colour for variant in variants}
    )
    for shown_variant in variants[1:]:
        if shown_variant.colour != NOW:
            assert shown_variant.config == apply(sets[shown_variant.colour - 1], baseline)
            assert shown_variant.name == name_of(sets[shown_variant.colour - 1])
    assert any(variant.config == config for variant in variants)
    missing = set(range(1, len(sets) + 1)) - {variant.colour for variant in variants}
    assert all(" skipped: " in note for note in notes)
    assert len(notes) <= len(missing)


# Paired comparison


# Places


@given(
    st.lists(
        st.sampled_from([encode(part) for part in ablation.values()]), max_size=4, unique=True
    ),
    st.data(),
)
def test_remaining_variants_keep_place_and_colour(texts, data):
    before = Pins(variants=NEXT.join(texts) or NOTHING)
    after_texts = data.draw(
        st.lists(
            st.sampled_from([encode(part) for part in ablation.values()]), max_size=4, unique=True
        )
    )
    after = Pins(variants=before.place_variants(after_texts))
    assert sorted(after.texts) == sorted(after_texts)
    places = {variant.name: variant.colour for variant in lineup(Config(), before)[0]}
    for shown_variant in lineup(Config(), after)[0]:
        assert shown_variant.colour <= 4
        if shown_variant.name in places:
            assert shown_variant.colour == places[shown_variant.name]
