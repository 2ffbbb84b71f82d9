"""What the page shows, against plain arithmetic."""

import math

import numpy as np
import pytest
import torch

from core.config import Config
from core.device import Machine
from core.dial import dials
from core.experiments import attention, change, dependencies, neurons, positions, stages
from core.experiments.forward import forward
from core.parts import MENUS
from core.streams import row_entropy
from core.text import DEFAULT_TEXT, EXAMPLES, words

TOKENS = words(DEFAULT_TEXT)
CASES = {
    "default": Config(),
    "causal": Config(mask="causal"),
    "padded": Config(padding=3),
    "padded causal": Config(padding=3, mask="causal", n_layers=2),
    "post, RMSNorm": Config(placement="post", norm="RMSNorm"),
    "rope": Config(position="rope", n_heads=8),
    "alibi": Config(position="alibi", scale=False),
    "relu": Config(activation="relu"),
    "swiglu": Config(activation="swiglu", d_ff=48),
    "no residuals": Config(residual_attention=False, residual_ffn=False),
}


@pytest.fixture(params=CASES, scope="module")
def seen(request):
    return forward(CASES[request.param], TOKENS)


def test_the_layer_norm_of_the_text_book():
    """(3.2, −1.5, 0.8, 2.1, −0.3, 1.7, −2.4, 0.5): mean 0.5125, population variance 3.0536."""
    numbers = torch.tensor([3.2, -1.5, 0.8, 2.1, -0.3, 1.7, -2.4, 0.5])
    shown = forward(Config(d_model=8, n_heads=1), ["a"])
    shown.sites["resid_pre"][0] = numbers[None]
    _, found = stages.normalised(shown, 0, "ln1", 0)
    assert found["mean"] == pytest.approx(0.5125, abs=1e-6)
    assert found["variance"] == pytest.approx(3.0536, abs=5e-5)
    ours = MENUS["norm"]["LayerNorm"]("ln1", 8)(numbers)
    by_hand = [(x - 0.5125) / math.sqrt(found["variance"] + 1e-5) for x in numbers.tolist()]
    assert ours.tolist() == pytest.approx(by_hand, abs=1e-5)


@pytest.mark.parametrize("placement", MENUS["placement"])
@pytest.mark.parametrize("parts", [{}, {"attention": False}, {"ffn": False}, {"residual_attention": False}])
@pytest.mark.parametrize("norm", ["LayerNorm", "RMSNorm"])
def test_before_and_after_of_a_norm_belong_together(placement, parts, norm):
    seen = forward(Config(placement=placement, norm=norm, n_layers=2, **parts), TOKENS)
    for site in {"ln1", "ln2"} & set(seen.sites):
        for layer in seen.layers:
            table, found = stages.normalised(seen, layer, site, 3)
            before = table.before.to_numpy(np.float64)
            centre = found["mean"] if norm == "LayerNorm" else 0.0
            size = math.sqrt((found["variance"] if norm == "LayerNorm" else found["mean square"]) + found["epsilon"])
            np.testing.assert_allclose(table.after, (before - centre) / size, atol=2e-6)


def test_entropy_in_closed_form():
    even, sure = torch.full((8,), 1 / 8), torch.eye(8)[3]
    half = torch.tensor([0.5, 0.5, 0, 0])
    assert [row_entropy(x).item() for x in (even, sure, half)] == pytest.approx([3, 0, 1])


