"""Numbers on the page against plain arithmetic."""

import math

import numpy as np
import pytest
import torch

from core.experiments.block import attention, neurons, positions, stages
from core.experiments.block.compare import compare, mean_similarity, per_token, token_similarity
from core.experiments.forward import forward
from core.experiments.training.trained import read
from core.measure.tensor_meters import meter
from core.model.config import Config
from core.model.parts import MENUS
from core.model.parts.init import generator
from core.model.text import EXAMPLES, PAD, split_words
from core.model.transformer import Transformer
from core.tasks import task
from core.train import Training, start
from ui.block.context import BlockLook

TOKENS = split_words(EXAMPLES[1].text)
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
    "no residuals, no biases": Config(residual_attention=False, residual_ffn=False, bias=False),
}


@pytest.fixture(params=CASES, scope="module")
def block_pass(request):
    return forward(CASES[request.param], TOKENS)


def test_layer_norm_matches_textbook():
    """The numbers (3.2, −1.5, …, 0.5) have mean 0.5125 and population variance 3.0536."""
    numbers = torch.tensor([3.2, -1.5, 0.8, 2.1, -0.3, 1.7, -2.4, 0.5])
    forward_pass = forward(Config(d_model=8, n_heads=1), ["a"])
    forward_pass.sites["resid_pre"][0] = numbers[None]
    _, actual = stages.token_through_norm(forward_pass, 0, "ln1", 0)
    assert actual["mean"] == pytest.approx(0.5125, abs=1e-6)
    assert actual["variance"] == pytest.approx(3.0536, abs=5e-5)
    ours = MENUS["norm"]["LayerNorm"]("ln1", 8)(numbers)
    by_hand = [(x - 0.5125) / math.sqrt(actual["variance"] + 1e-5) for x in numbers.tolist()]
    assert ours.tolist() == pytest.approx(by_hand, abs=1e-5)


@pytest.mark.parametrize("placement", MENUS["placement"])
@pytest.mark.parametrize(
    "parts", [{}, {"attention": False}, {"ffn": False}, {"residual_attention": False}]
)
@pytest.mark.parametrize("norm", ["LayerNorm", "RMSNorm"])
def test_before_and_after_of_a_norm_belong_together(placement, parts, norm):
    forward_pass = forward(Config(placement=placement, norm=norm, n_layers=2, **parts), TOKENS)
    for site in {"ln1", "ln2"} & set(forward_pass.sites):
        for layer in forward_pass.layers:
            table, actual = stages.token_through_norm(forward_pass, layer, site, 3)
            before = table.before.to_numpy(np.float64)
            centre = actual["mean"] if norm == "LayerNorm" else 0.0
            size = math.sqrt(
                (actual["variance"] if norm == "LayerNorm" else actual["mean square"])
                + actual["epsilon"]
            )
            np.testing.assert_allclose(table.after, (before - centre) / size, atol=2e-6)


