"""Page "One block" on trained weights: three kinds, each as described, or a clear refusal."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from core.checkpoints import family
from core.checkpoints.family import BASELINE, FOLDER, WHOLE, config_of, file_of
from core.experiments.block import neurons, positions
from core.experiments.forward import forward
from core.experiments.trained.comparison import TRAINED, read
from core.experiments.weights import list_values, weights
from core.model.config import Config
from core.model.text import DEFAULT_TEXT, UNKNOWN, split_words
from core.model.variants import apply, decode
from core.settings.device import Machine
from core.settings.setting import ConfigError
from tests import reference
from tests.pages import control, controls, link, move, move_control, setting, texts
from tests.pages import words as offered
from tests.test_page import fine, opened
from ui.block.context import BlockConfig
from ui.block.side_by_side import summary_html
from ui.kit.pins import PILLS

TOKENS = split_words(DEFAULT_TEXT)
TABLE = read()
NUMBERS = [family.vocabulary().index(word.lower()) for word in TOKENS]
SITES = ("embed", "scores", "pattern", "resid_mid", "resid_post")


def as_in_the_file(member: str, seed: int, config: Config, numbers=NUMBERS) -> dict:
    """Return the sites of a pass by the reference, from the file's numbers alone."""
    actual = load_file(FOLDER / file_of(member, seed))
    return reference.forward(
        {name: x.astype(np.float64) for name, x in actual.items()}, config, [numbers]
    )