def test_every_step_of_the_walk(seen):
    c, head = seen.config, 1
    steps = {step.name: step.matrix.double().numpy() for step in attention.walk(seen, 0, head)}
    assert len(attention.walk(seen, 0, head)) == 10 == dials_of_steps()
    raw = steps["Queries"] @ steps["Keys"].T
    np.testing.assert_allclose(steps["Raw scores"], raw, atol=1e-4)
    if c.position != "alibi":
        np.testing.assert_allclose(steps["Scaled scores"], raw / (math.sqrt(c.d_head) if c.scale else 1), atol=1e-4)
    masked = np.where(seen.allowed.numpy(), steps["Scaled scores"], -np.inf)
    np.testing.assert_allclose(steps["Mask"], masked)
    rows = np.exp(masked - masked.max(1, keepdims=True))
    np.testing.assert_allclose(steps["Softmax"], rows / rows.sum(1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(steps["Weighted sum"], steps["Softmax"] @ steps["Values"], atol=1e-5)
    part = steps["Concatenation"][:, head * c.d_head : (head + 1) * c.d_head]
    np.testing.assert_allclose(part, steps["Weighted sum"], atol=1e-6)


def dials_of_steps():
    from ui.views.base import Look

    return dials(Look)["step"].high


def test_heads_by_hand(seen):
    table = attention.heads(seen, 0).pivot(index="head", columns="meter", values="value")
    pattern = seen.sites["pattern"][0].double().numpy()
    for head in range(seen.config.n_heads):
        bits, away, own, even = [], [], [], []
        for reader in range(seen.n_real):
            row = pattern[head, reader]
            bits.append(-sum(w * math.log2(w) for w in row if w > 0))
            away.append(sum(w * abs(reader - at) for at, w in enumerate(row)))
            own.append(row[reader])
            even.append(math.log2(seen.allowed[reader].sum()))
        found = table.loc[head + 1]
        assert found["entropy"] == pytest.approx(np.mean(bits), abs=1e-4)
        assert found["distance"] == pytest.approx(np.mean(away), abs=1e-4)
        assert found["self"] == pytest.approx(np.mean(own), abs=1e-5)
        assert found["uniform"] == pytest.approx(np.mean(even), abs=1e-5)


@pytest.mark.parametrize("scale", [True, False])
def test_scaling_compares_the_same_queries_and_keys(scale):
    found = attention.scaling(forward(Config(scale=scale), TOKENS), 0, 0)
    other = attention.scaling(forward(Config(scale=not scale), TOKENS), 0, 0)
    assert found == pytest.approx(other, abs=1e-5)
    assert found["unscaled"] < found["scaled"] < found["uniform"]


def test_change_per_token_by_hand(seen):
    before, after = seen.sites["embed"][0].double().numpy(), seen.output.double().numpy()
    for at, row in change.per_token(seen).iterrows():
        a, b = before[at], after[at]
        assert row.distance == pytest.approx(math.dist(a, b), rel=1e-5)
        assert row.cosine == pytest.approx(a @ b / math.hypot(*a) / math.hypot(*b), abs=1e-5)
    assert len(change.per_token(seen)) == len(TOKENS)


def test_neurons_by_hand():
    seen = forward(Config(activation="relu"), TOKENS)
    hidden = seen.sites["mlp_post"][0].numpy()
    assert neurons.sparsity(seen, 0).value.tolist() == pytest.approx([(row == 0).mean() for row in hidden])
    assert 0.4 < (hidden == 0).mean() < 0.6
    limit = 0.1 * math.sqrt((hidden.astype(np.float64) ** 2).mean())
    assert neurons.sparsity(seen, 0).small.tolist() == pytest.approx([(abs(row) < limit).mean() for row in hidden])
    top = neurons.strongest(seen, 0, 5)
    assert top.after.tolist() == sorted(hidden[5].tolist(), reverse=True)[:8]
    assert [hidden[5][unit - 1] for unit in top.unit] == top.after.tolist()
    shares = neurons.every_activation(seen, 0).set_index("activation")
    assert shares.zeros["relu"] == pytest.approx((hidden == 0).mean())
    assert (shares.zeros.drop("relu") < 0.01).all()
    units, numbers = neurons.unit_map(seen, 0, units=20)
    assert units.shape == (14, 20)
    assert numbers == sorted(numbers)


def test_without_positions_and_mask_two_orders_are_a_permutation():
    table = positions.order(forward(Config(), TOKENS)).set_index(["position", "mask"])
    same = [("none", "none"), ("alibi", "none")]  # distances alone cannot tell a text from its mirror image
    assert table.value[same].max() < 1e-13
    assert table.value.drop(same).min() > 0.01
    assert table.notices.equals(table.value > 1e-3)


@pytest.mark.parametrize("n_layers, seed", [(3, 3), (6, 1), (12, 0)])
def test_rounding_is_not_taken_for_noticing(n_layers, seed):
    table = positions.order(forward(Config(init="normal_1", n_layers=n_layers, seed=seed), TOKENS))
    assert not table.set_index(["position", "mask"]).notices["none", "none"]
    faint = positions.order(forward(Config(init="normal_002", norm="none"), TOKENS)).set_index(["position", "mask"])
    assert faint.notices["rope", "none"]
    assert not faint.notices["none", "none"]


@pytest.mark.parametrize("position", MENUS["position"])
@pytest.mark.parametrize("mask", MENUS["mask"])
def test_the_table_of_orders_is_that_of_the_models_themselves(position, mask):
    table = positions.order(forward(Config(n_layers=2), TOKENS)).set_index(["position", "mask"])
    config = Config(position=position, mask=mask, n_layers=2)
    first, second = (forward(config, order).output for order in (["dog", "bites", "man"], ["man", "bites", "dog"]))
    assert table.value[position, mask] == pytest.approx((first - second.flip(0)).abs().max().item(), abs=2e-5)


def test_every_activation_at_the_end_of_the_range():
    seen = forward(Config(init="normal_1", norm="none", n_layers=5), TOKENS)
    table = neurons.every_activation(seen, 4).set_index("activation")
    hidden = seen.sites["mlp_post"][4].double().numpy()
    assert table.small["gelu"] == pytest.approx((abs(hidden) < 0.1 * math.sqrt((hidden**2).mean())).mean())
    assert table.loc["swiglu"].isna().any() == (not forward(seen.config.replace(activation="swiglu"), TOKENS).finite)


def test_scaling_in_bfloat16_does_not_feed_rounding_back():
    machine = Machine(dtype="bfloat16")
    made = [
        attention.scaling(forward(Config(init="normal_1", scale=scale), TOKENS, machine), 0, 3)
        for scale in (True, False)
    ]
    assert made[0] == pytest.approx(made[1], abs=1e-6)


def test_share_on_marked_pairs_by_hand(seen):
    pairs = ((11, 1), (11, 3), (12, 1), (4, 9))
    table = dependencies.share(seen, 0, pairs)
    pattern, allowed = seen.sites["pattern"][0].numpy(), seen.allowed.numpy()
    for head, row in table.iterrows():
        shares = [pattern[head, 11, 1] + pattern[head, 11, 3], pattern[head, 12, 1], pattern[head, 4, 9]]
        even = [
            (allowed[11, 1] + 0 + allowed[11, 3]) / allowed[11].sum(),
            allowed[12, 1] / allowed[12].sum(),
            allowed[4, 9] / allowed[4].sum(),
        ]
        assert row.value == pytest.approx(np.mean(shares), abs=1e-6)
        assert row.uniform == pytest.approx(
            np.mean([(int(allowed[11, 1]) + int(allowed[11, 3])) / allowed[11].sum(), *even[1:]]), abs=1e-6
        )


@pytest.mark.parametrize("text, pairs", [("12-2,13-2", ((11, 1), (12, 1))), ("", ()), ("1-1,1-1", ((0, 0),))])
def test_pairs_to_and_from_a_link(text, pairs):
    assert dependencies.read_pairs(text, 14)[0] == pairs
    assert dependencies.read_pairs(dependencies.write_pairs(pairs), 14) == (pairs, [])


@pytest.mark.parametrize("bad", ["1", "0-1", "1-15", "a-b", "1-2-3", "-", "1--2", "٣-1", "1-" + "9" * 500])
def test_bad_pairs_are_named(bad):
    pairs, notes = dependencies.read_pairs(f"2-1,{bad}", 14)
    assert pairs == ((1, 0),)
    assert "1 to 14" in notes[0]


def test_examples_have_pairs_more_than_five_words_apart():
    assert any(abs(a - b) > 5 for example in EXAMPLES for a, b in example.pairs)


def test_dropout_acts_only_when_asked_and_is_the_same_every_time():
    config = Config(dropout=0.3)
    plain, acting = forward(config, TOKENS), forward(config, TOKENS, dropout=True)
    assert torch.equal(plain.output, forward(Config(), TOKENS).output)
    assert not torch.equal(plain.output, acting.output)
    from core.experiments.forward import _run

    assert torch.equal(_run(config, tuple(TOKENS), acting.machine, True).output, acting.output)


def test_stages_stand_in_the_order_in_which_they_are_computed():
    pre = stages.stages(forward(Config(), TOKENS), 0).site.tolist()
    post = stages.stages(forward(Config(placement="post"), TOKENS), 0).site.tolist()
    assert pre.index("ln1") < pre.index("attn_out") < pre.index("resid_mid") < pre.index("ln2")
    assert post.index("attn_out") < post.index("resid_mid") < post.index("ln1") < post.index("mlp_out")
    assert post[-1] == "ln2"