def test_attention_steps_match_hand_computation(block_pass):
    c = block_pass.config
    head = 1
    steps = {
        step.name: step.matrix.double().numpy()
        for step in attention.list_head_steps(block_pass, 0, head)
    }
    n_steps = len(attention.list_head_steps(block_pass, 0, head))
    assert n_steps == 10 + c.gate
    assert BlockLook.settings()["step"].high == 11  # with a gate
    raw = steps["Queries"] @ steps["Keys"].T
    np.testing.assert_allclose(steps["Raw scores"], raw, atol=1e-4)
    if c.position != "alibi":
        np.testing.assert_allclose(
            steps["Scaled scores"], raw / (math.sqrt(c.d_head) if c.scale else 1), atol=1e-4
        )
    masked = np.where(block_pass.allowed.numpy(), steps["Scaled scores"], -np.inf)
    np.testing.assert_allclose(steps["Mask"], masked)
    rows = np.exp(masked - masked.max(1, keepdims=True))
    np.testing.assert_allclose(steps["Softmax"], rows / rows.sum(1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(steps["Weighted sum"], steps["Softmax"] @ steps["Values"], atol=1e-5)
    part = steps["Concatenation"][:, head * c.d_head : (head + 1) * c.d_head]
    np.testing.assert_allclose(part, steps["Weighted sum"], atol=1e-6)


def test_heads_by_hand(block_pass):
    table = attention.measure_heads(block_pass, 0).pivot(
        index="head", columns="meter", values="value"
    )
    pattern = block_pass.sites["pattern"][0].double().numpy()
    for head in range(block_pass.config.n_heads):
        bits = []
        away = []
        on_itself = []
        even = []
        for reader in range(block_pass.n_real):
            row = pattern[head, reader]
            bits.append(-sum(w * math.log2(w) for w in row if w > 0))
            away.append(sum(w * abs(reader - index) for index, w in enumerate(row)))
            on_itself.append(row[reader])
            even.append(math.log2(block_pass.allowed[reader].sum()))
        actual = table.loc[head + 1]
        assert actual["entropy"] == pytest.approx(np.mean(bits), abs=1e-4)
        assert actual["distance"] == pytest.approx(np.mean(away), abs=1e-4)
        assert actual["self"] == pytest.approx(np.mean(on_itself), abs=1e-5)
        assert actual["uniform"] == pytest.approx(np.mean(even), abs=1e-5)


def dot(first, other) -> float:
    return math.fsum(a * b for a, b in zip(first, other))


def test_likeness_of_heads_by_hand(block_pass):
    """The mean is over real queries alone: padding attends, too, but means nothing."""
    maps = [
        [w for row in head[: block_pass.n_real] for w in row]
        for head in block_pass.sites["pattern"][0].tolist()
    ]
    actual = attention.head_similarity(block_pass, 0)
    assert actual.shape == (len(maps), len(maps))
    for pattern, row in zip(maps, actual.tolist()):
        expected = [
            dot(pattern, other) / math.sqrt(dot(pattern, pattern) * dot(other, other))
            for other in maps
        ]
        assert row == pytest.approx(expected, abs=2e-6)


def bits_of(scores) -> float:
    """Return the entropy of the softmax of one row of scores."""
    weights = [math.exp(score - max(scores)) for score in scores]
    shares = [weight / math.fsum(weights) for weight in weights]
    return -math.fsum(share * math.log2(share) for share in shares if share)


def test_scaling_by_hand(block_pass):
    """The model's own scores of real queries, with position bias and mask."""
    c = block_pass.config
    head = 1
    q, k = (block_pass.sites[site][0][head].tolist() for site in "qk")
    slope = (
        2.0 ** (-8 * (head + 1) / c.n_heads) if c.position == "alibi" else 0.0
    )  # of a power of two of heads
    sees = [
        [key for key, may in enumerate(row) if may]
        for row in block_pass.allowed[: block_pass.n_real].tolist()
    ]
    actual = attention.entropy_by_scaling(block_pass, 0, head)
    for name, divisor in (("scaled", math.sqrt(c.d_head)), ("unscaled", 1.0)):
        rows = [
            [dot(q[index], k[key]) / divisor - slope * abs(index - key) for key in keys]
            for index, keys in enumerate(sees)
        ]
        assert actual[name] == pytest.approx(np.mean([bits_of(row) for row in rows]), abs=1e-5)
    assert actual["uniform"] == pytest.approx(
        np.mean([math.log2(len(keys)) for keys in sees]), abs=1e-6
    )


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_spread_evenly_is_over_what_that_layer_may_see(mask):
    """Uniform attention covers only the tokens that each layer may attend to.

    Every second layer attends to the whole text, the others to a window of three, the token itself
    included.
    """
    forward_pass = forward(Config(window=3, global_every=2, n_layers=4, mask=mask), TOKENS)
    ends = range(len(TOKENS))
    for layer in range(4):
        near = len(TOKENS) if layer % 2 else 3
        sees = [
            [key for key in ends if abs(index - key) < near and (mask == "none" or key <= index)]
            for index in ends
        ]
        expected = np.mean([math.log2(len(keys)) for keys in sees])
        table = attention.measure_heads(forward_pass, layer).pivot(
            index="head", columns="meter", values="value"
        )
        assert table["uniform"].tolist() == pytest.approx(
            [expected] * forward_pass.config.n_heads, abs=1e-5
        )
        assert attention.entropy_by_scaling(forward_pass, layer, 0)["uniform"] == pytest.approx(
            expected, abs=1e-5
        )
        pairs = [(9, 0), (9, 8), (4, 3)]
        shares = [
            sum(other in sees[reader] for other in others) / len(sees[reader])
            for reader, others in ((9, (0, 8)), (4, (3,)))
        ]
        actual = attention.pair_attention(forward_pass, layer, pairs)["uniform"].tolist()
        assert actual == pytest.approx([np.mean(shares)] * forward_pass.config.n_heads, abs=1e-6)


def test_change_per_token_by_hand(block_pass):
    before = block_pass.sites["embed"][0].double().numpy()
    after = block_pass.output.double().numpy()
    for index, row in per_token(block_pass).iterrows():
        a = before[index]
        b = after[index]
        assert row.distance == pytest.approx(math.dist(a, b), rel=1e-5)
        assert row.cosine == pytest.approx(a @ b / math.hypot(*a) / math.hypot(*b), abs=1e-5)
    assert len(per_token(block_pass)) == len(TOKENS)


def test_likeness_of_tokens_by_hand(block_pass):
    for matrix, vectors in zip(
        token_similarity(block_pass), (block_pass.sites["embed"][0], block_pass.output)
    ):
        rows = vectors[: block_pass.n_real].tolist()
        expected = [[dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)) for b in rows] for a in rows]
        torch.testing.assert_close(matrix, torch.tensor(expected), atol=2e-6, rtol=0)
        pairs = [cosine for n, row in enumerate(expected) for cosine in row[:n]]
        assert len(pairs) == 14 * 13 / 2
        assert mean_similarity(matrix) == pytest.approx(np.mean(pairs), abs=2e-6)
    assert mean_similarity(matrix[:2, :2]) == pytest.approx(expected[0][1], abs=2e-6)
    assert math.isnan(mean_similarity(matrix[:1, :1]))