def has_same_sites(forward_pass, expected) -> bool:
    both = [site for site in SITES if site in forward_pass.sites]
    assert "resid_post" in both
    return all(
        np.allclose(
            forward_pass.sites[site][layer].numpy(), expected[site][layer][0], rtol=1e-4, atol=2e-4
        )
        for site in both
        for layer in range(len(forward_pass.sites[site]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("member, seed", list(family.read_shipped()))
def test_trained_pass_matches_its_file(member, seed):
    config = config_of(member, seed)
    assert has_same_sites(
        forward(config, TOKENS, kind="trained"), as_in_the_file(member, seed, config)
    )


@pytest.mark.parametrize(
    "text",
    [
        "norm-none",
        "residual_attention-off__residual_ffn-off",
        "ffn-off",
        "activation-relu",
        "scale-off",
        "placement-post",
        "n_layers-1",
        "n_heads-1",
        "mask-none",
        "norm-none__scale-off",
    ],
)
def test_ablated_pass_has_baseline_weights_under_own_settings(text):
    config = apply(decode(text, "x"), BASELINE)
    assert has_same_sites(forward(config, TOKENS, kind="cut"), as_in_the_file(WHOLE, 0, config))


def test_three_kinds_of_one_config_are_three_different_things():
    config = config_of("norm-none", 0)
    passes = [forward(config, TOKENS, kind=kind) for kind in weights]
    assert [forward_pass.weights for forward_pass in passes] == [
        "Trained without norm, seed 0",
        "Trained with all components, then run without norm (not retrained), seed 0",
        "Random weights, seed 0",
    ]
    assert len({tuple(forward_pass.output.flatten().tolist()) for forward_pass in passes}) == 3
    assert torch.equal(
        forward(BASELINE, TOKENS, kind="trained").output,
        forward(BASELINE, TOKENS, kind="cut").output,
    )


def test_unknown_words_share_one_token():
    odd = split_words("The defendant , who had filed a motion to dismiss , was liable .")
    numbers = [
        family.vocabulary().index(w.lower() if w.lower() in family.vocabulary() else UNKNOWN)
        for w in odd
    ]
    assert numbers.count(family.vocabulary().index(UNKNOWN)) == 3
    assert has_same_sites(
        forward(BASELINE, odd, kind="trained"), as_in_the_file(WHOLE, 0, BASELINE, numbers)
    )


def test_padding_and_precision_keep_shared_model_and_words():
    full = family.open_cached(WHOLE, 0).model
    before = {name: x.clone() for name, x in full.state_dict().items()}
    plain = forward(BASELINE, TOKENS, kind="trained")
    padded = forward(BASELINE.replace(padding=3), TOKENS, kind="trained")
    assert (
        torch.allclose(padded.output[: padded.n_real], plain.output, atol=1e-5)
        and len(padded.tokens) == len(TOKENS) + 3
    )
    half = forward(BASELINE, TOKENS, Machine(dtype="bfloat16"), kind="trained")
    assert 0 < (half.output - plain.output).abs().max() < 1
    positions.compare_word_orders(plain), neurons.every_activation(plain, 0)
    assert all(
        torch.equal(x, before[name]) and x.dtype == torch.float32
        for name, x in full.state_dict().items()
    )


def test_opened_model_can_be_trained_further():
    family._open_cached.cache_clear()
    forward(BASELINE.replace(padding=1), TOKENS, kind="trained")
    x = next(iter(family.open_cached(WHOLE, 0).model.state_dict().values()))
    assert not x.is_inference()


@pytest.mark.parametrize("kind", weights)
def test_word_orders_are_compared_on_trained_weights(kind):
    config = BASELINE
    forward_pass = forward(config, TOKENS, kind=kind)
    table = positions.compare_word_orders(forward_pass).set_index(["position", "mask"])
    order = weights[kind].order
    two = tuple(reversed(weights[kind].order))
    first, second = (forward(config, item, kind=kind).output for item in (order, two))
    apart = (first - second.flip(0)).abs().max().item()
    assert table.value["rope", "causal"] == pytest.approx(apart, rel=1e-3) and apart > 0.01
    assert table.value["none", "none"] < 1e-9 and not table.notices["none", "none"]


def test_other_activations_are_tried_on_the_same_trained_weights():
    forward_pass = forward(config_of("norm-none", 0), TOKENS, kind="trained")
    table = neurons.every_activation(forward_pass, 1).set_index("activation")
    assert "swiglu" not in table.index and "relu" in table.index
    expected = as_in_the_file("norm-none", 0, forward_pass.config.replace(activation="relu"))[
        "mlp_post"
    ][1][0]
    assert table.zeros["relu"] == pytest.approx((expected == 0).mean(), abs=1e-3)
    with pytest.raises(ConfigError, match="has no weights for that"):
        forward_pass.run_with(forward_pass.config.replace(activation="swiglu"), same_weights=True)


REFUSED = [
    ("trained", {"d_model": 96}, "There is no model trained with d_model 96."),
    ("trained", {"norm": "none", "ffn": False}, "There is no model trained without FFN and norm."),
    ("trained", {"seed": 7}, "There is no model trained with all components from seed 7."),
    ("cut", {"d_model": 32}, "The trained model has no weights to run it with d_model 32."),
    (
        "cut",
        {"activation": "swiglu"},
        "The trained model has no weights to run it with SwiGLU activation.",
    ),
]


@pytest.mark.parametrize("kind, changes, why", REFUSED, ids=str)
def test_missing_weights_are_reported(kind, changes, why):
    config = apply(changes, BASELINE)
    assert weights[kind].refused(config) == why
    with pytest.raises(ConfigError, match=why.replace(".", r"\.")):
        forward(config, TOKENS, kind=kind)


def test_missing_files_are_reported(monkeypatch):
    monkeypatch.setattr(family, "list_shipped", dict)
    assert (
        weights["trained"].refused(BASELINE)
        == "The trained models (models/family) are not included in this copy."
    )
    assert BlockConfig.repair({})[0].weights == "random"
    monkeypatch.setattr(family, "list_shipped", lambda: {(WHOLE, 0): "x"})
    assert (
        weights["trained"].refused(config_of("ffn-off", 0))
        == "The model trained without FFN is missing."
    )


def test_nearest_model_is_shown_for_missing_combination():
    settings, problems = BlockConfig.repair({"d_model": 16, "norm": "none"})
    assert (settings.d_model, settings.norm, settings.weights) == (16, "none", "trained")
    assert not problems and settings.config_shown == config_of("norm-none", 0)
    settings, _ = BlockConfig.repair({"norm": "none", "ffn": False})
    assert family.member_of(settings.config_shown) in ("norm-none", "ffn-off")
    settings, problems = BlockConfig.repair({"weights": "cut", "d_model": 16})
    assert settings.weights == "random" and len(problems) == 1


def test_sizes_are_a_grid_and_ffn_widths():
    configs = [config_of(size, 0) for size in family.sizes()]
    assert len(set(configs)) == len(configs) == 4 * 4 * 4 - 2 + len(family.FFN_WIDTHS) + 2
    assert all(family.member_of(config) == size for config, size in zip(configs, family.sizes()))
    wide = [config for config in configs if config.d_ff != 4 * config.d_model]
    assert {config.d_ff for config in wide} == {
        config.d_model * n for config in wide for n in (1, 2)
    }


@pytest.mark.parametrize("name", family.SIZES)
def test_slider_of_a_size_opens_what_was_trained_so(name):
    app = fine(opened(weights="trained"))
    values = [value for value in family.values(name) if name != "n_heads" or 64 % value == 0]
    assert len(values) > 1 and offered(app, name) == [str(value) for value in values]
    for value in list_values("trained", BASELINE, name):
        app = fine(move(app, **{name: str(value)}).run())
        assert setting(app, name) == value and setting(app, "weights") == "trained"
        assert weights["trained"].describe(apply({name: value}, BASELINE)) in texts(app)
        assert not app.warning and "There is no model" not in texts(app)


@pytest.mark.parametrize("member, seed", list(family.read_shipped()))
def test_accuracy_below_the_diagram_is_that_of_the_table(member, seed):
    rows = TABLE[(TABLE.member == member) & (TABLE.seed == seed) & (TABLE.how == TRAINED)]
    accuracy = rows[(rows.meter == "accuracy") & (rows["at"] == "")].value.item()
    subject = rows[rows.meter == "subject"].value.max()
    config = config_of(member, seed)
    text = summary_html(forward(config, TOKENS, kind="trained"))
    assert f"in {100 * accuracy:.1f} % of 1,024 held-out sentences" in text
    assert ("on the subject" in text) == (subject == subject)
    if subject == subject:
        assert f"puts {100 * subject:.0f} % of its attention on the subject" in text
    base = TABLE[(TABLE.member == WHOLE) & (TABLE.seed == seed) & (TABLE.how == TRAINED)]
    best = base[base.meter == "subject"].value.max()
    base_accuracy = base[(base.meter == "accuracy") & (base["at"] == "")].value.item()
    assert (f"(baseline: {100 * base_accuracy:.1f} %)" in text) == (member != WHOLE)
    assert (f"heads (baseline: {100 * best:.0f} %)" in text) == (
        member != WHOLE and subject == subject
    )


def kinds_shown(app) -> list[str]:
    """Return the texts that say which weights the pictures show."""
    return [markdown.value for markdown in app.markdown if "seed 0" in markdown.value]


def test_page_opens_on_trained_weights_and_known_words():
    app = fine(opened(weights="trained"))
    assert link(app) == {} and not app.warning and not app.error
    assert setting(app, "weights") == "trained" and setting(app, "n_layers") == 2
    assert kinds_shown(app) and all(
        "Trained with all components, seed 0" in item for item in kinds_shown(app)
    )
    assert not any("does not know" in element.proto.body for element in app.get("html"))
    assert all(word.lower() in family.vocabulary() for word in TOKENS)


@pytest.mark.parametrize("kind", ["trained", "cut"])
def test_whatever_control_is_moved_there_are_weights_for_it(kind):
    """With a part removed the page offers no other; trained, it shows the nearest model."""
    app = fine(opened(weights=kind))
    for name, drawn_control in controls(app).items():
        if name not in Config.settings() or drawn_control["kind"] == "range":
            continue
        texts = (
            [text for text, _ in drawn_control["options"]]
            if "options" in drawn_control
            else ["on", "off"]
        )
        for text in texts:
            config, problems = BlockConfig.read({"weights": kind, name: text})
            if not problems:  # such as an odd width of heads with RoPE
                assert config.weights == kind and forward(config.config_shown, TOKENS, kind=kind)
                assert kind == "trained" or config.config_shown == config.plain


def test_removed_part_appears_beside_trained_model():
    app = fine(move(opened(weights="trained"), norm="none").run())
    text = " ".join(kinds_shown(app))
    assert "Trained with all components, seed 0" in text and "Trained without norm, seed 0" in text
    app = fine(move_control(app, "weights", "cut"))
    text = " ".join(kinds_shown(app))
    assert "then run without norm" in text and "Trained without" not in text
    names = " ".join(element.proto.body for element in app.get("html"))
    assert (
        "without norm (not retrained)" in names
        and "Baseline (trained with all components)" in names
    )


def test_carried_settings_do_not_count_as_changed():
    app = fine(move_control(opened(weights="trained"), "weights", "random"))
    assert link(app) == {"weights": "random", "n_layers": "2", "position": "rope", "mask": "causal"}
    assert {name for name, entry in controls(app).items() if entry.get("carried")} == {
        "n_layers",
        "position",
        "mask",
    }
    app = fine(move(app, n_layers="3").run())
    assert not control(app, "n_layers")["carried"] and control(app, "mask")["carried"]
    app = fine(opened(weights="random", n_layers="2"))
    assert not control(app, "n_layers")["carried"], "a link has changed it"


def test_pills_offer_trained_variants_and_explain_missing_ones():
    app = fine(opened(weights="trained"))
    assert "ALiBi" not in offered(app, PILLS) and {"1 head", "− norm", "RMSNorm"} <= set(
        offered(app, PILLS)
    )
    app = fine(opened(weights="trained", variants="norm-none~n_heads-16"))
    assert any(
        "16 heads skipped: There is no model trained with 16 heads." in c.value.replace("\\", "")
        for c in app.caption
    )
    app = fine(opened(weights="cut"))
    assert "8 heads" in offered(app, PILLS) and "SwiGLU activation" not in offered(app, PILLS)


def test_requested_kind_is_shown():
    app = fine(move(opened(), d_model=96).run())
    app = fine(move_control(app, "weights", "trained"))
    assert (
        setting(app, "weights") == "trained" and setting(app, "d_model") == 64 and not app.warning
    )
    app = fine(move_control(move(app, norm="none").run(), "weights", "cut"))
    assert setting(app, "norm") == "none" and setting(app, "weights") == "cut"
    app = fine(move_control(app, "weights", "random"))
    same = {name: setting(app, name) for name in ("norm", "n_layers", "mask", "position")}
    assert same == {"norm": "none", "n_layers": 2, "mask": "causal", "position": "rope"}
    assert not control(app, "d_model").get("off")
    app = fine(move_control(app, "weights", "trained"))
    assert setting(app, "norm") == "none" and setting(app, "weights") == "trained"