def test_silent_units_by_hand(block_pass):
    """Nearly silent is relative to all hidden units of the real tokens."""
    rows = block_pass.sites["mlp_post"][0][: block_pass.n_real].tolist()
    limit = 0.1 * math.sqrt(np.mean([x * x for row in rows for x in row]))
    table = neurons.sparsity(block_pass, 0)
    assert table.value.tolist() == pytest.approx([np.mean([x == 0 for x in row]) for row in rows])
    assert table.small.tolist() == pytest.approx(
        [np.mean([abs(x) < limit for x in row]) for row in rows]
    )
    assert table.token.tolist() == list(range(14)) and table.word.tolist() == list(TOKENS)


def test_strongest_units_match_hand_computation(block_pass):
    """Units are ordered by magnitude, so a strongly negative one counts as strong.

    For a gated activation, before is its value without the gate.
    """
    before, after = (block_pass.sites[site][0][5].tolist() for site in ("mlp_pre", "mlp_post"))
    expected = sorted(range(block_pass.config.d_ff), key=lambda unit: (-abs(after[unit]), unit))[:8]
    table = neurons.strongest(block_pass, 0, 5)
    assert table.unit.tolist() == [unit + 1 for unit in expected]
    assert table.after.tolist() == [after[unit] for unit in expected]
    assert table.before.tolist() == [before[unit] for unit in expected]


def test_unit_map_matches_hand_computation(block_pass):
    """The map shows the units most active over the real tokens, in order of number."""
    rows = block_pass.sites["mlp_post"][0][: block_pass.n_real].tolist()
    active = {
        unit: math.fsum(row[unit] ** 2 for row in rows) for unit in range(block_pass.config.d_ff)
    }
    expected = sorted(sorted(active, key=lambda unit: -active[unit])[:11])
    cells, numbers = neurons.unit_map(block_pass, 0, units=11)
    assert numbers == [unit + 1 for unit in expected]
    assert cells.tolist() == [[row[unit] for unit in expected] for row in rows]


@pytest.mark.parametrize("padding", [0, 3])
def test_activations_match_hand_computation(padding):
    table = neurons.every_activation(forward(Config(padding=padding), TOKENS), 0)
    assert table.activation.tolist() == list(MENUS["activation"])
    for row in table.itertuples():
        other = forward(Config(activation=row.activation, padding=padding), TOKENS)
        hidden = [x for site in other.sites["mlp_post"][0][:14].tolist() for x in site]
        limit = 0.1 * math.sqrt(np.mean([x * x for x in hidden]))
        assert row.zeros == pytest.approx(np.mean([x == 0 for x in hidden]), abs=1e-6)
        assert row.small == pytest.approx(np.mean([abs(x) < limit for x in hidden]), abs=1e-6)
        assert row.negative == pytest.approx(np.mean([x < 0 for x in hidden]), abs=1e-6)


@pytest.mark.parametrize("position", MENUS["position"])
@pytest.mark.parametrize("mask", MENUS["mask"])
def test_order_table_matches_models(position, mask):
    table = positions.compare_word_orders(forward(Config(n_layers=2), TOKENS)).set_index(
        ["position", "mask"]
    )
    config = Config(position=position, mask=mask, n_layers=2)
    first, second = (
        forward(config, order).output
        for order in (["dog", "bites", "man"], ["man", "bites", "dog"])
    )
    assert table.value[position, mask] == pytest.approx(
        (first - second.flip(0)).abs().max().item(), abs=2e-5
    )


def test_share_on_marked_pairs_by_hand(block_pass):
    pairs = ((11, 1), (11, 3), (12, 1), (4, 9))
    table = attention.pair_attention(block_pass, 0, pairs)
    pattern = block_pass.sites["pattern"][0].numpy()
    allowed = block_pass.allowed.numpy()
    for head, row in table.iterrows():
        shares = [
            pattern[head, 11, 1] + pattern[head, 11, 3],
            pattern[head, 12, 1],
            pattern[head, 4, 9],
        ]
        even = [
            (allowed[11, 1] + 0 + allowed[11, 3]) / allowed[11].sum(),
            allowed[12, 1] / allowed[12].sum(),
            allowed[4, 9] / allowed[4].sum(),
        ]
        assert row["head"] == head + 1
        assert row.value == pytest.approx(np.mean(shares), abs=1e-6)
        assert row.uniform == pytest.approx(
            np.mean([(int(allowed[11, 1]) + int(allowed[11, 3])) / allowed[11].sum(), *even[1:]]),
            abs=1e-6,
        )


def test_several_models_are_compared_by_hand():
    base = Config(d_model=24, d_ff=40, n_layers=2, padding=3, mask="causal")
    configs = {
        "baseline": base,
        "no norm": base.replace(norm="none"),
        "four layers": base.replace(n_layers=4, n_heads=2),
        "wide": base.replace(d_model=32),
        "no attention": base.replace(attention=False),
        "post": base.replace(placement="post"),
    }
    passes = {name: forward(config, TOKENS) for name, config in configs.items()}
    table = compare(passes).set_index("variant")
    assert list(table.index) == list(configs)
    first = passes["baseline"].output[:14].tolist()
    for name, forward_pass in passes.items():
        rows = forward_pass.output[:14].tolist()
        row = table.loc[name]
        x = np.array(rows)
        parameters = Transformer(configs[name], ["a"]).blocks.parameters()
        assert row.parameters == sum(parameter.numel() for parameter in parameters)
        assert row.rms == pytest.approx(math.sqrt(np.mean(x**2)), rel=1e-6)
        assert row["std"] == pytest.approx(np.std(x), rel=1e-6) and row.largest == np.abs(x).max()
        assert row["mean"] == pytest.approx(np.mean(x), abs=1e-7)
        pairs = [
            dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))
            for n, a in enumerate(rows)
            for b in rows[:n]
        ]
        assert row.cosine == pytest.approx(np.mean(pairs), abs=1e-6)
        size = np.linalg.svd(x, compute_uv=False)
        size = size / size.sum()
        assert row["rank"] == pytest.approx(
            math.exp(-math.fsum(s * math.log(s) for s in size)), rel=1e-5
        )
        if name == "wide":
            assert math.isnan(row.distance) and math.isnan(row.direction)
        else:
            assert row.distance == pytest.approx(
                math.dist(x.ravel(), np.ravel(first)) / math.hypot(*np.ravel(first)), abs=1e-6
            )
            likeness = [dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)) for a, b in zip(rows, first)]
            assert row.direction == pytest.approx(np.mean(likeness), abs=1e-6)
        if name == "no attention":
            assert math.isnan(row.entropy)
        else:
            read = [
                row
                for maps in forward_pass.sites["pattern"]
                for head in maps.tolist()
                for row in head[: forward_pass.n_real]
            ]
            bits = [-math.fsum(w * math.log2(w) for w in item if w > 0) for item in read]
            assert row.entropy == pytest.approx(np.mean(bits), abs=1e-5)


@pytest.mark.parametrize(
    "text, pairs", [("12-2,13-2", ((11, 1), (12, 1))), ("", ()), ("1-1,1-1", ((0, 0),))]
)
def test_pairs_to_and_from_a_link(text, pairs):
    assert attention.read_pairs(text, 14)[0] == pairs
    assert attention.read_pairs(attention.write_pairs(pairs), 14) == (pairs, [])


@pytest.mark.parametrize(
    "bad", ["1", "0-1", "1-15", "a-b", "1-2-3", "-", "1--2", "٣-1", "1-" + "9" * 500]
)
def test_bad_pairs_are_named(bad):
    pairs, notes = attention.read_pairs(f"2-1,{bad}", 14)
    assert pairs == ((1, 0),)
    assert "1 to 14" in notes[0]


def test_stage_table_matches_hand_computation(block_pass):
    """Padding counts here: the table is about whole tensors."""
    for layer in block_pass.layers:
        table = stages.stages(block_pass, layer)
        assert list(table) == ["stage", "site", "shape", *meter]
        assert set(table.site) == (set(stages.STAGES) & set(block_pass.sites)) - (
            {"embed"} if layer else set()
        )
        for row in table.to_dict("records"):
            x = block_pass.sites[row["site"]][layer].double().numpy()
            assert row["stage"] == stages.stage_name(block_pass, row["site"])
            assert row["shape"] == " × ".join(map(str, x.shape))
            expected = [
                x.mean(),
                x.std(),
                math.sqrt((x**2).mean()),
                x.min(),
                x.max(),
                (x == 0).mean(),
            ]
            assert [row[name] for name in meter] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_padding_is_ignored_in_training_entropy():
    learnt = task["sentences"]
    state = start(learnt.config(), Training(task="sentences"), 0)
    tokens, targets = learnt(generator(0, "entropy"), 1)
    tokens = tokens[0]
    targets = targets[0]
    words = [
        index for index, token in enumerate(tokens.tolist()) if learnt.vocabulary[token] != PAD
    ]
    assert 0 < len(words) < len(tokens)
    reading = read(state, tokens, targets)
    pattern = reading.patterns[1].double().numpy()
    for head, bits in enumerate(reading.entropy(1).tolist()):
        rows = [pattern[head, index][pattern[head, index] > 0] for index in words]
        assert bits == pytest.approx(
            np.mean([-(row * np.log2(row)).sum() for row in rows]), abs=1e-5
        )
    shorter = read(
        state, tokens[: len(words)], targets[: len(words)]
    )  # the same sentence without its padding
    torch.testing.assert_close(shorter.entropy(1), reading.entropy(1))
